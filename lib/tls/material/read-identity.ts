import { createHash } from 'node:crypto';
import { type Clock } from '../../config/clock.js';
import { type TlsInputs, type TlsSettings } from '../../config/resolved-options.js';
import { isFile, Secret } from '../../config/secret.js';
import { type TlsIdentityPems, type TlsIdentitySource } from '../../config/tls.options.js';
import { type ConfigurationFault } from '../../errors/index.js';
import { within } from '../../exchange/timing.js';
import { readInput, type ReadInput } from './read-input.js';

/** All inputs of an identity, read at the same time and not yet checked. */
export interface IdentitySnapshot {
  certificate?: ReadInput;
  privateKey?: ReadInput;
  passphrase?: ReadInput;
  chain?: ReadInput;
  /** Why the `tls` function gave no inputs. */
  faults: ConfigurationFault[];
  /** The same for the same content. */
  digest: string;
}

const KEYS = ['certificate', 'privateKey', 'passphrase', 'chain'] as const;

/** Milliseconds for all of it: a `tls` function may wait for its vault, and a file be on a disk that does not answer. */
const READ_TIMEOUT_MS = 30_000;

/** Reads the files, or calls the function and reads the files that it names. Never rejects. */
export async function readIdentity({ source }: TlsSettings, clock: Clock): Promise<IdentitySnapshot> {
  const limit = { clock, timeoutMs: READ_TIMEOUT_MS, expired: () => new Error('not read') };
  return within(limit, () => read(source)).catch(() => {
    const reason = `no answer within ${READ_TIMEOUT_MS / 1000} s`;
    if (typeof source === 'function') return snapshotOf([], functionFailed(reason).faults);
    const message = `the files were not read (${reason}). Look at the disk that they are on.`;
    return snapshotOf([], [{ option: 'tls', message }]);
  });
}

async function read(source: TlsSettings['source']): Promise<IdentitySnapshot> {
  const { inputs, faults }: Answer =
    typeof source === 'function' ? await askSource(source) : { inputs: source, faults: [] };
  return snapshotOf(
    await Promise.all(KEYS.map(async (key) => inputs[key] && readInput(inputs[key]))),
    faults,
  );
}

function snapshotOf(
  read: readonly (ReadInput | undefined)[],
  faults: ConfigurationFault[],
): IdentitySnapshot {
  const [certificate, privateKey, passphrase, chain] = read;
  return { certificate, privateKey, passphrase, chain, faults, digest: digestOf(read, faults) };
}

/** Whether another reading can give another result. Text given as an option never changes. */
export function canChange({ source }: TlsSettings): boolean {
  if (typeof source === 'function') return true;
  return KEYS.some((key) => source[key] !== undefined && 'file' in source[key].value);
}

function digestOf(inputs: readonly (ReadInput | undefined)[], faults: readonly ConfigurationFault[]): string {
  const hash = createHash('sha256');
  for (const [index, input] of inputs.entries()) {
    hash.update(`${index}:${input?.fault?.message ?? ''}:`);
    if (input?.bytes) hash.update(createHash('sha256').update(input.bytes).digest());
  }
  return hash.update(faults.map(({ message }) => message).join('\n')).digest('base64');
}

interface Answer {
  inputs: TlsInputs;
  faults: ConfigurationFault[];
}

async function askSource(source: TlsIdentitySource): Promise<Answer> {
  try {
    return toInputs(await source());
  } catch (error) {
    return functionFailed(reasonOf(error));
  }
}

function functionFailed(reason: string): Answer {
  return noInputs(`the function failed (${reason}). Look at its vault or store.`);
}

function noInputs(message: string): Answer {
  return { inputs: {}, faults: [{ option: 'tls', message }] };
}

/** The error's code or class. Its message may contain a vault's token. */
function reasonOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  const reason = typeof code === 'string' ? code : typeof name === 'string' ? name : 'unknown reason';
  return reason.slice(0, 80);
}

function toInputs(pems: unknown): Answer {
  if (typeof pems !== 'object' || pems === null) {
    return noInputs(
      'the function returned no object. Return { certificate, privateKey, passphrase?, chain? }.',
    );
  }
  const inputs: TlsInputs = {};
  const faults: ConfigurationFault[] = [];
  for (const key of KEYS) {
    const value = (pems as TlsIdentityPems)[key] as unknown;
    if (value === undefined || value === null) continue;
    const option = `tls.${key}`;
    if (typeof value === 'string') inputs[key] = { option, value: new Secret(value) };
    else if (isFile(value)) inputs[key] = { option, value: { file: value.file } };
    else faults.push({ option, message: "the function returned neither text nor { file: '...' } for it." });
  }
  return { inputs, faults };
}
