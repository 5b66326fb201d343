import { AsyncResource } from 'node:async_hooks';
import { type ClientRequest } from 'node:http';
import { Agent } from 'node:https';
import { type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { checkServerIdentity, type ConnectionOptions, type SecureContext } from 'node:tls';
import { type Secret } from '../../config/secret.js';
import { ownOptions } from '../../exchange/own-options.js';
import {
  closedError,
  failRequest,
  nodeAgent,
  poolName,
  takeQueue,
  type AgentRequestOptions,
  type SocketCallback,
} from './node-agent.js';
import { ProxyTunnel } from './proxy-tunnel.js';

export interface PoolSettings {
  /** Connections to one origin. */
  maxSockets: number;
  /** Milliseconds for which an idle connection is kept, if the server's keep-alive hint is not shorter. Default 30,000. */
  idleTimeoutMs?: number;
  /** CONNECT through this proxy. */
  proxy?: Secret;
}

type Redispatch = (next: PooledAgent) => void;

const IDLE_TIMEOUT_MS = 30_000;

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
 * The connections of one identity: kept alive, last used first, sessions resumed (Node keeps the TLS session cache on
 * the agent). The server is always verified, whatever a request's options or NODE_TLS_REJECT_UNAUTHORIZED say.
 */
export class PooledAgent extends Agent {
  readonly #context: SecureContext;
  readonly #proxy?: Secret;
  readonly #tunnels = new WeakMap<Duplex, ProxyTunnel>();
  readonly #queued = new WeakMap<ClientRequest, Redispatch>();
  #placed = false;
  #onDrained?: () => void;

  constructor(context: SecureContext, { maxSockets, idleTimeoutMs = IDLE_TIMEOUT_MS, proxy }: PoolSettings) {
    // Without a `timeout` Node ignores the server's keep-alive hint.
    super({ keepAlive: true, scheduling: 'lifo', maxSockets, timeout: idleTimeoutMs });
    this.#context = context;
    this.#proxy = proxy;
  }

  override getName(options?: AgentRequestOptions): string {
    return poolName(options);
  }

  addRequest(request: ClientRequest, options: AgentRequestOptions): void {
    this.#placed = false;
    nodeAgent.addRequest.call(this, request, options);
    if (!this.#placed) {
      this.#queued.set(
        request,
        AsyncResource.bind((next: PooledAgent) => next.addRequest(request, options)),
      );
    }
  }

  createSocket(request: ClientRequest, options: AgentRequestOptions, callback: SocketCallback): void {
    this.#placed = true;
    nodeAgent.createSocket.call(this, request, options, callback);
  }

  override createConnection(options: AgentRequestOptions): Duplex {
    const allowed = ownOptions<ConnectionOptions>({});
    for (const key of CONNECTION_OPTIONS) {
      const value = (options as Record<string, unknown>)[key];
      if (value !== undefined) Object.assign(allowed, { [key]: value });
    }
    const forced = { secureContext: this.#context, rejectUnauthorized: true, checkServerIdentity };
    if (!this.#proxy) return super.createConnection({ ...allowed, ...forced }) as Duplex;

    const tunnel = new ProxyTunnel(this.#proxy, String(options.host), Number(options.port ?? 443));
    const socket = super.createConnection({ ...allowed, ...forced, socket: tunnel } as object) as Duplex;
    this.#tunnels.set(socket, tunnel);
    return socket;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    if (this.#onDrained || !nodeAgent.keepSocketAlive.call(this, socket)) return false;
    this.#tunnels.get(socket)?.unref();
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#placed = true;
    super.reuseSocket(socket, request);
    this.#tunnels.get(socket)?.ref();
    // The idle time must not end a call that waits for its answer.
    (socket as Socket).setTimeout((request as { timeout?: number }).timeout ?? 0);
  }

  removeSocket(socket: Duplex, options: AgentRequestOptions): void {
    nodeAgent.removeSocket.call(this, socket, options);
    if (this.#onDrained) this.#settle();
  }

  /**
   * Closes idle connections at once, and each other one after its call. `onDrained` is called once, when none is left.
   * Requests still waiting for a connection keep waiting here, unless taken with {@link takeQueued}.
   */
  drain(onDrained: () => void): void {
    this.#onDrained = onDrained;
    for (const sockets of Object.values(this.freeSockets))
      for (const socket of [...(sockets ?? [])]) socket.destroy();
    this.#settle();
  }

  /** Removes the requests that wait for a connection. Each result passes its request to another agent. */
  takeQueued(): Redispatch[] {
    return takeQueue(this).flatMap((request) => this.#queued.get(request) ?? []);
  }

  /** Closes all connections, also those of calls in flight. Those that wait for one are refused. */
  end(): void {
    for (const request of takeQueue(this)) failRequest(request, closedError());
    this.destroy();
  }

  #settle(): void {
    for (const pool of [this.sockets, this.freeSockets, this.requests]) {
      for (const name in pool) if (pool[name]?.length) return;
    }
    const done = this.#onDrained;
    this.#onDrained = () => undefined;
    done?.();
  }
}
