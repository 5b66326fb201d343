import { Agent, type ClientRequest, type ClientRequestArgs, type IncomingMessage } from 'node:http';
import { type RequestOptions } from 'node:https';
import net, { isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type Duplex } from 'node:stream';
import { HttpOptions } from '../../config/http.options.js';
import { codedError } from '../../errors/service.error.js';
import { type Clock, setImmediate, systemClock } from '../../time/time.js';
import { KEEP_ALIVE_MS, attemptTimeoutPerAddress } from './connecting.js';
import { ConnectionState, type IdleLimits, UnreliableOrigins } from './connection-state.js';
import { detectUnreadInput } from './unread-input.js';

export interface KeepAliveSettings {
  /** Maximum number of connections to one origin. */
  maxSockets: number;
  /**
   * How long a connection may have been idle, in milliseconds, for a request that must not be sent twice to reuse it. A
   * `Keep-Alive: timeout` header of the server replaces this limit. With 0, no request reuses a connection. Default: the
   * default of `http.idleTimeout`.
   */
  idleTimeoutMs?: number;
  /**
   * The same for a request that may be sent again. Default 55,000: load balancers usually close idle connections after 60 s
   * or more.
   */
  longIdleTimeoutMs?: number;
  /** Milliseconds to connect (`http.connectTimeout`). Default: no limit. */
  connectTimeoutMs?: number;
  clock?: Clock;
}

/** Opens a connection for a request with these options. */
export type Connector = (options: RequestOptions) => Socket;

/**
 * Requests of this package set `mayUseOlderConnection` if they may be sent again. Requests of the host application over the same
 * agent do not set it, because nothing sends those again.
 */
type SentOptions = RequestOptions & { mayUseOlderConnection?: boolean };

/** A request with its response. Node's own agent reads `res` and `_httpMessage` too, but the type definitions leave them out. */
type FinishedRequest = ClientRequest & { res?: IncomingMessage };
/** A connection with its last request. */
type UsedConnection = Duplex & { _httpMessage?: FinishedRequest | null };

/** The method by which node:http passes a request to its agent. The type definitions of Node leave it out. */
interface AddsRequests {
  addRequest(request: ClientRequest, options: RequestOptions): void;
}
const nodeAgent = Agent.prototype as unknown as AddsRequests;

/**
 * If the previous response ended at most so many milliseconds ago, a request that may be sent again reuses the connection without
 * a look for unread input. The look costs about 10 us (30 us if its code is cold). A stray response that arrives within so short a
 * time could just as well arrive a moment later, when the request is on its way and nothing can tell the two responses apart.
 */
const JUST_USED_MS = 2;
/** How long a preconnected socket waits for its request at most. */
const PRECONNECTED_MS = 4_000;
/** If a request gets no response for so long on a connection that was idle before, that connection was probably dead. */
const NO_RESPONSE_MS = 1_000;

/**
 * A keep-alive agent. Node's own Agent keeps the pool of connections and the queue of requests that wait for one. This class
 * decides which connection a request may reuse:
 * - none on which stray data could be taken for the next response (https://www.rfc-editor.org/rfc/rfc9112#section-6.3),
 * - none that the server may have closed. A request on it fails with ECONNRESET
 *   (https://github.com/nodejs/node/issues/47130, https://github.com/nodejs/node/issues/52649), and a POST must not simply be
 *   sent again. So requests that must not be sent twice have stricter limits than the others.
 */
export class KeepAliveAgent extends Agent {
  #connect: Connector;
  readonly #limits: IdleLimits;
  readonly #clock: Clock;
  readonly #states = new WeakMap<Duplex, ConnectionState>();
  /** Requests that must not be sent twice. */
  readonly #nonRepeatable = new WeakSet<ClientRequest>();
  /** Connections that were made before there was a request for them, by origin. Node's agent gets them as new connections. */
  readonly #preconnected = new Map<string, Socket>();
  readonly #unreliable: UnreliableOrigins;
  #isRetired = false;

  constructor(connect: Connector, settings: KeepAliveSettings) {
    const { idleTimeoutMs = new HttpOptions().idleTimeout, longIdleTimeoutMs = 55_000 } = settings;
    const { maxSockets, clock = systemClock } = settings;
    super({ keepAlive: true, maxSockets });
    this.#connect = connect;
    const repeatable = idleTimeoutMs === 0 ? 0 : Math.max(idleTimeoutMs, longIdleTimeoutMs);
    this.#limits = { nonRepeatable: idleTimeoutMs, repeatable };
    this.#clock = clock;
    this.#unreliable = new UnreliableOrigins(clock);
  }

  override getName(options: ClientRequestArgs = {}): string {
    return connectionKey(options);
  }

  /** Called by node:http for each request. */
  addRequest(request: ClientRequest, options: SentOptions): void {
    options.servername ??= serverNameOf(request, options);
    const origin = connectionKey(options);
    const pool: NodeJS.Dict<Socket[]> = this.freeSockets;
    const hidden = pool[origin] && this.#selectForReuse(pool[origin], options.mayUseOlderConnection);
    if (!options.mayUseOlderConnection) this.#nonRepeatable.add(request);
    if (this.#limits.nonRepeatable === 0) request.shouldKeepAlive = false;
    // Node's agent always reuses an idle connection if the pool has one. Hide those that this request must not reuse.
    if (hidden) delete pool[origin];
    nodeAgent.addRequest.call(this, request, options);
    if (hidden) pool[origin] = hidden;
  }

  override createConnection(options: RequestOptions): Duplex {
    return this.#takePreconnected(connectionKey(options)) ?? this.#makeConnection(options);
  }

  /**
   * Opens a connection for a request that will follow soon, unless an idle connection to this origin exists. The next request
   * takes it as a new connection, not as a reused one. Without a request, it closes after 4 s, or after `http.idleTimeout` if
   * that is shorter: a server that closes idle connections early closes this one too.
   */
  preconnect(options: RequestOptions): void {
    const origin = connectionKey(options);
    const isFull = (this.sockets[origin]?.length ?? 0) >= this.maxSockets;
    if (this.#isRetired || isFull || this.#limits.nonRepeatable === 0) return;
    if (this.freeSockets[origin] ?? this.#preconnected.has(origin)) return;
    const socket = this.#makeConnection(options);
    this.#stateOf(socket).idleSince = this.#clock.now();
    this.#preconnected.set(origin, socket);
    const isUnused = () => this.#preconnected.get(origin) === socket;
    const cancel = this.#clock.watch(() => isUnused() && socket.destroy(), this.#preconnectedMs);
    socket.unref().once('close', () => {
      cancel();
      if (isUnused()) this.#preconnected.delete(origin);
    });
  }

  /** The state of a connection that this agent has made; undefined for any other connection. */
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
    const socket = details[0] as UsedConnection;
    const state = event === 'free' ? this.#states.get(socket) : undefined;
    // Node also emits `free` for a new connection that it has made for a waiting request.
    if (!state || !socket._httpMessage) return super.emit(event, ...details);
    const { method, res } = socket._httpMessage;
    // A request that was aborted before it was written gives its connection back, on Node 24 and later. For how long the
    // connection was idle before is no longer known. A connection that has had no response yet was not idle.
    const wasAborted = !res && state.limits !== undefined && !this.requests[state.origin];
    if (wasAborted || (res && mayHaveUnreadBody(method, res))) {
      destroyAndRemove(socket);
      return true;
    }
    if (!res) return super.emit(event, ...details);
    state.onResponse(res, this.#limits);
    if (Object.keys(this.requests).length === 0) return super.emit(event, ...details);
    state.idleSince = this.#clock.now();
    const free = (): void => {
      // Node skips requests that were aborted while they waited.
      const next = this.requests[state.origin]?.find((each) => !each.destroyed);
      // Only for requests that must not be sent twice: the look costs a system call, and the others simply reconnect.
      if (next && this.#nonRepeatable.has(next) && detectUnreadInput(socket)) return destroyAndRemove(socket);
      state.idleSince = undefined;
      super.emit(event, ...details);
    };
    setImmediate(() => setImmediate(free));
    return true;
  }

  /** Node asks whether to keep a connection after its response. Sets the idle timeout, after which Node closes the connection. */
  override keepSocketAlive(socket: Duplex): boolean {
    const state = this.#stateOf(socket);
    const ms = state.limits?.repeatable ?? 0;
    if (this.#isRetired || ms <= 0) return false;
    state.idleSince = this.#clock.now();
    const connection = socket as Socket;
    connection.setKeepAlive(true, KEEP_ALIVE_MS).unref();
    if (connection.timeout !== ms) connection.setTimeout(ms);
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    const state = this.#stateOf(socket);
    const now = this.#clock.now();
    state.wasIdleMs = state.idleMs(now);
    state.idleSince = undefined;
    if (!state.wasIdleLong) return;
    request.once('close', () => {
      if ((request as FinishedRequest).res) this.#unreliable.delete(state.origin);
      // After a request that ended without a response, after more than 1 s, the connection was probably dead.
      else if (this.#clock.now() - now > NO_RESPONSE_MS) this.#onNoResponse(state.origin);
    });
  }

  /**
   * Ends the reuse of connections: idle ones close now, the others as soon as their request has ended. Requests in flight and
   * requests that wait in the queue still finish.
   */
  retire(): void {
    this.#isRetired = true;
    for (const socket of Object.values(this.freeSockets).flat()) if (socket) destroyAndRemove(socket);
    this.#destroyPreconnected();
  }

  /** Closes all connections. */
  override destroy(): void {
    this.#destroyPreconnected();
    super.destroy();
  }

  #destroyPreconnected(): void {
    for (const socket of this.#preconnected.values()) socket.destroy();
  }

  /** Resolves when no request is left. A request in the queue always waits for a connection in use, so those are enough to check. */
  async waitUntilUnused(): Promise<void> {
    for (;;) {
      const [socket] = Object.values(this.sockets).flat();
      if (!socket) return;
      await new Promise((resolve) => socket.once('close', resolve));
    }
  }

  /** Closes all connections. Requests in the queue and all later requests fail with ERR_AGENT_CLOSED. */
  close(): void {
    this.#connect = failToConnect;
    this.retire();
    this.destroy();
  }

  #makeConnection(options: RequestOptions): Socket {
    const socket = this.#connect(options);
    const state = new ConnectionState(connectionKey(options));
    this.#states.set(socket, state);
    const closeIfIdle = (): void => {
      if (state.idleSince !== undefined) destroyAndRemove(socket);
    };
    // While the connection is idle, nobody else listens to its errors, and an error without a listener ends the process.
    return socket
      .on('data', closeIfIdle)
      .once('end', closeIfIdle)
      .once('session', () => (state.hasTicket = true))
      .on('error', () => undefined);
  }

  #takePreconnected(origin: string): Socket | undefined {
    const socket = this.#preconnected.get(origin);
    if (!socket) return undefined;
    this.#preconnected.delete(origin);
    const state = this.#stateOf(socket);
    // While the event loop was blocked, the timer has not run.
    const isLate = state.idleMs(this.#clock.now()) > this.#preconnectedMs;
    state.idleSince = undefined;
    // Before the session ticket has arrived, unread input is most likely that ticket, and not a FIN.
    const isUsable = !socket.destroyed && !isLate && !(state.hasTicket && detectUnreadInput(socket));
    if (isUsable) return socket.ref();
    socket.destroy();
    return undefined;
  }

  /** How long a preconnected socket waits for its request. */
  get #preconnectedMs(): number {
    return Math.min(PRECONNECTED_MS, this.#limits.nonRepeatable);
  }

  /**
   * Finds the idle connection that a request may reuse, and moves it to the end of the list, where Node's agent takes it. If
   * there is none, returns the connections to hide from Node's agent. It then closes the oldest one: otherwise an
   * application that only sends requests that must not be sent twice would leave more and more idle connections open.
   */
  #selectForReuse(idle: Socket[], mayUseOlderConnection = false): Socket[] | undefined {
    const now = this.#clock.now();
    for (let index = idle.length - 1; index >= 0; index -= 1) {
      const socket = idle[index];
      const state = this.#stateOf(socket);
      const idleMs = state.idleMs(now);
      // Since Node 22, Node destroys an idle connection that the server has closed, but keeps it in the pool until its `close`
      // event. While the event loop was blocked, the idle timer has not run.
      if (socket.destroyed || idleMs > (state.limits?.repeatable ?? 0)) destroyAndRemove(socket);
      else if (idleMs <= this.#limitOf(state, mayUseOlderConnection)) {
        if ((mayUseOlderConnection && idleMs <= JUST_USED_MS) || !detectUnreadInput(socket)) {
          if (index < idle.length - 1) idle.push(...idle.splice(index, 1));
          return undefined;
        }
        // While the event loop was blocked, the server has closed it (nginx does so at each reload), or has sent something that
        // must not become the response to this request.
        destroyAndRemove(socket);
      }
    }
    if (idle.length > 0) destroyAndRemove(idle[0]);
    return idle.length > 0 ? idle : undefined;
  }

  /** How long this connection may have been idle, in milliseconds, for such a request to reuse it. */
  #limitOf({ limits = this.#limits, origin }: ConnectionState, mayUseOlderConnection: boolean): number {
    const limit = mayUseOlderConnection ? limits.repeatable : limits.nonRepeatable;
    return this.#unreliable.has(origin) ? Math.min(limit, this.#limits.nonRepeatable) : limit;
  }

  /** Stops reusing connections to this origin that were idle for longer than `http.idleTimeout`, and closes such connections. */
  #onNoResponse(origin: string): void {
    this.#unreliable.add(origin);
    const now = this.#clock.now();
    for (const socket of this.freeSockets[origin]?.slice() ?? [])
      if (this.#stateOf(socket).idleMs(now) > this.#limits.nonRepeatable) destroyAndRemove(socket);
  }

  #stateOf(socket: Duplex): ConnectionState {
    return this.#states.get(socket) as ConnectionState;
  }
}

/**
 * The key under which connections and TLS sessions to one destination are kept. `https.Agent.getName()` would join all PEMs
 * into its key at each request.
 */
export function connectionKey({ host, port, localAddress, family, servername }: RequestOptions): string {
  return `${host}:${port}:${localAddress ?? ''}:${family ?? ''}:${servername ?? ''}`;
}

/** The same server name that Node's agent would set later, after the pool was searched. */
function serverNameOf(request: ClientRequest, { host }: RequestOptions): string {
  const named = String(request.getHeader('host') ?? host);
  const name = named.startsWith('[') ? named.slice(1, named.indexOf(']')) : named.split(':', 1)[0];
  return isIP(name) ? '' : name;
}

/** Connects over plain HTTP, which is allowed to loopback addresses only. */
export function plainConnector({ connectTimeoutMs }: KeepAliveSettings): Connector {
  return (options) =>
    net.connect({ ...attemptTimeoutPerAddress(connectTimeoutMs), ...options } as TcpNetConnectOpts);
}

/** Closes a connection and removes it from the agent's pool at once. Node would remove it only after the socket has closed. */
function destroyAndRemove(socket: Duplex): void {
  socket.destroy();
  socket.emit('agentRemove');
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

/** Whether a response that must have no body, because of its method or status, may have one on the wire nevertheless. */
function mayHaveUnreadBody(method: string, { statusCode, headers }: IncomingMessage): boolean {
  if (method === 'HEAD') return true;
  if (statusCode !== 204 && statusCode !== 304) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
}
