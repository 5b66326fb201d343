import { type ConfigurationFault } from '../errors/index.js';
import { readRegularFile } from './read-file.js';
import { Secret, type SecretValue } from './secret.js';

/** A secret's text; from a file without the one newline that editors and `echo` put at its end. */
export async function readSecret(value: SecretValue): Promise<Secret> {
  if (typeof value === 'string') return new Secret(value);
  const text = (await readRegularFile(value.file)).toString('utf8');
  return new Secret(text.replace(/\r?\n$/, ''));
}

/** Reads a secret at start-up; a file that cannot be read or is empty becomes a fault that names its path. */
export async function readSecretOrFault(
  value: SecretValue,
  option: string,
): Promise<{ secret?: Secret; faults: ConfigurationFault[] }> {
  try {
    const secret = await readSecret(value);
    if (secret.reveal() !== '') return { secret, faults: [] };
    return { faults: [{ option, message: `the file ${pathOf(value)} is empty.` }] };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    return { faults: [{ option, message: `the file ${pathOf(value)} cannot be read (${code}).` }] };
  }
}

function pathOf(value: SecretValue): string {
  return typeof value === 'string' ? '' : value.file;
}
