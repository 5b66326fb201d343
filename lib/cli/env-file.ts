import { resolve } from 'node:path';
import { readRegularFile } from '../config/secret.js';
import { parseEnvFile } from '../module/env-file.js';
import { UsageError, type CommandIo } from './command.js';

/** The variables of the process and of env files, with the source of each. */
export interface Variables {
  get: (variable: string) => string | undefined;
  /** For example `.env` or `the environment`. */
  sourceOf: (variable: string) => string | undefined;
  /** All sources that were read, for messages: `.env or the environment`. */
  sources: string;
}

/** The name of the process's own variables in messages. */
export const THE_ENVIRONMENT = 'the environment';

/**
 * Reads variables with the precedence of ConfigModule.forRoot(): the process first, then the files in their order. Does not
 * change the process.
 *
 * @param files names of env files; without any, `.env` if it exists
 * @throws UsageError if a named file cannot be read
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
