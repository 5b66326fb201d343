import { createHash } from 'node:crypto';
import { type Clock, within } from '../../time/time.js';
import { readSecret, isFile, Secret } from '../../config/secret.js';
import { type TlsInputKey, type TlsSettings } from '../../config/resolve-options.js';
import { type TlsIdentityPems, type TlsIdentitySource } from '../../config/tls.options.js';
import { cleanText, codedError, type ConfigurationFault, type OptionLocation } from '../../errors/index.js';
import { GUIDES } from '../../version.js';

/** A PEM or passphrase that was read, or the reason why it could not be read. */
export interface Input {
  location: OptionLocation;
  /** The file, if the value comes from one. */
  path?: string;
  text?: Secret;
  fault?: ConfigurationFault;
}

/** What to do if the key is in hardware, where the module cannot use it. */
export const USE_SIDECAR = `let a sidecar that can use the key do mutual TLS (${GUIDES}/certificates.md#a-sidecar-has-the-key)`;
/** The name of a key in an HSM or smart card (https://www.rfc-editor.org/rfc/rfc7512), plain or as nginx writes it. */
const PKCS11_URI = /^\s*(engine:\w+:)?pkcs11:/;

const KEYS = ['certificate', 'privateKey', 'passphrase', 'chain'] as const satisfies readonly TlsInputKey[];

/** All inputs of an identity, read at the same time and not checked yet. */
export interface IdentitySnapshot extends Partial<Record<TlsInputKey, Input>> {
  /** `tls.publicRoots`: verify the API against Node's public roots. */
  publicRoots?: boolean;
  needsChain?: TlsSettings['needsChain'];
  locate: TlsSettings['locate'];
  /** Why no input could be read. */
  fault?: ConfigurationFault;
  /** A hash of the content, by which a change is noticed. */
  digest: string;
}

/** The time limit for all inputs: a `tls` function may wait for its vault, and a network disk may hang. */
const READ_TIMEOUT_MS = 30_000;

/** Reads the files, or calls the function and reads the files that it names. Never rejects, not even if `stopped` aborts. */
export async function readIdentity(
  { source, locate, folder, publicRoots, needsChain }: TlsSettings,
  clock: Clock,
  stopped?: AbortSignal,
): Promise<IdentitySnapshot> {
  const expired = () => codedError('', `no response within ${READ_TIMEOUT_MS / 1000} s`);
  const limit = { clock, timeoutMs: READ_TIMEOUT_MS, expired, signals: [stopped] };
  try {
    return await within(limit, async () => {
      const pems = typeof source === 'function' ? await callSource(source) : { ...source, publicRoots };
      const inputs = await Promise.all(KEYS.map((key) => readInput(locate(`tls.${key}`), pems[key], folder)));
      const [certificate, privateKey, passphrase, chain] = inputs;
      const isPublic = pems.publicRoots === true;
      const digest = digestOf([...inputs.map((each) => each?.fault ?? each?.text?.reveal()), isPublic]);
      const read = { certificate, privateKey, passphrase, chain };
      return { ...read, publicRoots: isPublic, needsChain, locate, digest };
    });
  } catch (error) {
    const message =
      typeof source === 'function'
        ? `the function failed (${describeSourceError(error)}). Check the vault or store that it reads.`
        : `the files were not read (${describeSourceError(error)}). Check the disk that they are on.`;
    return { fault: { option: 'tls', message }, locate, digest: digestOf([message]) };
  }
}

/** The beginning of a message: "the file /run/secrets/key.pem" or "the value". */
export function describeInput({ path }: Input): string {
  return path === undefined ? 'the value' : `the file ${path}`;
}

/** Whether any input is a file. Text that is given as an option never changes. */
export function isFromFiles({ source }: TlsSettings): boolean {
  return typeof source !== 'function' && KEYS.some((key) => isFile(source[key]));
}

function digestOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

/** Matches text that may contain a token: a Vault token has a known prefix, and other tokens are long and mix letters and digits. */
const TOKEN_LIKE = /\bhv[sbr]\.|(?=\S*\d)(?=\S*[a-z])[\w.~+/=:@-]{16,}/i;

/** The class, code and first line of an error. Omits that line if it may contain a token or key. */
function describeSourceError(error: unknown): string {
  const { code, name, message } = Object(error) as Partial<Record<'code' | 'name' | 'message', unknown>>;
  const [line = ''] = typeof message === 'string' ? message.split('\n', 1) : [];
  const said = [name !== 'Error' && name, code, !TOKEN_LIKE.test(line) && line];
  const texts = said.filter((text) => typeof text === 'string' && text !== '');
  return cleanText(texts.join(': ') || 'unknown reason', [], 160);
}

async function callSource(source: TlsIdentitySource): Promise<TlsIdentityPems> {
  const pems: unknown = await source();
  if (typeof pems === 'object' && pems !== null) return pems;
  throw codedError('', 'it returned no object { certificate, privateKey, passphrase?, chain? }');
}

/** Reads a value, or the file that it names. Never throws: a failure is in `fault`. */
async function readInput(location: OptionLocation, value: unknown, folder = ''): Promise<Input | undefined> {
  if (value === undefined || value === null) return undefined;
  const given = value instanceof Secret ? value.reveal() : value;
  const input: Input = { location, path: isFile(given) ? given.file : undefined };
  const failed = (message: string): Input => ({ ...input, fault: { ...location, message } });
  // A function may return values of any type. Options may have any type too, because the identity is read even if they have faults.
  if (typeof given !== 'string' && !isFile(given)) return failed('is neither text nor { file: path }.');
  if (PKCS11_URI.test(isFile(given) ? given.file : given))
    return failed(`is a PKCS#11 URI, the name of a key in an HSM or smart card, not a PEM: ${USE_SIDECAR}.`);
  try {
    const text = await readSecret(given, folder);
    if (text.reveal().trim() !== '') return { ...input, text };
    return failed(`${describeInput(input)} is empty. Fill it, or leave the option out.`);
  } catch (error) {
    return failed((error as Error).message);
  }
}
