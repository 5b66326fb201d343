import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

/** Starts the running program in a process of its own, with these arguments and variables. */
export function startAgain(args: string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** All that it has printed, without colours. */
export function outputOf(child: ChildProcess): () => string {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  // eslint-disable-next-line no-control-regex
  return () => output.replace(/\u001b\[[\d;]*m/g, '');
}

export async function printed(output: () => string, child: ChildProcess, text: RegExp): Promise<string> {
  await until(() => {
    assert.equal(child.exitCode, null, output());
    return text.test(output());
  });
  return text.exec(output())?.[1] ?? '';
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(10);
}
