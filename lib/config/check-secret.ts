import { type ConfigurationFault } from '../errors/index.js';
import { systemClock } from '../time/clock.js';
import { readInTime, readSecret, secretReader } from './read-file.js';
import { isFile, type Secret, type SecretSource } from './secret.js';

const PRINTABLE_ASCII = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
const UNSENDABLE =
  'cannot be sent in a header: it begins or ends with a space, has a line break or another control character, or is not ASCII.';
const BROKEN =
  'begins with a line break or a tab, or ends with a tab, which would be used as part of the secret: remove it.';

/**
 * Reads and checks a secret at start-up. Of the functions, only that of the app token is called: the others are called when
 * their secret is first needed.
 */
export async function checkSecret(
  value: SecretSource | undefined,
  option: 'appToken' | 'oauth.clientSecret' | 'webhook.secret',
  folder: string,
): Promise<{ secret?: Secret; faults: ConfigurationFault[] }> {
  if (value === undefined || (typeof value === 'function' && option !== 'appToken')) return { faults: [] };
  const fault = (message: string) => ({ faults: [{ option, message }] });
  try {
    const secret =
      typeof value === 'function'
        ? await readInTime(secretReader(value, folder), systemClock)
        : await readSecret(value, folder);
    const text = secret.reveal();
    if (text.trim() === '') {
      return fault(
        isFile(value) ? `the file ${value.file} is empty.` : 'its function returned an empty text.',
      );
    }
    if (option !== 'appToken' && /^[\r\n\t]|\t$/.test(text)) return fault(BROKEN);
    return option === 'appToken' && !PRINTABLE_ASCII.test(text) ? fault(UNSENDABLE) : { secret, faults: [] };
  } catch (error) {
    return fault((error as Error).message);
  }
}
