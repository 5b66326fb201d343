import { type ConfigurationFault } from '../errors/index.js';
import { systemClock } from '../time/clock.js';
import { within } from '../time/timers.js';
import { readSecret } from './read-file.js';
import { isFile, Secret, SOURCE_MS, type SecretSource } from './secret.js';

const PRINTABLE_ASCII = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
const UNSENDABLE =
  'cannot be sent in a header: it begins or ends with a space, has a line break or another control character, or is not ASCII.';
const BROKEN =
  'begins with a line break or a tab, or ends with a tab, which would be sent as a part of it: remove it.';

/** Reads a secret at start-up. Only the function of the app token is called: others are not, before their secret is needed. */
export async function checkedSecret(
  value: SecretSource | undefined,
  option: 'appToken' | 'oauth.clientSecret' | 'webhook.secret',
  folder: string,
): Promise<{ secret?: Secret; faults: ConfigurationFault[] }> {
  if (value === undefined || (typeof value === 'function' && option !== 'appToken')) return { faults: [] };
  const fault = (message: string) => ({ faults: [{ option, message }] });
  try {
    const secret = typeof value === 'function' ? await secretOf(value) : await readSecret(value, folder);
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

/** An error of a vault's client may quote the secret, so it is left out. */
async function secretOf(source: () => string | Promise<string>): Promise<Secret> {
  const message = `its function threw, returned no text, or took longer than ${SOURCE_MS / 1000} s. Its own error is left out because it may quote the value.`;
  const limit = { clock: systemClock, timeoutMs: SOURCE_MS, expired: () => new Error() };
  const value: unknown = await within(limit, async () => source()).catch(() => undefined);
  if (typeof value !== 'string') throw new Error(message);
  return Secret.of(value);
}
