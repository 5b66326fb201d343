import { runInThisContext } from 'node:vm';

/** Node's own process. Jest gives each test file a copy of it, whose listeners are never called. */
export const nodeProcess = runInThisContext('process') as NodeJS.Process;

/** The names of the warnings that Node gives while `run` goes on. */
export async function warningsDuring(run: () => Promise<void>): Promise<string[]> {
  const names: string[] = [];
  const note = ({ name }: Error): void => void names.push(name);
  nodeProcess.on('warning', note);
  try {
    await run();
    // Node gives them in the next tick.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    nodeProcess.off('warning', note);
  }
  return names;
}
