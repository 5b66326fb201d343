import { type ClientRequest } from 'node:http';
import { Agent } from 'node:https';
import { type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { checkServerIdentity, type ConnectionOptions, type SecureContext, type TLSSocket } from 'node:tls';
import { type Clock } from '../../time/clock.js';
import { type ProxyFor } from '../../config/proxy.js';
import { ownOptions } from '../../exchange/own-properties.js';
import { CleanReuse, drop } from './clean-reuse.js';
import {
  closedError,
  endDestroyed,
  failRequest,
  inContext,
  nodeAgent,
  takeQueue,
  type AgentInternals,
  type AgentRequestOptions,
  type NumberedIdentity,
  type SocketCallback,
} from './node-agent.js';
import { authorityOf, ProxyTunnel } from './proxy-tunnel.js';

export interface PoolSettings {
  /** Connections to one origin. */
  maxSockets: number;
  /** Milliseconds for which an idle connection is kept, if the server's keep-alive hint is not shorter. Default 30,000. */
  idleTimeoutMs?: number;
  /** CONNECT through the proxy that it returns. */
  proxyFor?: ProxyFor;
  /** Milliseconds for that: `http.connectTimeout`. Default: no limit. */
  connectTimeoutMs?: number;
  /** Called for each new connection over which an answer came, and whose server never asked for a client certificate. */
  onUnasked?: (origin: string) => void;
}

const IDLE_TIMEOUT_MS = 30_000;

/** The others do TLS without OpenSSL. On Bun the list is always empty. */
const KNOWS_REQUESTS = !['bun', 'deno', 'electron'].some((name) => name in process.versions);

/** The options of a request that are used for its connection. Of TLS, only the server's name. */
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
  'timeout',
  '_agentKey',
] as const;

/**
 * One https.Agent for the module and for host code (axios, got, node:https), whatever identity is in use. The identity's
 * generation is part of a connection's name, by which Node pools connections and resumes TLS sessions: a new identity
 * has connections and sessions of its own, and those of the old one close after their calls. https only; TLS >= 1.2; the
 * server is always verified, whatever a request's options or NODE_TLS_REJECT_UNAUTHORIZED say.
 */
export class IdentityAgent extends Agent {
  /**
   * This agent as Node sees it when a call is over. Without a `timeout` Node ignores the server's keep-alive hint; with
   * one at any other time, it would tell calls that wait for their answer of it.
   */
  readonly #idle: AgentInternals;
  readonly #reuse = new CleanReuse(this);
  readonly #settings: PoolSettings;
  readonly #tunnels = new WeakMap<Duplex, ProxyTunnel>();
  readonly #queued = new WeakMap<ClientRequest, () => void>();
  /** Until when a connection may be idle, on the monotonic clock. */
  readonly #idleUntil = new WeakMap<Duplex, number>();
  readonly #onEmpty = new Set<() => void>();
  #identity: NumberedIdentity;
  /** Those of the identity in use. */
  #current = new WeakSet<Duplex>();
  #placed = false;
  #closed = false;
  #ended = false;

  constructor(context: SecureContext, settings: PoolSettings) {
    const { maxSockets, idleTimeoutMs = IDLE_TIMEOUT_MS } = settings;
    super({ keepAlive: true, scheduling: 'lifo', maxSockets });
    this.#idle = Object.create(this, { options: { value: { timeout: idleTimeoutMs } } }) as AgentInternals;
    this.#identity = { context, generation: 0 };
    this.#settings = settings;
    // So that JSON does not contain sockets.
    for (const pool of ['sockets', 'freeSockets', 'requests']) {
      Object.defineProperty(this, pool, { enumerable: false });
    }
  }

  /** Node's own joins all PEMs on every call. Here all connections of a generation share one SecureContext. */
  override getName(options: AgentRequestOptions = {}): string {
    const { host, port, localAddress, family, servername } = options;
    const { generation } = options.identity ?? this.#identity;
    return [host, port, localAddress, family, servername, generation].join(':');
  }

  /** node:http calls this for each request. */
  addRequest(request: ClientRequest, options: AgentRequestOptions): void {
    if (this.#closed) failRequest(request, closedError());
    else {
      // The one of now: its headers may have a token that is bound to this certificate (RFC 8705).
      const identity = this.#identity;
      this.#reuse.whenSettled(request, () => this.#place(request, options, identity));
    }
  }

  #place(request: ClientRequest, options: AgentRequestOptions, identity: NumberedIdentity): void {
    if (this.#ended) return failRequest(request, closedError());
    this.#dropOverdue();
    this.#placed = false;
    // Node made these options for this request.
    options.identity = identity;
    nodeAgent.addRequest.call(this, request, options);
    if (!this.#placed)
      this.#queued.set(
        request,
        inContext(() => this.addRequest(request, options)),
      );
  }

  createSocket(request: ClientRequest, options: AgentRequestOptions, callback: SocketCallback): void {
    this.#placed = true;
    const created: SocketCallback = (error, socket) => {
      if (socket && options.identity === this.#identity) this.#current.add(socket);
      if (socket) this.#tellWhereUnasked(socket as TLSSocket, options);
      callback(error, socket);
    };
    nodeAgent.createSocket.call(this, request, options, this.#reuse.watched(created));
  }

  /** A server may ask in the handshake, or before the answer of a path (TLS 1.2). A resumed session never shows it. */
  #tellWhereUnasked(socket: TLSSocket, options: AgentRequestOptions): void {
    const { onUnasked } = this.#settings;
    if (!onUnasked || !KNOWS_REQUESTS) return;
    socket.once('data', () => {
      // OpenSSL fills this list when it reads a CertificateRequest, whose algorithms it must have (RFC 8446, 4.3.2).
      if (!socket.isSessionReused() && socket.getSharedSigalgs()?.length === 0)
        onUnasked(`https://${authorityOf(options).replace(/:443$/, '')}`);
    });
  }

  override createConnection(options: AgentRequestOptions): Duplex {
    // A request that waits while the agent closes still gets its connection.
    if (this.#closed && options.identity === undefined) throw closedError();
    const allowed = ownOptions<ConnectionOptions>({});
    for (const key of CONNECTION_OPTIONS) {
      const value = (options as Record<string, unknown>)[key];
      if (value !== undefined) Object.assign(allowed, { [key]: value });
    }
    const { context } = options.identity ?? this.#identity;
    const forced = { secureContext: context, rejectUnauthorized: true, checkServerIdentity };
    const { proxyFor, connectTimeoutMs } = this.#settings;
    const authority = authorityOf(options);
    const proxy = proxyFor?.(`https://${authority}`);
    const tunnel = proxy && new ProxyTunnel(proxy, authority, connectTimeoutMs);
    const transport = tunnel && { socket: tunnel };
    const socket = super.createConnection({ ...allowed, ...forced, ...transport }) as Duplex;
    if (tunnel) this.#tunnels.set(socket, tunnel);
    return socket;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    if (this.#closed || !this.#current.has(socket)) return false;
    if (!nodeAgent.keepSocketAlive.call(this.#idle, socket)) return false;
    this.#tunnels.get(socket)?.unref();
    const { timeout = 0 } = socket as Socket;
    this.#idleUntil.set(socket, performance.now() + timeout);
    return true;
  }

  /** After a standstill of the process: neither the timer of an idle connection nor the server's close was seen yet. */
  #dropOverdue(): void {
    const now = performance.now();
    const isOverdue = (socket: Duplex): boolean => (this.#idleUntil.get(socket) ?? Infinity) < now;
    for (const sockets of Object.values(this.freeSockets)) {
      // The last one is used next, and was the last to become idle.
      const last = sockets?.at(-1);
      if (last && isOverdue(last)) sockets?.filter(isOverdue).forEach(drop);
    }
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#placed = true;
    super.reuseSocket(socket, request);
    this.#tunnels.get(socket)?.ref();
    // The idle time must not end a call that waits for its answer.
    (socket as Socket).setTimeout((request as { timeout?: number }).timeout ?? 0);
  }

  removeSocket(socket: Duplex, options: AgentRequestOptions): void {
    endDestroyed(this);
    nodeAgent.removeSocket.call(this, socket, options);
    this.#tellIfEmpty();
  }

  /** New calls use this identity, and those that wait for a connection. Calls in flight finish with the old one. */
  use(context: SecureContext): void {
    if (this.#closed) return;
    this.#identity = { context, generation: this.#identity.generation + 1 };
    this.#current = new WeakSet();
    const waiting = takeQueue(this);
    this.#closeIdle();
    for (const request of waiting) this.#queued.get(request)?.();
  }

  /**
   * Takes no more calls (ERR_AGENT_CLOSED). Idle connections are closed at once; calls in flight get `graceMs`, then
   * are cut. Resolves as soon as no connection is left.
   */
  async close(graceMs: number, clock: Clock): Promise<void> {
    this.#closed = true;
    this.#closeIdle();
    if (graceMs > 0 && !this.#isEmpty) await this.#emptied(graceMs, clock);
    this.#ended = true;
    for (const request of takeQueue(this)) failRequest(request, closedError());
    this.destroy();
    this.#tellIfEmpty();
  }

  #closeIdle(): void {
    for (const sockets of Object.values(this.freeSockets))
      for (const socket of [...(sockets ?? [])]) socket.destroy();
  }

  get #isEmpty(): boolean {
    const pools = [this.sockets, this.freeSockets, this.requests];
    return pools.every((pool) => Object.values(pool as object).flat().length === 0);
  }

  #tellIfEmpty(): void {
    if (this.#onEmpty.size > 0 && this.#isEmpty) for (const tell of this.#onEmpty) tell();
  }

  #emptied(graceMs: number, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.schedule(resolve, graceMs);
      this.#onEmpty.add(() => {
        cancel();
        resolve();
      });
    });
  }
}
