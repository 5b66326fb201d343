import { resolve } from 'node:path';
import { readRegularFile } from '../config/read-file.js';
import { parseEnvFile } from '../module/env-file.js';
import { UsageError, type CommandIo } from './command.js';

/** Variables of files and of the process, and where each comes from. */
export interface Variables {
  get: (variable: string) => string | undefined;
  /** `./.env`, or `the environment`. */
  sourceOf: (variable: string) => string | undefined;
  /** All places that were looked at. */
  sources: string;
}

/** The source of a variable of the process. */
export const THE_ENVIRONMENT = 'the environment';

/**
 * Reads variables as ConfigModule.forRoot() does: those of the process count before those of the files, the first file
 * before the others. Without names of files, `.env` if there is one. Nothing of the process is changed.
 * @throws UsageError for a file that was named and cannot be read
 */
export async function readEnvironment(
  { env, cwd }: Pick<CommandIo, 'env' | 'cwd'>,
  files: readonly string[] | undefined,
): Promise<Variables> {
  const found = new Map<string, { value: string; source: string }>();
  for (const [variable, value] of Object.entries(env)) {
    if (value !== undefined) found.set(variable, { value, source: THE_ENVIRONMENT });
  }
  const read = await Promise.all(
    (files ?? ['.env']).map((file) => readEnvFile(cwd, file, files !== undefined)),
  );
  const places = read.flatMap((each) => (each ? [each.file] : []));
  for (const { file, values } of read.flatMap((each) => each ?? [])) {
    for (const [variable, value] of Object.entries(values)) {
      if (!found.has(variable)) found.set(variable, { value, source: file });
    }
  }
  return {
    get: (variable) => found.get(variable)?.value,
    sourceOf: (variable) => found.get(variable)?.source,
    sources: [...places, THE_ENVIRONMENT].join(' or '),
  };
}

async function readEnvFile(
  cwd: string,
  file: string,
  isNamed: boolean,
): Promise<{ file: string; values: Record<string, string> } | undefined> {
  try {
    return { file, values: parseEnvFile((await readRegularFile(resolve(cwd, file))).toString()) };
  } catch (error) {
    if (!isNamed && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException;
    throw new UsageError(`The env file ${file} cannot be read (${code}). Check its path.`);
  }
}
