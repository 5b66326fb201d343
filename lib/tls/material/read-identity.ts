import { createHash } from 'node:crypto';
import { type Clock } from '../../time/clock.js';
import { codedError } from '../../errors/coded-error.js';
import { readRegularFile, whyUnreadable } from '../../config/read-file.js';
import { type TlsInputKey, type TlsSettings } from '../../config/resolved-options.js';
import { isFile, Secret } from '../../config/secret.js';
import { type TlsIdentityPems, type TlsIdentitySource } from '../../config/tls.options.js';
import { cleanText, type ConfigurationFault, type OptionLocation } from '../../errors/index.js';
import { within } from '../../time/timers.js';

/** A PEM, key or passphrase as read: its bytes, or why they could not be read. */
export class ReadInput {
  readonly location: OptionLocation;
  /** The file, if the value is in one. */
  readonly path?: string;
  /** Why there are no bytes. */
  readonly fault?: ConfigurationFault;
  /** They may be a private key: not shown when this is printed or serialised. */
  readonly #bytes?: Buffer;

  /** @param read the bytes, or why they could not be read */
  constructor(location: OptionLocation, read: Buffer | string, path?: string) {
    this.location = location;
    this.path = path;
    if (typeof read === 'string') this.fault = this.faultOf(read);
    else if (read.toString('latin1').trim() !== '') this.#bytes = read;
    else this.fault = this.faultOf(`${this.name} is empty. Fill it, or leave the option out.`);
  }

  get bytes(): Buffer | undefined {
    return this.#bytes;
  }

  /** How a message begins: "the file /run/secrets/key.pem", or "the value". */
  get name(): string {
    return this.path === undefined ? 'the value' : `the file ${this.path}`;
  }

  /** How a message goes on: " in /run/secrets/key.pem", or nothing. */
  get inFile(): string {
    return this.path === undefined ? '' : ` in ${this.path}`;
  }

  /** The file in a shell command, quoted if necessary. */
  get argument(): string {
    if (this.path === undefined) return '<file>';
    return /^[\w./@:+-]+$/.test(this.path) ? this.path : `'${this.path.replaceAll("'", `'\\''`)}'`;
  }

  faultOf(message: string): ConfigurationFault {
    return { ...this.location, message };
  }
}

const KEYS = ['certificate', 'privateKey', 'passphrase', 'chain'] as const satisfies readonly TlsInputKey[];

/** All inputs of an identity, read at the same time and not yet checked. */
export interface IdentitySnapshot extends Partial<Record<TlsInputKey, ReadInput>> {
  /** Node's public roots are meant as the anchor of the API. */
  publicRoots?: boolean;
  needsChain?: TlsSettings['needsChain'];
  locate: TlsSettings['locate'];
  /** Why no input could be read. */
  fault?: ConfigurationFault;
  /** The same for the same content. */
  digest: string;
}

/** Milliseconds for all inputs: a `tls` function may wait for its vault, and a disk may not answer. */
const READ_TIMEOUT_MS = 30_000;

/** Reads the files, or calls the function and reads the files that it names. Never rejects, not even if it is stopped. */
export async function readIdentity(tls: TlsSettings, clock: Clock): Promise<IdentitySnapshot>;
/** The same, or undefined if the inputs are unchanged. */
export async function readIdentity(
  tls: TlsSettings,
  clock: Clock,
  stopped: AbortSignal,
  isUnchanged: (() => Promise<boolean>) | undefined,
): Promise<IdentitySnapshot | undefined>;
export async function readIdentity(
  { source, locate, publicRoots, needsChain }: TlsSettings,
  clock: Clock,
  stopped?: AbortSignal,
  isUnchanged?: () => Promise<boolean>,
): Promise<IdentitySnapshot | undefined> {
  const expired = () => codedError('', `no answer within ${READ_TIMEOUT_MS / 1000} s`);
  const limit = { clock, timeoutMs: READ_TIMEOUT_MS, expired, signals: [stopped] };
  try {
    return await within(limit, async () => {
      if (await isUnchanged?.()) return undefined;
      const pems = typeof source === 'function' ? await answerOf(source) : { ...source, publicRoots };
      const inputs = await Promise.all(KEYS.map((key) => readInput(locate(`tls.${key}`), pems[key])));
      const [certificate, privateKey, passphrase, chain] = inputs;
      const isPublic = pems.publicRoots === true;
      const read = inputs.map((each) => each?.fault?.message ?? each?.bytes);
      const digest = digestOf([...read, String(isPublic)]);
      return {
        certificate,
        privateKey,
        passphrase,
        chain,
        publicRoots: isPublic,
        needsChain,
        locate,
        digest,
      };
    });
  } catch (error) {
    const message =
      typeof source === 'function'
        ? `the function failed (${reasonOf(error)}). Look at its vault or store.`
        : `the files were not read (${reasonOf(error)}). Look at the disk that they are on.`;
    return { fault: { option: 'tls', message }, locate, digest: digestOf([message]) };
  }
}

/** The files to read. Text given as an option never changes. */
export function filesOf({ source }: TlsSettings): string[] {
  if (typeof source === 'function') return [];
  return KEYS.map((key) => source[key])
    .filter(isFile)
    .map(({ file }) => file);
}

function digestOf(parts: readonly (Buffer | string | undefined)[]): string {
  const hash = createHash('sha256');
  for (const part of parts)
    hash.update(
      createHash('sha256')
        .update(part ?? '')
        .digest(),
    );
  return hash.digest('base64');
}

/** A vault's token has a known beginning, or mixes letters and digits. */
const TOKEN_LIKE = /\bhv[sbr]\.|(?=\S*\d)(?=\S*[a-z])[\w.~+/=:@-]{16,}/i;

/** The error's class, code and the first line of its message, unless that line may hold a token or key. */
function reasonOf(error: unknown): string {
  try {
    const { code, name, message } = Object(error) as Partial<Record<'code' | 'name' | 'message', unknown>>;
    const [line = ''] = typeof message === 'string' ? message.split('\n', 1) : [];
    const said = [name !== 'Error' && name, code, !TOKEN_LIKE.test(line) && line];
    const texts = said.filter((text) => typeof text === 'string' && text !== '');
    return cleanText(texts.join(': ') || 'unknown reason', [], 160);
  } catch {
    // It cannot even be read.
    return 'unknown reason';
  }
}

async function answerOf(source: TlsIdentitySource): Promise<TlsIdentityPems> {
  const pems: unknown = await source();
  if (typeof pems === 'object' && pems !== null) return pems;
  throw codedError('', 'it returned no object { certificate, privateKey, passphrase?, chain? }');
}

/** Reads the value, or the file it names. Never throws: `fault` has the reason. */
async function readInput(location: OptionLocation, value: unknown): Promise<ReadInput | undefined> {
  if (value === undefined || value === null) return undefined;
  const text = value instanceof Secret ? value.reveal() : value;
  if (typeof text === 'string') return new ReadInput(location, Buffer.from(text, 'utf8'));
  // The identity is read even if other checks have found faults in the options.
  if (!isFile(text)) return new ReadInput(location, 'is neither text nor { file: path }.');
  const path = text.file;
  const read = await readRegularFile(path).catch((error: unknown) => whyUnreadable(path, error));
  return new ReadInput(location, read, path);
}
