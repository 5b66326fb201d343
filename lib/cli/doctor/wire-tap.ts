import { Duplex } from 'node:stream';

const CHANGE_CIPHER_SPEC = 20;
const ALERT = 21;
const HANDSHAKE = 22;
const APPLICATION_DATA = 23;
const CERTIFICATE = 11;
const HEADER = 5;
/** Beginning of an answer that is enough to tell what it is not. */
const FIRST_BYTES = 16;
/** In TLS 1.3, an encrypted record with an alert (RFC 8446, 5.2 and 6: two bytes, the type, the tag). */
const ALERT_RECORD = 2 + 1 + 16;
/** The same with a Finished message and nothing else: four bytes, the longest hash that a suite has, the type, the tag. */
const FINISHED_RECORD = 4 + 48 + 1 + 16;

/**
 * A transport below TLS that looks at the records as they pass. Node does not tell a client whether the server asked for
 * a certificate. What the client sends shows it: only a client that was asked sends a Certificate message, an empty one
 * where it has none (RFC 8446, 4.4.2; RFC 5246, 7.4.6).
 */
export class WireTap extends Duplex {
  readonly #transport: Duplex;
  #first = Buffer.alloc(0);
  #unread = Buffer.alloc(0);
  #sawCipherChange = false;
  #sentCertificate = false;
  #encrypted: number[] = [];

  constructor(transport: Duplex) {
    super({ allowHalfOpen: true });
    this.#transport = transport;
    transport.on('data', (chunk: Buffer) => {
      if (this.#first.length < FIRST_BYTES) {
        this.#first = Buffer.concat([this.#first, chunk]).subarray(0, FIRST_BYTES);
      }
      if (!this.push(chunk)) transport.pause();
    });
    transport.on('end', () => this.push(null));
    transport.on('error', (error) => this.destroy(error));
    transport.on('close', () => this.destroy());
  }

  /** Whether the other side has sent anything. */
  get answered(): boolean {
    return this.#first.length > 0;
  }

  /** What the other side talks: TLS, plain HTTP, or something else. */
  get protocol(): 'tls' | 'http' | 'other' | undefined {
    if (!this.answered) return undefined;
    if (this.#first[0] === HANDSHAKE || this.#first[0] === ALERT) return 'tls';
    return this.#first.toString('latin1').startsWith('HTTP/') ? 'http' : 'other';
  }

  /** Whether the server asked for a client certificate in this handshake. Asked for once it has ended. */
  get askedForCertificate(): boolean {
    if (this.#sentCertificate) return true;
    const messages = this.#encrypted.filter((length) => length > ALERT_RECORD);
    return messages.length > 1 || messages.some((length) => length > FINISHED_RECORD);
  }

  override _read(): void {
    this.#transport.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#follow(chunk);
    this.#transport.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#transport.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#transport.destroy();
    done(error);
  }

  #follow(chunk: Buffer): void {
    let left = Buffer.concat([this.#unread, chunk]);
    while (left.length >= HEADER) {
      const end = HEADER + left.readUInt16BE(3);
      if (left.length < end) break;
      this.#note(left[0], left.subarray(HEADER, end));
      left = left.subarray(end);
    }
    this.#unread = left;
  }

  #note(type: number, content: Buffer): void {
    if (type === CHANGE_CIPHER_SPEC) this.#sawCipherChange = true;
    else if (type === APPLICATION_DATA) this.#encrypted.push(content.length);
    else if (type === HANDSHAKE && !this.#sawCipherChange && holdsCertificate(content))
      this.#sentCertificate = true;
  }
}

/** Whether one of the handshake messages of a record (type, length in three bytes, content) is a Certificate. */
function holdsCertificate(content: Buffer): boolean {
  for (let at = 0; at + 4 <= content.length; at += 4 + content.readUIntBE(at + 1, 3)) {
    if (content[at] === CERTIFICATE) return true;
  }
  return false;
}
