import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { codedError } from '../../errors/coded-error.js';
import { type Secret } from '../../config/secret.js';
import { ownOptions } from '../../exchange/own-properties.js';
import { setImmediate } from '../../time/immediate.js';
import { connectInTurn } from './addresses.js';

/**
 * A tunnel through the proxy (RFC 9110, 9.3.6), as a transport for TLS. Writes wait until the tunnel is open. The proxy
 * gets the target's name and its own credentials, and nothing else: no header of the call, no client key. It is not an
 * agent, as hpagent is, which opened 40 tunnels for 5 sockets: here the agent counts its connections.
 *
 * Until the tunnel is open, all error codes begin with ERR_PROXY_: for example ERR_PROXY_ECONNREFUSED if the proxy cannot be
 * reached, ERR_PROXY_TIMEOUT if it does not answer, ERR_PROXY_TUNNEL_407 if it refuses. Later, ERR_PROXY_TUNNEL_ENDED is
 * the end of an idle tunnel. With any of them, nothing of a request has passed.
 */
export class ProxyTunnel extends Duplex {
  readonly #connect: http.ClientRequest;
  #socket?: Socket;
  /** Nothing has been sent since the connection was last free. */
  #isUntouched = false;
  /** The write or end that waits for the tunnel. Duplex makes one at a time. */
  #waiting?: () => void;

  /**
   * @param proxy its URL, `http:` or `https:`, perhaps with `user:password@`; checked by the configuration
   * @param authority host and port of the target
   * @param timeout milliseconds for the proxy to connect and to answer CONNECT. Default: no limit
   */
  constructor(proxy: Secret, authority: string, timeout?: number) {
    // TLS decides what the end of the connection means.
    super({ allowHalfOpen: true });
    this.#connect = connectRequest(proxy, authority, timeout);
    this.#await(this.#connect);
  }

  ref(): void {
    this.#socket?.ref();
  }

  /** To be called when its connection is free: it then does not keep the process running. */
  rest(): void {
    this.#isUntouched = true;
    this.#socket?.unref();
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    // Once the other side has ended, nobody reads this (for example TLS's close_notify). An error would lose data that has
    // not been read yet.
    this.#whenOpen((socket) => {
      if (socket.readableEnded) return callback();
      this.#isUntouched = false;
      socket.write(chunk, callback);
    });
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
      this.destroy(refused(statusCode));
    });
    // An answer that has arrived is read first, as in an exchange: the request is over then.
    const expire = () => connect.destroy(codedError('The proxy did not answer in time.', 'TIMEOUT'));
    connect.once('timeout', () => setImmediate(expire));
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
    socket.once('end', () => (this.#isUntouched ? this.destroy(ended()) : this.push(null)));
    socket.once('error', (error) => this.destroy(this.#isUntouched ? ended() : error));
    socket.once('close', () => {
      // After the end, received data may still wait to be read. The stream then closes by itself.
      if (!socket.readableEnded) this.destroy();
    });
    if (head.length > 0) socket.unshift(head);
    this.#waiting?.();
  }
}

/** Host and port of a target, as in an address. */
export function authorityOf({ host, port }: { host?: string | null; port?: number | string | null }): string {
  return `${host?.includes(':') ? `[${host}]` : host}:${port ?? 443}`;
}

function connectRequest(target: Secret, authority: string, timeout?: number): http.ClientRequest {
  const proxy = new URL(target.reveal());
  const headers: http.OutgoingHttpHeaders = { host: authority };
  if (proxy.username || proxy.password) headers['proxy-authorization'] = basic(proxy);
  // Node would decode them too, and throw for a single `%`.
  proxy.username = proxy.password = '';
  const { protocol, hostname, port } = urlToHttpOptions(proxy);
  const options = ownOptions<http.RequestOptions>({
    hostname,
    port,
    headers,
    method: 'CONNECT',
    path: authority,
    timeout,
  });
  if (protocol !== 'https:') return http.request({ ...options, agent: ofItsOwn(new http.Agent(), timeout) });
  // By default Node verifies the proxy against the name in the Host header, which is the target's.
  const servername = hostname && !isIP(hostname) ? hostname : '';
  const agent = ofItsOwn(new https.Agent(), timeout);
  return https.request({ ...options, agent, servername, rejectUnauthorized: true, minVersion: 'TLSv1.2' });
}

/** An agent for one connection. */
function ofItsOwn(agent: http.Agent, connectTimeoutMs?: number): http.Agent {
  const connect = agent.createConnection.bind(agent) as (options: http.ClientRequestArgs) => Socket;
  agent.createConnection = (options) => connectInTurn(connect, options, connectTimeoutMs);
  return agent;
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

/** Only the tunnel knows that the server cannot have got a request that was given to this connection in the meantime. */
function ended(): Error {
  const message = 'The proxy ended the tunnel while it was idle; nothing of a request has passed it since.';
  return codedError(message, 'ERR_PROXY_TUNNEL_ENDED');
}

function refused(status: number): Error {
  const hint = status === 407 ? ': check the user and password in http.proxy' : '';
  return codedError(`The proxy answered CONNECT with status ${status}${hint}.`, `ERR_PROXY_TUNNEL_${status}`);
}
