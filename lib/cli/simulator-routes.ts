import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type SimulatorRoutes } from '../testing/answer-book.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { UsageError } from './command.js';

/**
 * Reads the routes of --routes from a JSON file, or from the default export of a module.
 *
 * @throws UsageError if the file cannot be read or run, or contains something else
 */
export async function readRoutes(cwd: string, file: string): Promise<SimulatorRoutes> {
  const path = resolve(cwd, file);
  try {
    const found: unknown = path.endsWith('.json')
      ? JSON.parse(await readFile(path, 'utf8'))
      : ((await import(pathToFileURL(path).href)) as { default?: unknown }).default;
    if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as SimulatorRoutes;
  } catch (error) {
    throw new UsageError(`--routes: ${file} cannot be read: ${(error as Error).message}`);
  }
  throw new UsageError(`--routes: ${file} must contain an object (a module: as its default export). ${FORM}`);
}

/** @throws UsageError for an invalid route */
export function addRoutes(simulator: ServiceSimulator, routes: SimulatorRoutes): void {
  try {
    simulator.answer(routes);
  } catch (error) {
    const reason = (error as Error).message.replace(/^.*?\(\): /, '');
    throw new UsageError(`--routes: ${reason} ${FORM}`);
  }
}

const FORM = `The object has an answer for each method and path, for example { "GET /accounts/v1/{id}": { "json": { "id": "a-1" } } }.`;
