import { readRegularFile, whyUnreadable } from '../../config/read-file.js';
import { type TlsInput } from '../../config/resolved-options.js';
import { Secret } from '../../config/secret.js';
import { type ConfigurationFault, type OptionLocation } from '../../errors/index.js';

/** A PEM, key or passphrase as read: its bytes, or why there are none. */
export class ReadInput implements OptionLocation {
  readonly option: string;
  readonly variable?: string;
  /** The file, if the value is in one. */
  readonly path?: string;
  /** Why there are no bytes. */
  readonly fault?: ConfigurationFault;
  /** They may be a private key: not shown when this is printed or serialised. */
  readonly #bytes?: Buffer;

  /** @param read the bytes, or the message that says why there are none */
  constructor({ option, variable, path }: OptionLocation & { path?: string }, read: Buffer | string) {
    this.option = option;
    this.variable = variable;
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

  /** The file in a shell command, quoted where it has to be. */
  get argument(): string {
    if (this.path === undefined) return '<file>';
    return /^[\w./@:+-]+$/.test(this.path) ? this.path : `'${this.path.replaceAll("'", `'\\''`)}'`;
  }

  faultOf(message: string): ConfigurationFault {
    return { option: this.option, variable: this.variable, message };
  }
}

/** Reads the value, or the file it names. Never throws: what went wrong is in `fault`. */
export async function readInput(input: TlsInput): Promise<ReadInput> {
  const { value } = input;
  if (value instanceof Secret) return new ReadInput(input, Buffer.from(value.reveal(), 'utf8'));
  const path: unknown = value.file;
  // The identity is read although other checks may have found faults in the options.
  if (typeof path !== 'string') return new ReadInput(input, 'must be text or { file: path }.');
  const read = await readRegularFile(path).catch((error: unknown) => whyUnreadable(path, error));
  return new ReadInput({ ...input, path }, read);
}
