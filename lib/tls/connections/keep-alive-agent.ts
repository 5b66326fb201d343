import { type ClientRequest } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { setImmediate, systemClock, within } from '../../time/time.js';
import { ConnectionState, detectUnreadInput, type Pool } from './connection-state.js';
import { type Connector, failToConnect, originOf, serverNameOf, KEEP_ALIVE_MS } from './connectors.js';
import { type IdleSettings, OriginState } from './origin-state.js';

export interface AgentSettings extends Partial<IdleSettings> {
  /** Maximum number of connections to one origin with one client certificate. */
  maxSockets: number;
}

/** The key of the pool in the options of a request. Node passes the options on to everything that it does for the request. */
const POOL = Symbol('pool');
/**
 * Requests of this package set `mayUseOlderConnection` if they may be sent again. Requests of the host application over the same
 * agent do not set it, because nothing sends those again.
 */
type SentOptions = RequestOptions & { mayUseOlderConnection?: boolean; [POOL]?: Pool };

/** The method by which node:http passes a request to its agent. The type definitions of Node leave it out. */
const nodeAgent = Agent.prototype as unknown as { addRequest(request: ClientRequest, options: object): void };

const MAX_ORIGINS = 100;

/**
 * The https.Agent of this package, which the host application can also use with axios, got or node:https. Node's own Agent keeps
 * the pools of connections and the queues of requests that wait for one. This class decides which connection a request may reuse:
 * - none on which stray data could be taken for the next response (https://www.rfc-editor.org/rfc/rfc9112#section-6.3),
 * - none that the server may have closed. A request on it fails with ECONNRESET
 *   (https://github.com/nodejs/node/issues/47130, https://github.com/nodejs/node/issues/52649), and a POST must not simply be
 *   sent again. So requests that must not be sent twice have stricter limits than the others.
 * - none of an earlier client certificate. The agent stays the same object when the certificate changes, but the names of its
 *   pools change. Requests in flight, and requests in a queue, finish in their pool, and its connections close after them.
 */
export class KeepAliveAgent extends Agent {
  /** Connects with the certificate in use. */
  #connect: Connector;
  /** How often the certificate has changed; a part of the names of the pools. */
  #rotations = 0;
  /** Whether the agent has closed, and the grace is over, so that requests in the queues fail too. */
  #isClosed = false;
  readonly #settings: IdleSettings;
  readonly #origins = new Map<string, OriginState>();
  readonly #states = new WeakMap<Duplex, ConnectionState>();
  /** Requests that must not be sent twice. */
  readonly #nonRepeatable = new WeakSet<ClientRequest>();
  /** Called before each request. */
  beforeRequest?: () => void;

  constructor(connect: Connector, settings: AgentSettings, protocol: 'https:' | 'http:' = 'https:') {
    const { maxSockets, clock = systemClock, idleTimeoutMs, longIdleTimeoutMs = 55_000 } = settings;
    super({ keepAlive: true, maxSockets });
    if (protocol === 'http:') Object.assign(this, { protocol, defaultPort: 80 });
    // Not enumerable, so that JSON.stringify() does not descend into sockets.
    for (const pools of ['sockets', 'freeSockets', 'requests'])
      Object.defineProperty(this, pools, { enumerable: false });
    this.#connect = connect;
    this.#settings = { clock, idleTimeoutMs, longIdleTimeoutMs };
  }

  override getName(options: SentOptions = {}): string {
    return this.#poolOf(options).name;
  }

  /** Called by node:http for each request. */
  addRequest(request: ClientRequest, options: SentOptions): void {
    this.beforeRequest?.();
    options.servername ??= serverNameOf(request, options);
    const { name } = (options[POOL] = this.#poolOf(options));
    const pools: NodeJS.Dict<Socket[]> = this.freeSockets;
    const hidden = pools[name] && this.#selectForReuse(pools[name], options.mayUseOlderConnection);
    if (!options.mayUseOlderConnection) this.#nonRepeatable.add(request);
    if (this.#settings.idleTimeoutMs === 0) request.shouldKeepAlive = false;
    // Node's agent always reuses an idle connection if the pool has one. Hide those that this request must not reuse.
    if (hidden) delete pools[name];
    nodeAgent.addRequest.call(this, request, options);
    if (hidden) pools[name] = hidden;
  }

  override createConnection(options: SentOptions): Socket {
    const pool = this.#poolOf(options);
    const early = [...pool.origin.connections].find(({ isNew, idleSince }) => isNew && idleSince);
    if (early?.judge(false) === 'use') {
      early.idleSince = undefined;
      return early.socket.ref();
    }
    early?.close();
    const socket = this.#isClosed ? failToConnect() : pool.connect(options, pool);
    this.#states.set(socket, new ConnectionState(socket, pool));
    return socket;
  }

  /**
   * Opens a connection for a request that will follow soon, unless an idle connection to this origin exists. The next request
   * takes it as a new connection, not as a reused one. Without a request, it closes after 4 s, or after `http.idleTimeout` if
   * that is shorter: a server that closes idle connections early closes this one too.
   */
  preconnect({ hostname, port }: Pick<URL, 'hostname' | 'port'>): void {
    const host = hostname.replace(/^\[|\]$/g, '');
    // The same options that Node's agent sets.
    const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    const options = { host, port: port || 443, servername: isIP(host) ? '' : host, ...socketOptions };
    const connections = [...this.#poolOf(options).origin.connections];
    const isNeeded = connections.length < this.maxSockets && !connections.some(({ idleSince }) => idleSince);
    if (!isNeeded || this.#connect === failToConnect || this.#settings.idleTimeoutMs === 0) return;
    const state = this.#stateOf(this.createConnection(options));
    state.startIdle();
    const closeIfUnused = () => state.isNew && state.idleSince && state.close();
    const cancel = this.#settings.clock.watch(closeIfUnused, state.limitFor(false));
    state.socket.unref().once('close', cancel);
  }

  readonly #stateOf = (socket: Duplex): ConnectionState => this.#states.get(socket) as ConnectionState;

  /**
   * The state of a connection that this agent has made. Undefined for any other connection: another library may have replaced
   * the agent of the request.
   */
  stateOf(socket: Duplex): ConnectionState | undefined {
    return this.#states.get(socket);
  }

  /**
   * When a response ends, Node emits `free`, and at once gives the connection to a request that waits in the queue. Delay that
   * by two turns of the event loop: stray data or a FIN of the server is noticed first, and all requests of one turn are
   * sent together.
   *
   * This is also the moment to look at the response. A listener for the request's `response` event would be the usual way, but
   * Node and APMs (OpenTelemetry) count these listeners: without any of the host application, they discard the body.
   */
  override emit(event: string, ...details: unknown[]): boolean {
    const state = event === 'free' ? this.#states.get(details[0] as Socket) : undefined;
    // Node also emits `free` for a new connection that it has made for a waiting request.
    if (!state?.socket._httpMessage) return super.emit(event, ...details);
    const { method, res } = state.socket._httpMessage;
    const { name } = state.pool;
    const isAwaited = this.requests[name] !== undefined;
    // A request that was aborted before it was written gives its connection back, on Node 24 and later. For how long the
    // connection was idle before is no longer known.
    const isFit = res ? state.onResponse(method, res) : isAwaited;
    if (!isFit) {
      state.close();
      return true;
    }
    if (!res || !isAwaited) return super.emit(event, ...details);
    state.startIdle();
    const free = (): void => {
      // Node skips requests that were aborted while they waited.
      const next = this.requests[name]?.find((each) => !each.destroyed);
      // Only for requests that must not be sent twice: the look costs a system call, and the others simply reconnect.
      if (next && this.#nonRepeatable.has(next) && detectUnreadInput(state.socket)) return state.close();
      state.idleSince = undefined;
      super.emit(event, ...details);
    };
    setImmediate(() => setImmediate(free));
    return true;
  }

  /** Node asks whether to keep a connection after its response. Sets the idle timeout, after which Node closes the connection. */
  override keepSocketAlive(socket: Duplex): boolean {
    const state = this.#stateOf(socket);
    const ms = state.limitFor(true);
    if (state.pool.connect !== this.#connect || ms <= 0) return false;
    state.startIdle();
    state.socket.setKeepAlive(true, KEEP_ALIVE_MS).unref();
    if (state.socket.timeout !== ms) state.socket.setTimeout(ms);
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    this.#stateOf(socket).endIdle();
  }

  /** Makes new requests connect with another certificate, and closes the idle connections of the previous one. */
  switchConnector(connect: Connector): void {
    if (this.#connect === failToConnect) return;
    this.#connect = connect;
    this.#rotations += 1;
    for (const connection of this.#connections) if (connection.idleSince) connection.close();
    for (const origin of this.#origins.values()) origin.pool = undefined;
  }

  /**
   * Closes the agent: new requests fail with ERR_AGENT_CLOSED, and idle connections close at once. Requests in flight and requests
   * in a queue may take `graceMs` to finish, then their connections are closed. Resolves when no request is left.
   */
  async close(graceMs: number): Promise<void> {
    this.switchConnector(failToConnect);
    const grace = { ...this.#settings, timeoutMs: graceMs, expired: () => new Error('The grace is over') };
    // Requests that are still in flight after the grace end with the close below.
    if (graceMs > 0) await within(grace, () => this.#waitUntilUnused()).catch(() => undefined);
    this.#isClosed = true;
    this.destroy();
  }

  /** Closes all connections. Requests that wait in the queue continue on new connections. */
  override destroy(): void {
    for (const connection of this.#connections) connection.close();
  }

  /** Resolves when no request is left. A request in the queue always waits for a connection in use, so those are enough to check. */
  async #waitUntilUnused(): Promise<void> {
    // Requests that came after the close fail by themselves.
    const used = this.#connections.find(({ pool }) => pool.connect !== failToConnect);
    if (!used) return;
    await new Promise((resolve) => used.socket.once('close', resolve));
    await this.#waitUntilUnused();
  }

  get #connections(): ConnectionState[] {
    return [...this.#origins.values()].flatMap(({ connections }) => [...connections]);
  }

  #poolOf(options: SentOptions): Pool {
    if (options[POOL]) return options[POOL];
    const key = originOf(options);
    const origin = this.#origins.get(key) ?? this.#addOrigin(key);
    return (origin.pool ??= { origin, name: `${key}:${this.#rotations}`, connect: this.#connect });
  }

  #addOrigin(key: string): OriginState {
    if (this.#origins.size >= MAX_ORIGINS)
      for (const [other, { connections }] of this.#origins)
        if (connections.size === 0) this.#origins.delete(other);
    const origin = new OriginState(this.#settings);
    this.#origins.set(key, origin);
    return origin;
  }

  /**
   * Finds the idle connection that a request may reuse, and moves it to the end of the list, where Node's agent takes it. If
   * there is none, returns the connections to hide from Node's agent. It then closes the oldest one: otherwise an
   * application that only sends requests that must not be sent twice would leave more and more idle connections open.
   */
  #selectForReuse(idle: Socket[], mayUseOlderConnection = false): Socket[] | undefined {
    for (let index = idle.length - 1; index >= 0; index -= 1) {
      const state = this.#stateOf(idle[index]);
      const verdict = state.judge(mayUseOlderConnection);
      if (verdict === 'close') state.close();
      if (verdict !== 'use') continue;
      if (index < idle.length - 1) idle.push(...idle.splice(index, 1));
      return undefined;
    }
    if (idle.length > 0) this.#stateOf(idle[0]).close();
    return idle.length > 0 ? idle : undefined;
  }
}
