import { readFile } from 'node:fs/promises';
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
  if (service === undefined) {
    // If so, the application reads the file by itself, without ConfigModule.
    const isRead = inFile.length > 0 && inFile.every((variable) => process.env[variable] !== undefined);
    return isRead
      ? undefined
      : 'The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())';
  }
  const ours = new Set(variablesOf(name));
  const hidden = inFile.filter((variable) => ours.has(variable) && get(variable) === undefined);
  if (hidden.length === 0 && !noVariable) return undefined;
  if (hidden.length === 0) return text === undefined ? NO_FILE : NO_VALUE;
  const which = hidden.length === 1 ? hidden[0] : `${hidden[0]} and ${hidden.length - 1} more`;
  return (
    `.env has ${which}, and ConfigModule does not give ${hidden.length === 1 ? 'it' : 'them'}: the function \`validate\` or the schema of ConfigModule ` +
    'returns only the variables that it knows (z.object, stripUnknown of Joi), envFilePath names another file, or ignoreEnvFile is set. Add the variables to the ' +
    'schema, let it pass on what it does not know (z.looseObject), or have ConfigModule read .env'
  );
}

const NO_FILE =
  'Check that .env, or the file that envFilePath names, is in the working directory, where ConfigModule.forRoot() reads it';
const NO_VALUE =
  '.env in the working directory has no value for any of them: fill it in, or check the file that envFilePath names';

/** The names that a file sets, without their values. */
function variablesIn(text: string): string[] {
  return [...text.matchAll(/^\s*(?:export\s+)?([\w.-]+)\s*=[^\S\n]*\S/gm)].map(([, variable]) => variable);
}
