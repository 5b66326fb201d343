import { nodeProcess } from './node-process.js';

/** Prints a line to the terminal. Everything else that a test prints makes it fail (quiet.ts). */
export function printFigure(line: string): void {
  nodeProcess.stderr.write(`${line}\n`);
}
