import { afterAll, afterEach } from '@jest/globals';
import { nodeProcess } from './node-process.js';

/**
 * Runs before every spec file. A test fails if it prints something or Node emits a warning, so that the output of a
 * successful run contains only the results. A test that has to print uses `printFigure()`.
 */
const noise: string[] = [];

for (const method of ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const) {
  console[method] = (...args: unknown[]) =>
    void noise.push(`console.${method}: ${args.map(String).join(' ')}`);
}
// Nest's logger writes here. Jest's own reporters use Node's process, not this copy of it.
for (const name of ['stdout', 'stderr'] as const) {
  const stream = Object.create(process[name], {
    write: { value: (text: unknown) => noise.push(`${name}: ${String(text).trimEnd()}`) > 0 },
  }) as NodeJS.WriteStream;
  Object.defineProperty(process, name, { value: stream, configurable: true });
}
const onWarning = (warning: Error): void => {
  if (warning.name !== 'ExperimentalWarning') noise.push(`Node: ${warning.stack ?? warning.message}`);
};
nodeProcess.on('warning', onWarning);

function failWhereNoisy(): void {
  if (noise.length > 0)
    throw new Error(`A test that passes prints nothing; this one did:\n${noise.splice(0).join('\n')}`);
}

afterEach(failWhereNoisy);
afterAll(async () => {
  // Node emits warnings in the next tick.
  await new Promise((resolve) => setImmediate(resolve));
  nodeProcess.off('warning', onWarning);
  failWhereNoisy();
});
