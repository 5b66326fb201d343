import { nodeProcess } from './node-process.js';

/** One line to whoever runs the tests: the only way for a test to print. */
export function tell(line: string): void {
  nodeProcess.stderr.write(`${line}\n`);
}
