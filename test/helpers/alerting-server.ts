import { createCipheriv, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type TlsOptions } from 'node:tls';
import { expandLabel } from '../../lib/testing/servers/client-certificate.js';

type Version = 'TLSv1.2' | 'TLSv1.3';

const FATAL = 2;
const HANDSHAKE = 22;
const CHANGE_CIPHER_SPEC = 20;
const ALERT = 21;
const APPLICATION_DATA = 23;
const SUITES = {
  'TLSv1.2': { cipher: 'aes-128-gcm', hash: 'sha256', keyLength: 16 },
  'TLSv1.3': { cipher: 'aes-256-gcm', hash: 'sha384', keyLength: 32 },
} as const;

/**
 * A socket below a TLS server that reads along, so that a fatal alert can be put after any record of the server. Node
 * has no way to send one.
 */
class Tap extends Duplex {
  /** The number of the next record under the key of application data. In TLS 1.2 the Finished record counts too. */
  #records = 0;
  #counts = false;
  #serverRandom = Buffer.alloc(0);
  #left: { client: Buffer; server: Buffer } = { client: Buffer.alloc(0), server: Buffer.alloc(0) };

  /** By label of the key log; `client random` too. */
  readonly secrets = new Map<string, Buffer>();

  constructor(
    readonly raw: Socket,
    readonly version: Version,
    /** TLS 1.2: the alert with which the handshake ends, in place of the server's last messages. */
    readonly refusal?: number,
  ) {
    super();
    raw.on('data', (chunk: Buffer) => {
      // In TLS 1.3 the client's first encrypted record comes after all of the server's handshake.
      this.#follow('client', chunk, (type) => {
        if (version === 'TLSv1.3' && type === APPLICATION_DATA) this.#counts = true;
      });
      this.push(chunk);
    });
    raw.on('end', () => this.push(null)).on('error', (error) => this.destroy(error));
    raw.on('close', () => this.destroy());
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#follow('server', chunk, (type, content) => {
      if (this.#counts) this.#records += 1;
      if (type === HANDSHAKE && content[0] === 2 && this.#serverRandom.length === 0)
        this.#serverRandom = Buffer.from(content.subarray(6, 38));
      if (this.version === 'TLSv1.2' && type === CHANGE_CIPHER_SPEC) this.#counts = true;
    });
    if (this.refusal !== undefined && this.#counts) return void this.raw.end(plainAlert(this.refusal), done);
    this.raw.write(chunk, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.raw.destroy();
    done(error);
  }

  /** Sends a fatal alert as the server's next record (RFC 5246, 6.2.3.3; RFC 8446, 5.2). Without an alert, it only ends the connection. */
  alert(number?: number): void {
    if (number === undefined) return void this.raw.end();
    this.raw.end(this.version === 'TLSv1.3' ? this.#alert13(number) : this.#alert12(number));
  }

  #alert13(number: number): Buffer {
    const { cipher, hash, keyLength } = SUITES['TLSv1.3'];
    const secret = this.secrets.get('SERVER_TRAFFIC_SECRET_0')!;
    const key = expandLabel(hash, secret, 'key', keyLength);
    const nonce = expandLabel(hash, secret, 'iv', 12);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.#records) >>> 0, 8);
    const content = Buffer.from([FATAL, number, ALERT]);
    const header = Buffer.from([APPLICATION_DATA, 3, 3, 0, content.length + 16]);
    return Buffer.concat([header, seal(cipher, key, nonce, header, content)]);
  }

  #alert12(number: number): Buffer {
    const { cipher, hash, keyLength } = SUITES['TLSv1.2'];
    const seed = Buffer.concat([this.#serverRandom, this.secrets.get('client random')!]);
    const block = expand12(
      hash,
      this.secrets.get('CLIENT_RANDOM')!,
      'key expansion',
      seed,
      2 * keyLength + 8,
    );
    const key = block.subarray(keyLength, 2 * keyLength);
    const sequence = Buffer.alloc(8);
    sequence.writeBigUInt64BE(BigInt(this.#records));
    const nonce = Buffer.concat([block.subarray(2 * keyLength + 4), sequence]);
    const content = Buffer.from([FATAL, number]);
    const aad = Buffer.concat([sequence, Buffer.from([ALERT, 3, 3, 0, content.length])]);
    const header = Buffer.from([ALERT, 3, 3, 0, 8 + content.length + 16]);
    return Buffer.concat([header, sequence, seal(cipher, key, nonce, aad, content)]);
  }

  #follow(side: 'client' | 'server', chunk: Buffer, onRecord: (type: number, content: Buffer) => void): void {
    let left = Buffer.concat([this.#left[side], chunk]);
    while (left.length >= 5 && left.length >= 5 + left.readUInt16BE(3)) {
      const end = 5 + left.readUInt16BE(3);
      onRecord(left[0], left.subarray(5, end));
      left = left.subarray(end);
    }
    this.#left[side] = left;
  }
}

/** A fatal alert in plain text, as a server sends it before the handshake has keys (RFC 5246, 7.2). */
export function plainAlert(number: number): Buffer {
  return Buffer.from([ALERT, 3, 3, 0, 2, FATAL, number]);
}

function seal(
  cipher: 'aes-128-gcm' | 'aes-256-gcm',
  key: Buffer,
  nonce: Buffer,
  aad: Buffer,
  content: Buffer,
): Buffer {
  const encryption = createCipheriv(cipher, key, nonce);
  encryption.setAAD(aad);
  return Buffer.concat([encryption.update(content), encryption.final(), encryption.getAuthTag()]);
}

/** The PRF of TLS 1.2 (RFC 5246, 5). */
function expand12(hash: string, secret: Buffer, label: string, seed: Buffer, length: number): Buffer {
  const labelled = Buffer.concat([Buffer.from(label), seed]);
  const hmac = (data: Buffer) => createHmac(hash, secret).update(data).digest();
  const blocks: Buffer[] = [];
  for (let a = hmac(labelled); blocks.length * 32 < length; a = hmac(a))
    blocks.push(hmac(Buffer.concat([a, labelled])));
  return Buffer.concat(blocks).subarray(0, length);
}

export interface AlertingServer {
  url: string;
  close(): Promise<void>;
}

/** Sends the alert on the newest connection, and ends this connection. Without an alert, it only ends the connection. */
export type SendAlert = (alert?: number) => void;

/**
 * A real HTTPS server whose requests can be ended with a fatal alert at any time.
 * @param refusalOf TLS 1.2: asked at each connection for an alert that answers the client's certificate, in the handshake
 */
export async function alertingServer(
  version: Version,
  options: TlsOptions,
  listener: (...args: [...Parameters<RequestListener>, SendAlert]) => void,
  onSecure?: (alert: SendAlert) => void,
  refusalOf?: () => number | undefined,
): Promise<AlertingServer> {
  let tap: Tap | undefined;
  const send: SendAlert = (alert) => tap?.alert(alert);
  const server = createServer(
    {
      ...options,
      minVersion: version,
      maxVersion: version,
      ciphers: version === 'TLSv1.3' ? 'TLS_AES_256_GCM_SHA384' : 'ECDHE-ECDSA-AES128-GCM-SHA256',
    },
    (request, response) => listener(request, response, send),
  );
  server.on('keylog', (line: Buffer) => {
    const [label, random, secret] = line.toString('latin1').trim().split(' ');
    tap?.secrets.set(label, Buffer.from(secret, 'hex')).set('client random', Buffer.from(random, 'hex'));
  });
  server.on('tlsClientError', () => undefined);
  if (onSecure) server.prependListener('secureConnection', () => onSecure(send));
  const sockets = new Set<Socket>();
  const tcp = createTcpServer((raw) => {
    sockets.add(raw);
    raw.once('close', () => sockets.delete(raw));
    tap = new Tap(raw, version, refusalOf?.());
    tap.on('error', () => undefined);
    server.emit('connection', tap);
  });
  tcp.listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  return {
    url: `https://127.0.0.1:${(tcp.address() as AddressInfo).port}`,
    close: async () => {
      for (const raw of sockets) raw.destroy();
      await new Promise((resolve) => tcp.close(resolve));
    },
  };
}
