import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const ROOT = join(import.meta.dirname, '../..');
const CLONED = [
  'package.json',
  'nest-cli.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'build',
  'lib',
  'sample',
];

/** Copies the project to a temporary folder, without build output and without a .env. */
export async function cloneProject(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'nestjs-service-sample-'));
  await Promise.all(CLONED.map((name) => cp(join(ROOT, name), join(path, name), { recursive: true })));
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface SampleProcess {
  /** Everything printed so far, without colours. */
  output(): string;
  /** Waits until this text has been printed. Throws if the process ends before. */
  waitForOutput(text: string): Promise<void>;
  /** Waits until the port accepts connections. Throws if the process ends before. */
  waitForPort(port: number): Promise<void>;
  /** Sends a signal to the process, or to every process of its group like Ctrl+C does. */
  signal(signal: NodeJS.Signals, to?: 'process' | 'group'): void;
  exited: Promise<Exit>;
  /** Waits until no process of the group is left. Resolves to false if one is left after 5 s. */
  waitUntilGone(): Promise<boolean>;
  /** Ends the rest. */
  kill(): Promise<void>;
}

/** Starts a command in a process group of its own, with none of this process's SERVICE_* variables. */
export function startProcess(
  command: string[],
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
): SampleProcess {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(SERVICE_|PORT$|NODE_OPTIONS$)/.test(name),
  );
  const child = spawn(command[0] ?? '', command.slice(1), {
    cwd,
    env: { ...Object.fromEntries(inherited), ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command.join(' ')} does not start`);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  // eslint-disable-next-line no-control-regex
  const plain = (): string => output.replace(/\u001b\[[\d;]*m/g, '');
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  let hasExited = false;
  void exited.then(() => (hasExited = true));

  const waitUntilGone = async (): Promise<boolean> => {
    for (let tries = 0; tries < 100; tries++) {
      if (!isAlive(-pid)) return true;
      await delay(50);
    }
    return false;
  };
  return {
    output: plain,
    waitForOutput: async (text) => {
      while (!plain().includes(text)) {
        if (hasExited) throw new Error(`ended before it printed '${text}':\n${plain()}`);
        await delay(20);
      }
    },
    waitForPort: async (port) => {
      while (!(await isListening(port))) {
        if (hasExited) throw new Error(`ended before it listened at ${port}:\n${plain()}`);
        await delay(20);
      }
    },
    signal: (signal, to = 'process') => process.kill(to === 'group' ? -pid : pid, signal),
    exited,
    waitUntilGone,
    kill: async () => {
      if (isAlive(-pid)) process.kill(-pid, 'SIGKILL');
      await exited;
    },
  };
}

export async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const heard = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'close').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return heard;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
