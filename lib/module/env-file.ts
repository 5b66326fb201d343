import { readFile } from 'node:fs/promises';
import { variablesOf } from '../config/variables.js';
import { type HostConfig } from './host-config.js';

/**
 * Why variables that are in .env are missing, for the error of a start. Undefined where .env explains nothing.
 * @returns an empty text where the application has read .env by itself: it needs no ConfigModule
 */
export async function explainEnvFile(
  name: string | undefined,
  { service, get }: HostConfig,
): Promise<string | undefined> {
  const inFile = await namesIn('.env');
  if (service === undefined) {
    const isRead = inFile.length > 0 && inFile.every((variable) => process.env[variable] !== undefined);
    return isRead ? '' : undefined;
  }
  const ours = new Set(variablesOf(name));
  const hidden = inFile.filter((variable) => ours.has(variable) && get(variable) === undefined);
  if (hidden.length === 0) return undefined;
  const which = hidden.length === 1 ? hidden[0] : `${hidden[0]} and ${hidden.length - 1} more`;
  return (
    `.env has ${which}, and ConfigModule does not give ${hidden.length === 1 ? 'it' : 'them'}: the function \`validate\` or the schema of ConfigModule ` +
    'returns only the variables that it knows (z.object, stripUnknown of Joi), envFilePath names another file, or ignoreEnvFile is set. Add the variables to the ' +
    'schema, let it pass on what it does not know (z.looseObject), or have ConfigModule read .env'
  );
}

/** The names that a file sets, without their values. None where it cannot be read. */
async function namesIn(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return [...text.matchAll(/^\s*(?:export\s+)?([\w.-]+)\s*=[^\S\n]*\S/gm)].map(([, variable]) => variable);
}
