import 'reflect-metadata';
import { resolve } from 'node:path';
import { NO_PROXY_VARIABLES, PROXY_VARIABLES } from '../config/address.js';
import { describeAccess, readRegularFile } from '../config/secret.js';
import { nameFault } from '../config/variables.js';
import { readConfiguration } from '../engine/read-configuration.js';
import { parseEnvFile } from '../module/host-config.js';
import { SILENT } from '../telemetry/telemetry.js';
import { UsageError, type CommandIo } from './command.js';

/** The variables of the process and of env files, with the source of each. */
export type Variables = Awaited<ReturnType<typeof readEnvironment>>;

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
  files?: readonly string[],
) {
  const read = [{ source: THE_ENVIRONMENT, values: env }];
  for (const file of files ?? ['.env']) {
    try {
      const text = (await readRegularFile(resolve(cwd, file))).toString();
      read.push({ source: file, values: parseEnvFile(text) });
    } catch (error) {
      const { code = 'unknown reason' } = error as NodeJS.ErrnoException;
      if (files || code !== 'ENOENT')
        throw new UsageError(
          `The env file ${file} cannot be read (${code}).${await describeAccess(resolve(cwd, file), code)} Check its path.`,
        );
    }
  }
  const find = (variable: string) => read.find(({ values }) => values[variable] !== undefined);
  const [own, ...others] = read.map(({ source }) => source);
  return {
    get: (variable: string) => find(variable)?.values[variable],
    /** For example `.env` or `the environment`. */
    sourceOf: (variable: string) => find(variable)?.source,
    /** All sources that were read, for messages: `.env or the environment`. */
    sources: [...others, own].join(' or '),
  };
}

/** @throws UsageError if no module can have this name */
export function checkName(name: string | undefined): void {
  const fault = name === undefined ? undefined : nameFault(name);
  if (fault !== undefined) throw new UsageError(`--name: ${fault}`);
}

/**
 * Reads and checks the configuration as an application does at its start. Returns all faults instead of throwing them.
 *
 * @throws UsageError if no module can have this name
 */
export async function readHostConfiguration(variables: Variables, name: string | undefined) {
  checkName(name);
  // The proxy settings are read from process.env. ConfigModule copies the variables of env files there, so do the same.
  for (const variable of [...PROXY_VARIABLES, ...NO_PROXY_VARIABLES]) {
    const value = variables.get(variable);
    if (value !== undefined) process.env[variable] ??= value;
  }
  return readConfiguration({ name, given: {}, readVariable: variables.get }, SILENT);
}
