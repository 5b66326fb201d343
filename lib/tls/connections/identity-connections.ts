import { type ClientRequest } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { type Duplex } from 'node:stream';
import { checkServerIdentity, type ConnectionOptions, type SecureContext, type TLSSocket } from 'node:tls';
import { type ProxyFor } from '../../config/proxy.js';
import { ownOptions } from '../../exchange/own-properties.js';
import { systemClock } from '../../time/clock.js';
import { connectInTurn } from './addresses.js';
import { hasAsked } from './certificate-request.js';
import { IDLE_TIMEOUT_MS, IdleConnections, type PoolSettings } from './idle-connections.js';
import { authorityOf, ProxyTunnel } from './proxy-tunnel.js';
import { type RequestTaker } from './request-gate.js';

export interface IdentityPoolSettings extends PoolSettings {
  /** The proxy for an address, if any. */
  proxyFor?: ProxyFor;
  /** Called for each new connection that brought an answer, but whose server never asked for a client certificate. */
  onUnasked?: (origin: string) => void;
}

/** The options of a request that count for its connection. Of TLS, only the server's name. */
const CONNECTION_OPTIONS = [
  'host',
  'port',
  'servername',
  'family',
  'hints',
  'lookup',
  'localAddress',
  'localPort',
  'autoSelectFamily',
  'autoSelectFamilyAttemptTimeout',
  'noDelay',
  'keepAlive',
  'keepAliveInitialDelay',
  'connectTimeoutMs',
  '_agentKey',
] as const;

/** Node's own methods that the types leave out. */
const nodeAgent = Agent.prototype as unknown as RequestTaker;

/**
 * The connections of one identity, and their TLS sessions. All share one SecureContext; https only, TLS >= 1.2. The server
 * is always verified, whatever a request's options or NODE_TLS_REJECT_UNAUTHORIZED say. IdentityAgent limits their number.
 */
export class IdentityConnections extends Agent {
  readonly #context: SecureContext;
  readonly #settings: IdentityPoolSettings;
  readonly #idle: IdleConnections;
  readonly #tunnels = new WeakMap<Duplex, ProxyTunnel>();
  #isRetired = false;

  constructor(context: SecureContext, settings: IdentityPoolSettings) {
    const { idleTimeoutMs = IDLE_TIMEOUT_MS, clock = systemClock } = settings;
    // Without a `timeout` Node ignores the server's keep-alive hint.
    super({ keepAlive: true, timeout: idleTimeoutMs });
    this.#context = context;
    this.#settings = settings;
    this.#idle = new IdleConnections(clock);
  }

  addRequest(request: ClientRequest, options: RequestOptions): void {
    this.#idle.dropOverdue();
    nodeAgent.addRequest.call(this, request, options);
  }

  /** Node's own joins all PEMs on every call. */
  override getName(options: RequestOptions): string {
    return nameOf(options);
  }

  override createConnection(options: RequestOptions): Duplex {
    const verified = { secureContext: this.#context, rejectUnauthorized: true, checkServerIdentity };
    const allowed: Record<string, unknown> = ownOptions(verified);
    for (const key of CONNECTION_OPTIONS) allowed[key] = (options as Record<string, unknown>)[key];
    const socket = this.#connect(allowed, authorityOf(options));
    this.#idle.watch(socket);
    this.#tellWhereUnasked(socket, options);
    return socket;
  }

  #connect(options: ConnectionOptions & { connectTimeoutMs?: number }, authority: string): TLSSocket {
    const { proxyFor } = this.#settings;
    const { connectTimeoutMs = this.#settings.connectTimeoutMs } = options;
    const secure = (given: ConnectionOptions) => super.createConnection(given) as TLSSocket;
    const proxy = proxyFor?.(`https://${authority}`);
    if (!proxy) return connectInTurn(secure, options, connectTimeoutMs);
    const tunnel = new ProxyTunnel(proxy, authority, connectTimeoutMs);
    const socket = secure({ ...options, socket: tunnel });
    this.#tunnels.set(socket, tunnel);
    return socket;
  }

  /** A server may ask in the handshake, or before the answer of a path (TLS 1.2). */
  #tellWhereUnasked(socket: TLSSocket, options: RequestOptions): void {
    const { onUnasked } = this.#settings;
    if (!onUnasked) return;
    socket.once('data', () => {
      if (hasAsked(socket) === false) onUnasked(new URL(`https://${authorityOf(options)}`).origin);
    });
  }

  override keepSocketAlive(socket: Duplex): boolean {
    if (this.#isRetired) return false;
    const isKept = super.keepSocketAlive(socket) as unknown as boolean;
    if (!isKept) return false;
    this.#idle.add(socket);
    if (this.#settings.proxyFor) this.#tunnels.get(socket)?.rest();
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    this.#idle.take(socket);
    if (this.#settings.proxyFor) this.#tunnels.get(socket)?.ref();
  }

  /** Connections with a call finish it; the others close now. */
  retire(): void {
    this.#isRetired = true;
    this.#idle.dropAll();
  }

  get isEmpty(): boolean {
    return Object.keys(this.sockets).length === 0;
  }
}

/** The name of a place, by which Node keeps connections and TLS sessions. */
export function nameOf({ host, port, localAddress, family, servername }: RequestOptions): string {
  return `${host}:${port}:${localAddress ?? ''}:${family ?? ''}:${servername ?? ''}`;
}
