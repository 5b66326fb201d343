import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startProcess, type SampleProcess } from './sample-process.js';

const ROOT = join(import.meta.dirname, '../..');
/** Lets Node run the TypeScript sources, so that nothing has to be built. */
export const REGISTER = pathToFileURL(join(ROOT, 'build/typescript.mjs')).href;

/**
 * Runs a program in a Node process of its own, which ends when Node finds nothing more to do. In the program, `lib` is
 * the address of the sources, and time-outs and the monotonic clock are fifty times as fast.
 */
export async function runSource(program: string): Promise<{ code: number | null; output: string }> {
  const source = `
    const { setTimeout: wait } = globalThis;
    globalThis.setTimeout = (run, ms, ...args) => wait(run, ms / 50, ...args);
    const now = performance.now.bind(performance);
    performance.now = () => 50 * now();
    const lib = ${JSON.stringify(pathToFileURL(join(ROOT, 'lib')).href)};
    ${program}`;
  const child = startProcess(
    [process.execPath, '--no-warnings', '--import', REGISTER, '--input-type=module', '--eval', source],
    { cwd: ROOT },
  );
  const { code } = await child.exited;
  return { code, output: child.output() };
}

/**
 * Runs a program in a Node process with these options, and resolves with what the program gives to `tell()`. In the program, `lib` is
 * the address of the sources.
 */
export async function tellOfSource<T>(
  options: readonly string[],
  program: string,
  env: Record<string, string> = {},
): Promise<T> {
  const source = `
    const lib = ${JSON.stringify(pathToFileURL(join(ROOT, 'lib')).href)};
    const tell = (value) => console.log('TOLD ' + JSON.stringify(value));
    ${program}`;
  const rest = ['--no-warnings', '--import', REGISTER, '--input-type=module', '--eval', source];
  const child = startProcess([process.execPath, ...options, ...rest], { cwd: ROOT, env });
  await child.exited;
  const [, told] = /^TOLD (.*)$/m.exec(child.output()) ?? [];
  if (told === undefined) throw new Error(child.output());
  return JSON.parse(told) as T;
}

/** Runs one of the programs that the consumers' hosts share, at its usual speed, to its end. */
export async function runHostProgram(name: string): Promise<{ code: number | null; output: string }> {
  const child = startSource(join(ROOT, 'test/consumers/host/src', `${name}.ts`));
  try {
    const { code } = await child.exited;
    return { code, output: child.output() };
  } finally {
    await child.kill();
  }
}

interface Surroundings {
  cwd?: string;
  env?: Record<string, string>;
}

/** Starts a TypeScript program, which imports the package by its name. */
export function startSource(program: string, { cwd = ROOT, env }: Surroundings = {}): SampleProcess {
  return startProcess(sourceLine(program), { cwd, env });
}

/** Starts the command of the package from its sources. */
export function startCommand(args: string[], { cwd = ROOT, env }: Surroundings = {}): SampleProcess {
  return startProcess(commandLine(args), { cwd, env });
}

/** The same as arguments of a process. */
export function commandLine(args: string[]): string[] {
  return [...sourceLine(join(ROOT, 'lib/cli/main.ts')), ...args];
}

function sourceLine(program: string): string[] {
  return [process.execPath, '--no-warnings', '--import', REGISTER, program];
}
