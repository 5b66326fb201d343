import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { REGISTER } from './source-process.js';

export interface FleetOrder {
  id: number;
  order: 'start' | 'restart' | 'call' | 'customer' | 'all' | 'load' | 'report';
  /** Of replicas. */
  count?: number;
  customer?: string;
  perSecond?: number;
}

/** Of all that was done since the one before. */
export interface FleetReport {
  calls: number;
  failures: string[];
  /** Warnings and errors of the log. */
  lines: string[];
  /** Milliseconds of a call, or of a wait for a token. */
  longestMs: number;
}

interface Answer {
  id: number;
  answer?: unknown;
  error?: string;
}

/** A process with host applications that share their tokens over Redis. Its parent process sends it orders. */
export class FleetProcess {
  readonly #child: ReturnType<typeof fork>;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly #ready: Promise<unknown>;
  readonly #exited: Promise<unknown>;
  #output = '';
  #orders = 0;

  constructor(env: Record<string, string>) {
    this.#child = fork(join(import.meta.dirname, 'fleet-worker.ts'), {
      execArgv: ['--no-warnings', '--import', REGISTER],
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    }
    this.#exited = once(this.#child, 'exit');
    const ended = this.#exited.then(() => {
      for (const settle of this.#waiting.values())
        settle({ id: 0, error: `The process ended. ${this.#output}` });
    });
    this.#ready = this.#answerTo(0);
    void ended;
    this.#child.on('message', (message) => this.#waiting.get((message as Answer).id)?.(message as Answer));
  }

  async order<T = void>(order: FleetOrder['order'], more: Partial<FleetOrder> = {}): Promise<T> {
    await this.#ready;
    const id = (this.#orders += 1);
    const answer = this.#answerTo(id);
    this.#child.send({ id, order, ...more } satisfies FleetOrder);
    return (await answer) as T;
  }

  /** Suspends the process, as a debugger, a virtual machine or a serverless platform does. */
  suspend(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** As a crash. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  #answerTo(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ answer, error }) => {
        this.#waiting.delete(id);
        if (error === undefined) resolve(answer);
        else reject(new Error(error));
      });
    });
  }
}

/** @param scopes of which all hosts get tokens by themselves */
export function startFleet(
  count: number,
  simulator: ServiceSimulator,
  redisUrl: string,
  scopes: string[] = [],
): FleetProcess[] {
  const env = simulator.env({ authentication: 'oauth' });
  const more = { FLEET_REDIS_URL: redisUrl, FLEET_SCOPES: scopes.join(',') };
  return Array.from({ length: count }, () => new FleetProcess({ ...env, ...more }));
}
