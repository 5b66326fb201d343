import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { REGISTER } from '../helpers/source-process.js';

interface Answer {
  id: number;
  answer?: unknown;
  error?: string;
}

/** A process of the program, which does what it is told: each order has one answer. It ends with this one. */
export class Worker<Orders extends Record<string, (argument: never) => unknown>> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly #exited: Promise<unknown>;
  #orders = 0;

  constructor(file: string) {
    this.#child = fork(join(import.meta.dirname, file), {
      execArgv: ['--no-warnings', '--expose-gc', '--import', REGISTER],
      env: { PATH: process.env.PATH },
    });
    this.#child.on('message', (message) => this.#settle(message as Answer));
    this.#exited = once(this.#child, 'exit').then(([code, signal]) => {
      for (const id of this.#waiting.keys()) this.#settle({ id, error: `${file} ended (${code ?? signal})` });
    });
  }

  order<Name extends string & keyof Orders>(
    name: Name,
    ...args: Parameters<Orders[Name]>
  ): Promise<Awaited<ReturnType<Orders[Name]>>> {
    const id = (this.#orders += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ answer, error }) => {
        if (error === undefined) resolve(answer as Awaited<ReturnType<Orders[Name]>>);
        else reject(new Error(`${name}: ${error}`));
      });
      this.#child.send({ id, name, argument: args[0] as unknown }, (error) => {
        if (error) this.#settle({ id, error: error.message });
      });
    });
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  #settle(answer: Answer): void {
    const settle = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    settle?.(answer);
  }
}

/** The other side. */
export function obey(orders: Record<string, (argument: never) => unknown>): void {
  process.on('message', ({ id, name, argument }: { id: number; name: string; argument: never }) => {
    (async () => orders[name](argument))().then(
      (answer) => process.send?.({ id, answer }),
      (error: unknown) => process.send?.({ id, error: String(error) }),
    );
  });
  // A Ctrl-C reaches all processes of a terminal: the first one decides.
  process.on('SIGINT', () => undefined);
  process.once('disconnect', () => process.exit());
}
