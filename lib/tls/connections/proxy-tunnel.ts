import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { type Secret } from '../../config/secret.js';
import { codedError } from './node-agent.js';

/** A proxy's URL, `http:` or `https:`, perhaps with `user:password@`. The configuration has checked that it is one. */
export type ProxyTarget = Secret;

/** Milliseconds for the proxy to connect and to answer CONNECT. */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * A tunnel through the proxy (RFC 9110, 9.3.6), to be TLS's transport: what is written waits until the tunnel stands.
 * The proxy gets the target's name and its own credentials, and nothing else: no header of the call, no client key.
 *
 * Before the tunnel stands, all codes begin with ERR_PROXY_: ERR_PROXY_ECONNREFUSED and the like where the proxy cannot
 * be reached, ERR_PROXY_TIMEOUT where it does not answer, ERR_PROXY_TUNNEL_407 and the like where it refuses.
 */
export function openTunnel(proxy: ProxyTarget, host: string, port: number): ProxyTunnel {
  return new ProxyTunnel(proxy, `${host.includes(':') ? `[${host}]` : host}:${port}`);
}

export class ProxyTunnel extends Duplex {
  readonly #connect: http.ClientRequest;
  #socket?: Socket;
  /** What TLS wrote, or its end, before there was a connection: Duplex hands over one at a time. */
  #waiting?: () => void;

  constructor(proxy: ProxyTarget, authority: string) {
    // The TLS above is to see the end and decide itself.
    super({ allowHalfOpen: true });
    this.#connect = connectRequest(proxy, authority);
    this.#await(this.#connect);
  }

  ref(): void {
    this.#socket?.ref();
  }

  unref(): void {
    this.#socket?.unref();
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    // Once the other side has ended nobody reads this (the close_notify of TLS, for example); an error would cut what is still to be read.
    this.#whenOpen((socket) => (socket.readableEnded ? callback() : socket.write(chunk, callback)));
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#whenOpen((socket) => (socket.readableEnded ? callback() : socket.end(callback)));
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#connect.destroy();
    this.#socket?.destroy();
    callback(error);
  }

  #whenOpen(act: (socket: Socket) => void): void {
    const socket = this.#socket;
    if (socket) act(socket);
    else this.#waiting = () => this.#whenOpen(act);
  }

  #await(connect: http.ClientRequest): void {
    connect.once('connect', ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
      if (statusCode >= 200 && statusCode <= 299) {
        this.#attach(socket, head);
        return;
      }
      socket.destroy();
      this.destroy(refused(statusCode));
    });
    connect.once('timeout', () =>
      connect.destroy(codedError('The proxy did not answer in time.', 'TIMEOUT')),
    );
    connect.on('error', ({ code = 'UNKNOWN' }: NodeJS.ErrnoException) => {
      const own = `ERR_PROXY_${code.replace(/^ERR_/, '')}`;
      this.destroy(codedError(`The proxy cannot be reached (${own}).`, own));
    });
    connect.end();
  }

  #attach(socket: Socket, head: Buffer): void {
    this.#socket = socket;
    socket.setTimeout(0);
    socket.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => {
      // After its end, what was received may still wait to be read: the stream then closes by itself, after that.
      if (!socket.readableEnded) this.destroy();
    });
    if (head.length > 0) socket.unshift(head);
    this.#waiting?.();
  }
}

function connectRequest(target: ProxyTarget, authority: string): http.ClientRequest {
  const proxy = new URL(target.reveal());
  const headers: http.OutgoingHttpHeaders = { host: authority };
  if (proxy.username || proxy.password) headers['proxy-authorization'] = basic(proxy);
  // Node would decode them too, and throw for a `%` that encodes nothing.
  proxy.username = proxy.password = '';
  const { protocol, hostname, port } = urlToHttpOptions(proxy);
  const options = {
    hostname,
    port,
    headers,
    method: 'CONNECT',
    path: authority,
    agent: false,
    timeout: CONNECT_TIMEOUT_MS,
  };
  if (protocol !== 'https:') return http.request(options);
  // Left to itself, Node would take the Host header's name, which is the target's, and verify the proxy against that.
  const servername = hostname && !isIP(hostname) ? hostname : '';
  return https.request({ ...options, servername, rejectUnauthorized: true, minVersion: 'TLSv1.2' });
}

function basic({ username, password }: URL): string {
  const credentials = `${decode(username)}:${decode(password)}`;
  return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function refused(status: number): Error {
  const hint = status === 407 ? ': check the user and password in http.proxy' : '';
  return codedError(`The proxy answered CONNECT with status ${status}${hint}.`, `ERR_PROXY_TUNNEL_${status}`);
}
