import { type ClientRequest } from 'node:http';
import { type RequestOptions } from 'node:https';
import net, { isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type Duplex } from 'node:stream';
import tls, { type SecureContext, type TLSSocket } from 'node:tls';
import { type ProxyFor } from '../../config/address.js';
import { codedError } from '../../errors/service.error.js';
import { setImmediate } from '../../time/time.js';
import { type Pool } from './connection-state.js';
import { attemptTimeoutPerAddress, authorityOf, ProxyTunnel } from './proxy-tunnel.js';

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
