import { runInThisContext } from 'node:vm';

/** Node's own process. Jest gives each test file a copy, and listeners on that copy are never called. */
export const nodeProcess = runInThisContext('process') as NodeJS.Process;

/** Collects the names of the warnings that Node emits while `run` is running. */
export async function warningsDuring(run: () => Promise<void>): Promise<string[]> {
  const names: string[] = [];
  const note = ({ name }: Error): void => void names.push(name);
  nodeProcess.on('warning', note);
  try {
    await run();
    // Node emits warnings in the next tick.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    nodeProcess.off('warning', note);
  }
  return names;
}
