import { type TlsInput } from '../../config/resolved-options.js';
import { type PemValue, Secret, type SecretValue } from '../../config/secret.js';
import { type ConfigurationFault, type OptionLocation } from '../../errors/index.js';
import { readRegularFile, whyUnreadable } from '../../config/read-file.js';

/** A PEM, key or passphrase as read: its bytes, or why there are none. */
export interface ReadInput extends OptionLocation {
  /** The file, if the value is in one. */
  path?: string;
  /** Absent where the file could not be read. */
  content?: InputContent;
  /** Why there is no content. */
  fault?: ConfigurationFault;
}

/** Bytes that may be a private key. They are not shown when this is printed or serialised. */
export class InputContent {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  bytes(): Buffer {
    return this.#bytes;
  }
}

/** Reads the value, or the file it names. Never throws: what went wrong is in `fault`. */
export async function readInput(input: TlsInput<PemValue | SecretValue>): Promise<ReadInput> {
  const { option, variable, value } = input;
  const location: OptionLocation = { option, variable };
  if (value instanceof Secret) return withContent(location, Buffer.from(value.reveal(), 'utf8'));
  const path: unknown = value.file;
  if (typeof path !== 'string')
    return { ...location, fault: fault(location, 'must be text or { file: path }.') };
  try {
    return withContent({ ...location, path }, await readRegularFile(path));
  } catch (error) {
    return { ...location, path, fault: fault(location, whyUnreadable(path, error)) };
  }
}

/** A fault of this option. */
export function fault(location: OptionLocation, message: string): ConfigurationFault {
  return location.variable === undefined
    ? { option: location.option, message }
    : { option: location.option, variable: location.variable, message };
}

/** "the file /run/secrets/key.pem", or "the value": how a message begins. */
export function nameOf(input: { path?: string }): string {
  return input.path === undefined ? 'the value' : `the file ${input.path}`;
}

/** The file's name in a command, quoted for the shell. */
export function pathOf(input: { path?: string }, fallback: string): string {
  if (input.path === undefined) return fallback;
  return /^[\w./@:+-]+$/.test(input.path) ? input.path : `'${input.path.replaceAll("'", `'\\''`)}'`;
}

function withContent(location: OptionLocation & { path?: string }, bytes: Buffer): ReadInput {
  if (bytes.toString('latin1').trim() !== '') return { ...location, content: new InputContent(bytes) };
  return {
    ...location,
    fault: fault(location, `${nameOf(location)} is empty. Fill it, or leave the option out.`),
  };
}
