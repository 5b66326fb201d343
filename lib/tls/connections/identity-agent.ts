import { type ClientRequest } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { type Duplex } from 'node:stream';
import tls, { type SecureContext, type TLSSocket } from 'node:tls';
import { type ProxyFor } from '../../config/address.js';
import { systemClock, within } from '../../time/time.js';
import { authorityOf, KEEP_ALIVE_MS, attemptTimeoutPerAddress } from './connecting.js';
import { type ConnectionState } from './connection-state.js';
import {
  KeepAliveAgent,
  failToConnect,
  connectionKey,
  type Connector,
  type KeepAliveSettings,
} from './keep-alive-agent.js';
import { ProxyTunnel } from './proxy-tunnel.js';
import { type Connection } from './unread-input.js';

export interface IdentityAgentSettings extends KeepAliveSettings {
  /** Returns the proxy for an address, if there is one. */
  proxyFor?: ProxyFor;
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
const MAX_SESSIONS = 100;

/**
 * The https.Agent of this package, which the host application can also use with axios, got or node:https. It stays the same
 * object when the client certificate changes. Behind it, each certificate has a KeepAliveAgent of its own: requests in flight
 * finish on the old agent, and new requests use the new one.
 */
export class IdentityAgent extends Agent {
  readonly #settings: IdentityAgentSettings;
  #current: KeepAliveAgent;
  /** The agents of earlier certificates, which may still have requests in flight. */
  readonly #retired = new Set<KeepAliveAgent>();
  #isClosed = false;
  /** Called before each request. */
  beforeRequest?: () => void;

  constructor(context: () => SecureContext, settings: IdentityAgentSettings) {
    super({ keepAlive: true, maxSockets: settings.maxSockets });
    this.#settings = settings;
    this.#current = new KeepAliveAgent(tlsConnector(context, settings), settings);
    // Every agent has these properties. Here they are not enumerable, so that JSON.stringify() does not descend into sockets.
    for (const pool of ['sockets', 'freeSockets', 'requests'] as const)
      Object.defineProperty(this, pool, { get: () => this.#current[pool], enumerable: false });
  }

  override getName(options: RequestOptions): string {
    return connectionKey(options);
  }

  /** node:http calls this for each request. */
  addRequest(request: ClientRequest, options: RequestOptions): void {
    this.beforeRequest?.();
    this.#current.addRequest(request, options);
  }

  override createConnection(options: RequestOptions): Duplex {
    return this.#current.createConnection(options);
  }

  /**
   * Makes new requests connect with this secure context. Requests in flight, and requests that wait for a connection, finish
   * with the previous one.
   */
  switchContext(context: () => SecureContext): void {
    if (!this.#isClosed) this.#switchConnector(tlsConnector(context, this.#settings));
  }

  /**
   * Closes the agent: new requests fail with ERR_AGENT_CLOSED, and idle connections close at once. Requests in flight may take
   * `graceMs` to finish, then their connections are closed. Resolves when no request is left.
   */
  async close(graceMs: number): Promise<void> {
    if (!this.#isClosed) this.#switchConnector(failToConnect);
    this.#isClosed = true;
    const { clock = systemClock } = this.#settings;
    const grace = { clock, timeoutMs: graceMs, expired: () => new Error('The grace is over') };
    const unused = () => Promise.all([...this.#retired].map((each) => each.waitUntilUnused()));
    // Requests that are still in flight after the grace end with the close below.
    if (graceMs > 0) await within(grace, unused).catch(() => undefined);
    for (const connections of this.#retired) connections.close();
  }

  /** Closes all connections. Requests that wait in the queue continue on new connections. */
  override destroy(): void {
    for (const connections of [...this.#retired, this.#current]) connections.destroy();
  }

  /**
   * The state of a connection that this agent has made. Undefined for any other connection: another library may have replaced
   * the agent of the request.
   */
  stateOf(socket: Duplex): ConnectionState | undefined {
    const state = this.#current.stateOf(socket);
    if (state || this.#retired.size === 0) return state;
    return [...this.#retired].map((connections) => connections.stateOf(socket)).find(Boolean);
  }

  /** Opens a connection for a request that will follow soon ({@link KeepAliveAgent.preconnect}). */
  preconnect({ hostname, port }: Pick<URL, 'hostname' | 'port'>): void {
    if (this.#isClosed) return;
    const host = hostname.replace(/^\[|\]$/g, '');
    const servername = isIP(host) ? '' : host;
    // The same options that Node's agent sets.
    const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    this.#current.preconnect({ host, port: port || 443, servername, ...socketOptions });
  }

  #switchConnector(connect: Connector): void {
    const before = this.#current;
    this.#current = new KeepAliveAgent(connect, this.#settings);
    before.retire();
    this.#retired.add(before);
    void before.waitUntilUnused().then(() => this.#retired.delete(before));
  }
}

/**
 * Makes TLS connections with one SecureContext, through a proxy if there is one, and keeps their TLS sessions for resumption. The
 * server is always verified, even if a request sets `rejectUnauthorized: false` or NODE_TLS_REJECT_UNAUTHORIZED is 0.
 */
function tlsConnector(context: () => SecureContext, settings: IdentityAgentSettings): Connector {
  const { proxyFor, connectTimeoutMs } = settings;
  const sessions = new Map<string, Buffer>();
  return (options) => {
    const name = connectionKey(options);
    const given: Record<string, unknown> = attemptTimeoutPerAddress(connectTimeoutMs);
    for (const [key, value] of Object.entries(options)) if (CONNECTION_OPTIONS.has(key)) given[key] = value;
    const authority = authorityOf(options);
    const proxy = proxyFor?.(`https://${authority}`);
    const transport = proxy && new ProxyTunnel(proxy, authority, connectTimeoutMs);
    if (transport) given.socket = transport;
    const session = sessions.get(name);
    const socket: TLSSocket & Connection = tls.connect({
      ...given,
      session,
      secureContext: context(),
      rejectUnauthorized: true,
    });
    socket.transport = transport;
    // The default for a connection without a tunnel. With a half-open socket, Node would reuse a connection that the server
    // has closed, and the request would wait for its time limit.
    socket.allowHalfOpen = false;
    // Node emits `session` only after it has verified the server.
    socket.on('session', (made) => {
      if (sessions.size >= MAX_SESSIONS) sessions.clear();
      sessions.set(name, made);
    });
    socket.once('close', (hadError: boolean) => hadError && sessions.delete(name));
    return socket;
  };
}
