import * as http from 'node:http';
import { type ClientRequest } from 'node:http';
import * as https from 'node:https';
import { type RequestOptions } from 'node:https';
import net, { isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Duplex } from 'node:stream';
import tls, { type SecureContext, type TLSSocket } from 'node:tls';
import { type ProxyFor } from '../../config/address.js';
import { codedError } from '../../errors/service.error.js';
import { setImmediate } from '../../time/time.js';
import { type Pool } from './connection-state.js';
import { urlToHttpOptions } from 'node:url';
import { type Secret } from '../../config/secret.js';
import { isSuccess } from '../../exchange/response.js';
import { minTlsVersion } from '../material/secure-contexts.js';

/** A connection. Over TLS through a proxy, it has its tunnel in `transport`. */
export type Connection = Duplex & { transport?: { readonly socket?: Duplex } };

/** Opens a connection for a request with these options, in this pool. */
export type Connector = (options: RequestOptions, pool: Pick<Pool, 'session'>) => Socket;

export interface ConnectorSettings {
  /** Returns the proxy for an address, if there is one. */
  proxyFor?: ProxyFor;
  /** Milliseconds to connect (`http.connectTimeout`). Default: no limit. */
  connectTimeoutMs?: number;
}

/**
 * The options of a request that its connection uses. It is an allow-list: of the TLS options only the server name is in it, so
 * that no request can change the certificate, the trust anchor or the verification.
 */
const CONNECTION_OPTIONS = new Set(
  (
    'host port servername family hints lookup localAddress localPort autoSelectFamily ' +
    'autoSelectFamilyAttemptTimeout noDelay keepAlive keepAliveInitialDelay'
  ).split(' '),
);

/**
 * The key of a destination. `https.Agent.getName()` would join all PEMs into its key at each request.
 */
export function originOf({ host, port, localAddress, family, servername }: RequestOptions): string {
  return `${host}:${port}:${localAddress ?? ''}:${family ?? ''}:${servername ?? ''}`;
}

/** The same server name that Node's agent would set later, after the pool was searched. */
export function serverNameOf(request: ClientRequest, { host }: RequestOptions): string {
  const named = String(request.getHeader('host') ?? host);
  const name = named.startsWith('[') ? named.slice(1, named.indexOf(']')) : named.split(':', 1)[0];
  return isIP(name) ? '' : name;
}

/**
 * Connects over TLS with one SecureContext, through a proxy if there is one. The server is always verified, even if a request sets
 * `rejectUnauthorized: false` or NODE_TLS_REJECT_UNAUTHORIZED is 0.
 */
export function tlsConnector(context: () => SecureContext, settings: ConnectorSettings = {}): Connector {
  const { proxyFor, connectTimeoutMs } = settings;
  return (options, pool) => {
    const given: Record<string, unknown> = attemptTimeoutPerAddress(connectTimeoutMs);
    for (const [key, value] of Object.entries(options)) if (CONNECTION_OPTIONS.has(key)) given[key] = value;
    const authority = authorityOf(options);
    const proxy = proxyFor?.(`https://${authority}`);
    const transport = proxy && new ProxyTunnel(proxy, authority, connectTimeoutMs);
    const socket: TLSSocket & Connection = tls.connect({
      ...given,
      socket: transport,
      session: pool.session,
      secureContext: context(),
      rejectUnauthorized: true,
    });
    if (transport) setTransport(socket, transport);
    // The default for a connection without a tunnel. With a half-open socket, Node would reuse a connection that the server
    // has closed, and the request would wait for its time limit.
    socket.allowHalfOpen = false;
    // Node emits `session` only after it has verified the server.
    socket.on('session', (session) => (pool.session = session));
    socket.once('close', (hadError: boolean) => hadError && (pool.session = undefined));
    return socket;
  };
}

/** TLS over a stream has no handle in the event loop, so that ref() and unref() of the TLS connection would do nothing. */
function setTransport(socket: TLSSocket & Connection, transport: ProxyTunnel): void {
  const hold = (isHeld: boolean) => () => {
    transport.hold(isHeld);
    return socket;
  };
  Object.assign(socket, { transport, ref: hold(true), unref: hold(false) });
}

/** Connects over plain HTTP, which is allowed to loopback addresses only. */
export function plainConnector({ connectTimeoutMs }: ConnectorSettings = {}): Connector {
  return (options) =>
    net.connect({ ...attemptTimeoutPerAddress(connectTimeoutMs), ...options } as TcpNetConnectOpts);
}

/**
 * The connector of a closed agent. Its connections fail in the next turn of the event loop, before anything is sent, and
 * Node then fails the request that waits for them.
 */
export function failToConnect(): Socket {
  const error = codedError('The client is closed: its agent accepts no more requests.', 'ERR_AGENT_CLOSED');
  const lookup: LookupFunction = (_host, _how, found) => setImmediate(() => found(error, []));
  return net.connect({ host: 'closed', port: 1, lookup });
}

/** Host and port of a destination as in a URL, with the brackets of an IPv6 address. */
export function authorityOf({ host, port }: { host?: string | null; port?: number | string | null }): string {
  return `${host?.includes(':') ? `[${host}]` : host}:${port ?? 443}`;
}

/**
 * The TCP keep-alive probes of an idle connection begin after so many milliseconds, so that firewalls do not drop it. Linux closes
 * the connection after ten probes without a reply, one per second.
 */
export const KEEP_ALIVE_MS = 1_000;

/**
 * The option of net.connect for a host name with several addresses. By default Node gives each address but the last 250 ms,
 * which is too short for a distant server (https://github.com/nodejs/node/issues/54359). Here each gets a quarter of the time limit.
 */
export function attemptTimeoutPerAddress(connectTimeoutMs?: number) {
  return connectTimeoutMs ? { autoSelectFamilyAttemptTimeout: Math.ceil(connectTimeoutMs / 4) } : {};
}

/**
 * A tunnel through an HTTP proxy (CONNECT, https://www.rfc-editor.org/rfc/rfc9110#section-9.3.6), as the transport of a TLS
 * connection. Writes wait until the tunnel is open. The proxy gets the destination's host and port and its own credentials, but no
 * header of the call and no client key. A tunnel is one connection of the KeepAliveAgent, so `maxSockets` limits the tunnels too.
 *
 * Until the tunnel is open, all error codes begin with ERR_PROXY_, and nothing of a request has been sent:
 * - ERR_PROXY_ECONNREFUSED: the proxy cannot be reached (other system codes likewise)
 * - ERR_PROXY_TIMEOUT: the proxy did not respond in time
 * - ERR_PROXY_TUNNEL_407: the proxy refused with this status
 */
export class ProxyTunnel extends Duplex {
  readonly #connect: http.ClientRequest;
  /** The connection to the proxy, once the tunnel is open. */
  socket?: Socket;
  /** Whether the tunnel keeps the process running. */
  #isHeld = true;
  /** The write or end that waits for the tunnel. A Duplex stream has at most one of them at a time. */
  #waiting?: () => void;

  /**
   * @param proxy the proxy's URL, `http:` or `https:`, perhaps with `user:password@`. The configuration has checked it.
   * @param authority host and port of the destination
   * @param timeout milliseconds to connect to the proxy and to get its response to CONNECT. Default: no limit
   */
  constructor(proxy: Secret, authority: string, timeout?: number) {
    // The TLS connection above decides what to do when the other side ends.
    super({ allowHalfOpen: true });
    const connect = openConnectRequest(proxy, authority, timeout);
    this.#connect = connect;
    connect.once('socket', () => this.hold(this.#isHeld));
    connect.once('connect', (response, socket: Socket, head: Buffer) => {
      const { statusCode = 0 } = response;
      if (isSuccess(statusCode)) this.#attach(socket, head);
      else this.destroy(refusedTunnelError(response));
    });
    // If the event loop was blocked, the response may have arrived before the time-out: let the loop process it first.
    const expire = () => connect.destroy(codedError('The proxy did not respond in time.', 'TIMEOUT'));
    connect.once('timeout', () => setImmediate(expire));
    connect.on('error', ({ code = 'UNKNOWN' }: NodeJS.ErrnoException) => {
      const own = `ERR_PROXY_${code.replace(/^ERR_/, '')}`;
      this.destroy(codedError(`The proxy cannot be reached (${own}).`, own));
    });
    connect.end();
  }

  /** Lets the connection to the proxy keep the process running or not, also before the tunnel is open. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    const { socket } = this.#connect;
    if (isHeld) socket?.ref();
    else socket?.unref();
  }

  override _read(): void {
    this.socket?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    // After the other side has ended, drop what is written, for example the close_notify of TLS. Writing it would fail, and
    // that error would discard received data that has not been read yet.
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
    this.socket?.destroy();
    callback(error);
  }

  #whenOpen(act: (socket: Socket) => void): void {
    const socket = this.socket;
    if (socket) act(socket);
    else this.#waiting = () => this.#whenOpen(act);
  }

  #attach(socket: Socket, head: Buffer): void {
    this.socket = socket;
    socket.setTimeout(0);
    // The TLS connection in the tunnel cannot set this option on the proxy's socket.
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => {
      // After an orderly end, received data may still wait to be read, and the stream closes by itself afterwards.
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
  // Node would decode user and password itself, and throw for a single `%` in them.
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
  // By default Node verifies the proxy's certificate against the Host header, which names the destination.
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
 * The error for a proxy that refused the tunnel. With 407, the proxy may support only other schemes than Basic, such as NTLM
 * and Negotiate (https://www.rfc-editor.org/rfc/rfc9110#section-11.7.1). Tinyproxy responds with 401 to a wrong password.
 */
function refusedTunnelError({ statusCode, headers }: http.IncomingMessage): Error {
  const message = `The proxy responded to CONNECT with status ${statusCode}`;
  const isLogin = statusCode === 401 || statusCode === 407;
  const schemes = headers[statusCode === 401 ? 'www-authenticate' : 'proxy-authenticate'];
  if (isLogin && schemes && !/(^|,)\s*basic\b/i.test(schemes))
    return codedError(`${message}, and takes no Basic authentication.`, 'ERR_PROXY_AUTH_SCHEME');
  const hint = isLogin ? ': check the user and password in http.proxy' : '';
  return codedError(`${message}${hint}.`, `ERR_PROXY_TUNNEL_${statusCode}`);
}
