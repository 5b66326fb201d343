import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { codedError } from '../../errors/error-codes.js';
import { type Secret } from '../../config/secret.js';
import { isSuccess } from '../../exchange/exchange.types.js';
import { setImmediate } from '../../time/clock.js';
import { minTlsVersion } from '../material/secure-contexts.js';
import { KEEP_ALIVE_MS, attemptTimeoutPerAddress } from './connecting.js';

/**
 * A tunnel through the proxy (RFC 9110, 9.3.6), as a transport for TLS. Writes wait until the tunnel is open. The proxy
 * gets the target's name and its own credentials, and nothing else: no header of the call, no client key. It is not an
 * agent, as hpagent is, which opened 40 tunnels for 5 sockets: here the agent counts its connections.
 *
 * Until the tunnel is open, all error codes begin with ERR_PROXY_: for example ERR_PROXY_ECONNREFUSED if the proxy cannot be
 * reached, ERR_PROXY_TIMEOUT if it does not answer, ERR_PROXY_TUNNEL_407 if it refuses. With any of them, nothing of a
 * request has passed.
 */
export class ProxyTunnel extends Duplex {
  readonly #connect: http.ClientRequest;
  #socket?: Socket;
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
    const connect = openConnectRequest(proxy, authority, timeout);
    this.#connect = connect;
    connect.once('connect', (answer, socket: Socket, head: Buffer) => {
      const { statusCode = 0 } = answer;
      if (isSuccess(statusCode)) this.#attach(socket, head);
      else this.destroy(refusedTunnelError(answer));
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

  /** The connection to the proxy, once the tunnel is open. */
  get socket(): Socket | undefined {
    return this.#socket;
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    // Once the other side has ended, nobody reads this (for example TLS's close_notify). An error would lose data that has
    // not been read yet.
    this.#whenOpen((socket) => {
      if (socket.readableEnded) return callback();
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

  #attach(socket: Socket, head: Buffer): void {
    this.#socket = socket;
    socket.setTimeout(0);
    // TLS in the tunnel cannot set it.
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => {
      // After the end, received data may still wait to be read. The stream then closes by itself.
      if (!socket.readableEnded) this.destroy();
    });
    if (head.length > 0) socket.unshift(head);
    this.#waiting?.();
  }
}

function openConnectRequest(target: Secret, authority: string, timeout?: number): http.ClientRequest {
  const proxy = new URL(target.reveal());
  const headers: http.OutgoingHttpHeaders = { host: authority };
  if (proxy.username || proxy.password) headers['proxy-authorization'] = basicAuthorization(proxy);
  // Node would decode them too, and throw for a single `%`.
  proxy.username = proxy.password = '';
  const { protocol, hostname, port } = urlToHttpOptions(proxy);
  const options = {
    hostname,
    port,
    headers,
    method: 'CONNECT',
    path: authority,
    timeout,
    agent: false,
    ...attemptTimeoutPerAddress(timeout),
  } as const;
  if (protocol !== 'https:') return http.request(options);
  // By default Node verifies the proxy against the name in the Host header, which is the target's.
  const servername = hostname && !isIP(hostname) ? hostname : '';
  return https.request({ ...options, servername, rejectUnauthorized: true, minVersion: minTlsVersion() });
}

function basicAuthorization({ username, password }: URL): string {
  const credentials = `${decodePercent(username)}:${decodePercent(password)}`;
  return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * A proxy may answer 407 and take other schemes than Basic alone (NTLM, Negotiate; RFC 9110, 11.7.1). Tinyproxy answers 401
 * to a wrong password.
 */
function refusedTunnelError({ statusCode, headers }: http.IncomingMessage): Error {
  const said = `The proxy answered CONNECT with status ${statusCode}`;
  const isLogin = statusCode === 401 || statusCode === 407;
  const schemes = headers[statusCode === 401 ? 'www-authenticate' : 'proxy-authenticate'];
  if (isLogin && schemes && !/(^|,)\s*basic\b/i.test(schemes))
    return codedError(`${said}, and takes no Basic authentication.`, 'ERR_PROXY_AUTH_SCHEME');
  const hint = isLogin ? ': check the user and password in http.proxy' : '';
  return codedError(`${said}${hint}.`, `ERR_PROXY_TUNNEL_${statusCode}`);
}
