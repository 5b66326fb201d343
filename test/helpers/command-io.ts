import { type CommandIo } from '../../lib/cli/command.js';

/** The input and output of a command under test. */
export interface TestIo extends CommandIo {
  stdout(): string;
  stderr(): string;
}

export function commandIo(
  env: Record<string, string> = {},
  { isTerminal = false, cwd = process.cwd() } = {},
): TestIo {
  const out: (string | Uint8Array)[] = [];
  const err: string[] = [];
  return {
    env,
    cwd,
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    outIsTerminal: isTerminal,
    errIsTerminal: isTerminal,
    keepRunningUnread: () => undefined,
    waitForEndSignal: () => Promise.resolve(),
    stdout: () => out.map((each) => Buffer.from(each as string).toString()).join(''),
    stderr: () => err.join(''),
  };
}
