import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

/** Reads the variables of the process and of .env, before ConfigModule is loaded. */
export function readEnvironment(): NodeJS.ProcessEnv {
  try {
    return { ...parseEnv(readFileSync('.env', 'utf8')), ...process.env };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return process.env;
    throw error;
  }
}
