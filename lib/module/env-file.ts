import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { parseEnv } from 'node:util';
import { variablesOf } from '../config/variables.js';
import { type HostConfig } from './host-config.js';

/**
 * Explains why variables are missing, for the error at start-up. Undefined if neither .env nor ConfigModule is the cause.
 * @param noVariable true if no variable of this module is set
 */
export async function explainEnvFile(
  name: string | undefined,
  { configService, get }: HostConfig,
  noVariable: boolean,
): Promise<string | undefined> {
  const text = await readFile('.env', 'utf8').catch(() => undefined);
  const assigned = Object.entries(parseEnvFile(text ?? ''));
  const inFile = assigned.flatMap(([variable, value]) => (value ? variable : []));
  const ours = variablesOf(name);
  const oursInFile = inFile.filter((variable) => ours.includes(variable));
  if (configService === undefined) {
    // If the process has the variables of .env, the application reads the file by itself, without ConfigModule.
    const expected = oursInFile.length > 0 ? oursInFile : inFile;
    const isRead = expected.length > 0 && expected.every((variable) => process.env[variable] !== undefined);
    return isRead
      ? undefined
      : 'The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())';
  }
  const isHidden = (variable: string): boolean => get(variable) === undefined;
  // ConfigService falls back to the variables of the process, unless its option skipProcessEnv is set.
  const skipped = ours.filter((variable) => process.env[variable] && isHidden(variable));
  if (skipped.length > 0) return `${firstAndCount(skipped)} is set, and ${SKIPPED}`;
  const hidden = oursInFile.filter(isHidden);
  if (hidden.length > 0) return `.env has ${firstAndCount(hidden)}, and ${FILTERED}`;
  if (!noVariable) return undefined;
  return text === undefined ? NO_FILE : NO_VALUE;
}

const SKIPPED =
  'ConfigModule does not give it: its option skipProcessEnv hides all variables of the process, including those that it has ' +
  'read from .env. Remove this option, or add serviceConfig to `load` of ConfigModule';
const FILTERED =
  'ConfigModule does not give it. Check its options: the schema or the function `validate` may return only the variables that it ' +
  'knows (z.object, stripUnknown of Joi), envFilePath may name another file, or ignoreEnvFile may be set. Add the variables to the ' +
  'schema, let the schema pass unknown variables (z.looseObject), or let ConfigModule read .env';
const NO_FILE =
  'Check that .env, or the file that envFilePath names, is in the working directory, where ConfigModule.forRoot() reads it';
const NO_VALUE =
  '.env in the working directory has no value for any of them: fill it in, or check the file that envFilePath names';

function firstAndCount([first, ...others]: string[]): string {
  return others.length === 0 ? first : `${first} (and ${others.length} more)`;
}

/**
 * Parses a .env file with the dotenv of @nestjs/config, as ConfigModule does. Node's parser differs for colons, byte
 * order marks and missing closing quotes. It is used only if dotenv is not found, for example in an application that is
 * bundled into one file.
 */
export function parseEnvFile(text: string): Record<string, string> {
  let parse = parseEnv as (text: string) => Record<string, string>;
  try {
    const config = createRequire(import.meta.url).resolve('@nestjs/config');
    ({ parse } = createRequire(config)('dotenv') as { parse: typeof parse });
  } catch {
    // Keep Node's parser.
  }
  return parse(text);
}
