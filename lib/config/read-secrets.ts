import { type ConfigurationFault } from '../errors/index.js';
import { systemClock } from '../time/clock.js';
import { within } from '../time/timers.js';
import { readSecret } from './read-file.js';
import { hasControlsAtEnd, isFile, oddityOf, Secret, type SecretValue } from './secret.js';
import { FILL_IN, isPlaceholder } from './validate-options.js';

const PRINTABLE_ASCII = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
const UNSENDABLE =
  'cannot be sent in a header: it begins or ends with a space, has a line break or another control character, or is not ASCII.';
/** Milliseconds for a vault to answer. */
const SOURCE_MS = 8_000;

/**
 * Reads a secret at start-up. A file that cannot be read, is empty or contains a placeholder is a fault. The function of a
 * client secret is not called before a token is needed.
 */
export async function checkedSecret(
  value: SecretValue | (() => string | Promise<string>) | undefined,
  option: 'appToken' | 'oauth.clientSecret',
): Promise<{ secret?: Secret; faults: ConfigurationFault[]; warnings?: ConfigurationFault[] }> {
  if (value === undefined || (typeof value === 'function' && option !== 'appToken')) return { faults: [] };
  const source = isFile(value) ? `the file ${value.file}` : 'its function';
  const fault = (message: string) => ({ faults: [{ option, message }] });
  try {
    const secret = typeof value === 'function' ? await secretOf(value) : await readSecret(value);
    const text = secret.reveal();
    if (text.trim() === '')
      return fault(`${source} ${isFile(value) ? 'is empty' : 'returned an empty text'}.`);
    if (isPlaceholder(text)) return fault(`${source} still contains a placeholder; ${FILL_IN}`);
    if (option === 'appToken') return PRINTABLE_ASCII.test(text) ? { secret, faults: [] } : fault(UNSENDABLE);
    const oddity = oddityOf(text);
    if (hasControlsAtEnd(text)) return fault(`${oddity}, which would be sent as a part of it: remove that.`);
    const message = `${oddity}, and is sent as it is. Check whether that belongs to it.`;
    return { secret, faults: [], warnings: oddity ? [{ option, message }] : [] };
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
  return new Secret(value);
}
