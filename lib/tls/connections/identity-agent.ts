import { type ClientRequest } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { type Duplex } from 'node:stream';
import tls, { type SecureContext, type TLSSocket } from 'node:tls';
import { type ProxyFor } from '../../config/proxy.js';
import { systemClock } from '../../time/clock.js';
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
  /** The proxy for an address, if any. */
  proxyFor?: ProxyFor;
}

/** The options of a request that count for its connection. Of TLS, only the server's name. */
const CONNECTION_OPTIONS = new Set(
  (
    'host port servername family hints lookup localAddress localPort autoSelectFamily ' +
    'autoSelectFamilyAttemptTimeout noDelay keepAlive keepAliveInitialDelay'
  ).split(' '),
);
const MAX_SESSIONS = 100;

/**
 * One https.Agent for the module and for host code (axios, got, node:https), whatever identity is in use. Behind it, each
 * identity has its own connections: calls in flight end on the ones they began on, all others use the newest.
 */
export class IdentityAgent extends Agent {
  readonly #settings: IdentityAgentSettings;
  #current: KeepAliveAgent;
  /** Connections of earlier identities, on which calls may be in flight. */
  readonly #retired = new Set<KeepAliveAgent>();
  #isClosed = false;
  /** Called before each request. */
  beforeRequest?: () => void;

  constructor(context: () => SecureContext, settings: IdentityAgentSettings) {
    super({ keepAlive: true, maxSockets: settings.maxSockets });
    this.#settings = settings;
    this.#current = new KeepAliveAgent(tlsConnector(context, settings), settings);
    // Like those of any agent, but not enumerable: JSON would contain sockets.
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

  /** New calls use this identity. Calls in flight finish with the old one, and so do calls that wait for a connection. */
  switchContext(context: () => SecureContext): void {
    if (!this.#isClosed) this.#switchConnector(tlsConnector(context, this.#settings));
  }

  /**
   * Takes no more calls (ERR_AGENT_CLOSED). Idle connections are closed at once; calls in flight get `graceMs`, then
   * are cut. Resolves as soon as no call is left.
   */
  async close(graceMs: number): Promise<void> {
    if (!this.#isClosed) this.#switchConnector(failToConnect);
    this.#isClosed = true;
    if (graceMs > 0) await this.#waitUntilRetiredUnused(graceMs);
    for (const connections of this.#retired) connections.close();
  }

  /** Closes all connections. Calls that wait for one go on over new ones. */
  override destroy(): void {
    for (const connections of [...this.#retired, this.#current]) connections.destroy();
  }

  /** Of one of its own connections; undefined for any other: another library may replace the agent of a request. */
  stateOf(socket: Duplex): ConnectionState | undefined {
    const state = this.#current.stateOf(socket);
    if (state || this.#retired.size === 0) return state;
    return [...this.#retired].map((connections) => connections.stateOf(socket)).find(Boolean);
  }

  /** Connects for a request that will come soon ({@link KeepAliveAgent.preconnect}). */
  preconnect({ hostname, port }: Pick<URL, 'hostname' | 'port'>): void {
    if (this.#isClosed) return;
    const host = hostname.replace(/^\[|\]$/g, '');
    const servername = isIP(host) ? '' : host;
    // As Node's agent gives them.
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

  #waitUntilRetiredUnused(graceMs: number): Promise<void> {
    const { clock = systemClock } = this.#settings;
    return new Promise((resolve) => {
      const cancel = clock.schedule(resolve, graceMs);
      void Promise.all([...this.#retired].map((each) => each.waitUntilUnused())).then(() => {
        cancel();
        resolve();
      });
    });
  }
}

/**
 * Connects with one SecureContext, and keeps its TLS sessions. The server is always verified, whatever a request's options
 * or NODE_TLS_REJECT_UNAUTHORIZED say.
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
    // As without a tunnel. Otherwise Node takes one that the server has ended for usable, and a call on it waits in vain.
    socket.allowHalfOpen = false;
    // Node tells of a session only after it has verified the server.
    socket.on('session', (made) => {
      if (sessions.size >= MAX_SESSIONS) sessions.clear();
      sessions.set(name, made);
    });
    socket.once('close', (hadError: boolean) => hadError && sessions.delete(name));
    return socket;
  };
}
