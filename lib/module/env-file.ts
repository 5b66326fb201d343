import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { parseEnv } from 'node:util';
import { variablesOf } from '../config/variables.js';
import { type HostConfig } from './host-config.js';

/**
 * Why variables are missing, for the error at the start. Undefined if neither .env nor ConfigModule explains it.
 * @param noVariable no variable of this module is set
 */
export async function explainEnvFile(
  name: string | undefined,
  { service, get }: HostConfig,
  noVariable: boolean,
): Promise<string | undefined> {
  const text = await readFile('.env', 'utf8').catch(() => undefined);
  const inFile = variablesIn(text ?? '');
  const ours = variablesOf(name);
  const oursInFile = inFile.filter((variable) => ours.includes(variable));
  if (service === undefined) {
    // If so, the application reads the file by itself, without ConfigModule.
    const expected = oursInFile.length > 0 ? oursInFile : inFile;
    const isRead = expected.length > 0 && expected.every((variable) => process.env[variable] !== undefined);
    return isRead
      ? undefined
      : 'The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())';
  }
  const isHidden = (variable: string): boolean => get(variable) === undefined;
  // ConfigService looks into the variables of the process last, unless it is told not to.
  const skipped = ours.filter((variable) => process.env[variable] && isHidden(variable));
  if (skipped.length > 0) return `${namesOf(skipped)} is set, and ${SKIPPED}`;
  const hidden = oursInFile.filter(isHidden);
  if (hidden.length > 0) return `.env has ${namesOf(hidden)}, and ${FILTERED}`;
  if (!noVariable) return undefined;
  return text === undefined ? NO_FILE : NO_VALUE;
}

const SKIPPED =
  "ConfigModule does not give it: its option skipProcessEnv leaves out the process's variables, also those of .env. " +
  'Remove this option, or add serviceConfig to `load` of ConfigModule';
const FILTERED =
  'ConfigModule does not give it: the function `validate` or the schema of ConfigModule ' +
  'returns only the variables that it knows (z.object, stripUnknown of Joi), envFilePath names another file, or ignoreEnvFile is set. Add the variables to the ' +
  'schema, let it pass on what it does not know (z.looseObject), or have ConfigModule read .env';
const NO_FILE =
  'Check that .env, or the file that envFilePath names, is in the working directory, where ConfigModule.forRoot() reads it';
const NO_VALUE =
  '.env in the working directory has no value for any of them: fill it in, or check the file that envFilePath names';

function namesOf([first, ...others]: string[]): string {
  return others.length === 0 ? first : `${first} (and ${others.length} more)`;
}

/** The names that a file sets, without their values. */
function variablesIn(text: string): string[] {
  return Object.entries(parseEnvFile(text)).flatMap(([variable, value]) => (value ? variable : []));
}

/**
 * Reads variables with the dotenv that @nestjs/config uses: Node's own parser reads a colon, a byte order mark and values
 * without a closing quote in another way. An application in a bundle may have no folder of @nestjs/config.
 */
export function parseEnvFile(text: string): Record<string, string> {
  let parse = parseEnv as (text: string) => Record<string, string>;
  try {
    const config = createRequire(import.meta.url).resolve('@nestjs/config');
    ({ parse } = createRequire(config)('dotenv') as { parse: typeof parse });
  } catch {
    // Node's own has to do.
  }
  return parse(text);
}
