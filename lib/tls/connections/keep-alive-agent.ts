import { Agent, type ClientRequest, type ClientRequestArgs, type IncomingMessage } from 'node:http';
import { type RequestOptions } from 'node:https';
import net, { isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type Duplex } from 'node:stream';
import { DEFAULTS } from '../../config/options.js';
import { codedError } from '../../errors/error-codes.js';
import { type Clock, setImmediate, systemClock } from '../../time/clock.js';
import { KEEP_ALIVE_MS, attemptTimeoutPerAddress } from './connecting.js';
import { ConnectionState, type IdleLimits, UnreliableOrigins } from './connection-state.js';
import { hasUnreadInput } from './unread-input.js';

export interface KeepAliveSettings {
  /** Connections to one origin. */
  maxSockets: number;
  /**
   * Milliseconds that a connection may have been idle when a request takes it that must not be sent twice, if the server
   * gives no hint. 0: no connection is used again, by any request. Default: that of `http.idleTimeout`.
   */
  idleTimeoutMs?: number;
  /** The same for a request that may be sent again. Default 55,000: load balancers wait for 60 s or more. */
  longIdleTimeoutMs?: number;
  /** Milliseconds to connect: `http.connectTimeout`. Default: no limit. */
  connectTimeoutMs?: number;
  clock?: Clock;
}

export type Connector = (options: RequestOptions) => Socket;

/** What a request of ours tells the agent. A host's own requests tell it nothing, and nobody repeats them. */
type SentOptions = RequestOptions & { mayRepeat?: boolean };

/** The part of an agent by which node:http hands it a request, and which the types leave out. */
interface AddsRequests {
  addRequest(request: ClientRequest, options: RequestOptions): void;
}
const nodeAgent = Agent.prototype as unknown as AddsRequests;

/** How long a connection that was made ahead waits for its request. */
const PRECONNECTED_MS = 4_000;
/** A request that gets no response for so long, on an old connection, shows that the connection was dead. */
const NO_RESPONSE_MS = 1_000;

/**
 * Connections that are used again, and the queue for them, which is Node's own. A connection is not used again if data on
 * it could be taken for the answer to the next request (RFC 9112, 6.3), or if the server may have closed it.
 */
export class KeepAliveAgent extends Agent {
  #connect: Connector;
  readonly #limits: IdleLimits;
  readonly #clock: Clock;
  readonly #states = new WeakMap<Duplex, ConnectionState>();
  /** Requests that must not be sent twice. */
  readonly #nonRepeatable = new WeakSet<ClientRequest>();
  /** Connections made ahead of their request, by origin. Node's agent gets them as new ones. */
  readonly #preconnected = new Map<string, Socket>();
  readonly #unreliable: UnreliableOrigins;
  #isRetired = false;

  constructor(connect: Connector, settings: KeepAliveSettings) {
    const { idleTimeoutMs = DEFAULTS.http.idleTimeout, longIdleTimeoutMs = 55_000 } = settings;
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

  /** node:http calls this for each request. */
  addRequest(request: ClientRequest, options: SentOptions): void {
    options.servername ??= serverNameOf(request, options);
    const origin = connectionKey(options);
    const pool: NodeJS.Dict<Socket[]> = this.freeSockets;
    const unfit = pool[origin] && this.#selectForReuse(pool[origin], options.mayRepeat);
    if (!options.mayRepeat) this.#nonRepeatable.add(request);
    if (this.#limits.nonRepeatable === 0) request.shouldKeepAlive = false;
    request.on('response', (response) => this.#onResponse(request, response));
    // Node takes an idle connection if it sees one.
    if (unfit) delete pool[origin];
    nodeAgent.addRequest.call(this, request, options);
    if (unfit) pool[origin] = unfit;
  }

  override createConnection(options: RequestOptions): Duplex {
    return this.#takePreconnected(connectionKey(options)) ?? this.#makeConnection(options);
  }

  /**
   * Connects for a request that will come soon, unless a connection to this origin is idle. It is closed after 4 s without a
   * request. To the next request it is a new connection, not one that is used again.
   */
  preconnect(options: RequestOptions): void {
    const origin = connectionKey(options);
    const isFull = (this.sockets[origin]?.length ?? 0) >= this.maxSockets;
    if (this.#isRetired || isFull || this.#limits.nonRepeatable === 0) return;
    if (this.freeSockets[origin] ?? this.#preconnected.has(origin)) return;
    const socket = this.#makeConnection(options);
    this.#stateOf(socket).idleSince = this.#clock.now();
    this.#preconnected.set(origin, socket);
    const isSpare = () => this.#preconnected.get(origin) === socket;
    const cancel = this.#clock.watch(() => isSpare() && socket.destroy(), PRECONNECTED_MS);
    socket.unref().once('close', () => {
      cancel();
      if (isSpare()) this.#preconnected.delete(origin);
    });
  }

  /** Of one of its own connections; undefined for any other. */
  stateOf(socket: Duplex): ConnectionState | undefined {
    return this.#states.get(socket);
  }

  /**
   * Node gives a free connection at once to a request that waits in the queue. Wait two turns of the event loop, so that stray
   * data or a FIN is noticed first, and requests of one turn go out together.
   */
  override emit(event: string, ...details: unknown[]): boolean {
    const socket = details[0] as Duplex;
    const state = event === 'free' ? this.#states.get(socket) : undefined;
    // A new connection is free too, when Node makes it for a request that waits.
    if (!state?.limits || Object.keys(this.requests).length === 0) return super.emit(event, ...details);
    state.idleSince = this.#clock.now();
    const free = (): void => {
      const [next] = this.requests[state.origin] ?? [];
      // Looking at the socket costs a system call, and a request that may be sent again reconnects by itself.
      if (this.#nonRepeatable.has(next) && hasUnreadInput(socket)) return destroyAndRemove(socket);
      state.idleSince = undefined;
      super.emit(event, ...details);
    };
    setImmediate(() => setImmediate(free));
    return true;
  }

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
    if (!state.isOld) return;
    request.once('close', () => {
      if (state.isOld && this.#clock.now() - now > NO_RESPONSE_MS) this.#onNoResponse(state.origin);
    });
  }

  /** Takes no more calls. Connections with a call finish it, and those that wait; the others close now. */
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
    for (const spare of this.#preconnected.values()) spare.destroy();
  }

  /** Resolves once no call is left: one that waits always has one in flight before it. */
  async waitUntilUnused(): Promise<void> {
    for (;;) {
      const [socket] = Object.values(this.sockets).flat();
      if (!socket) return;
      await new Promise((resolve) => socket.once('close', resolve));
    }
  }

  /** Ends all connections and calls, those that wait too (ERR_AGENT_CLOSED), as well as those that come later. */
  close(): void {
    this.#connect = failToConnect;
    this.retire();
    this.destroy();
  }

  #makeConnection(options: RequestOptions): Socket {
    const socket = this.#connect(options);
    const state = new ConnectionState(connectionKey(options));
    this.#states.set(socket, state);
    const onIdle = (): void => {
      if (state.idleSince !== undefined) destroyAndRemove(socket);
    };
    // Between two calls nobody else listens to errors; its close says enough.
    return socket
      .on('data', onIdle)
      .once('end', onIdle)
      .once('session', () => (state.hasTicket = true))
      .on('error', () => undefined);
  }

  #takePreconnected(origin: string): Socket | undefined {
    const spare = this.#preconnected.get(origin);
    if (!spare) return undefined;
    this.#preconnected.delete(origin);
    const state = this.#stateOf(spare);
    state.idleSince = undefined;
    // Until the session ticket has been read, unread input is most likely that ticket.
    if (!spare.destroyed && !(state.hasTicket && hasUnreadInput(spare))) return spare.ref();
    spare.destroy();
    return undefined;
  }

  /**
   * Puts the idle connection that the request is to have last, where Node takes it. If none fits, it closes the oldest, so
   * that a load of changes alone does not leave more and more of them open, and returns the others.
   */
  #selectForReuse(idle: Socket[], mayRepeat = false): Socket[] | undefined {
    const now = this.#clock.now();
    for (let index = idle.length - 1; index >= 0; index -= 1) {
      const socket = idle[index];
      const state = this.#stateOf(socket);
      const idleMs = state.idleMs(now);
      // After a standstill of the process, neither its timer nor the server's close has been seen yet.
      if (idleMs > (state.limits?.repeatable ?? 0)) destroyAndRemove(socket);
      else if (idleMs <= this.#limitOf(state, mayRepeat)) {
        if (mayRepeat || !hasUnreadInput(socket)) {
          if (index < idle.length - 1) idle.push(...idle.splice(index, 1));
          return undefined;
        }
        // The server closed it while handlers of the host blocked the event loop: nginx does that at each reload.
        destroyAndRemove(socket);
      }
    }
    if (idle.length > 0) destroyAndRemove(idle[0]);
    return idle.length > 0 ? idle : undefined;
  }

  #limitOf({ limits = this.#limits, origin }: ConnectionState, mayRepeat: boolean): number {
    const { nonRepeatable: once, repeatable } = limits;
    const limit = mayRepeat ? repeatable : once;
    return this.#unreliable.has(origin) ? Math.min(limit, this.#limits.nonRepeatable) : limit;
  }

  #onNoResponse(origin: string): void {
    this.#unreliable.add(origin);
    const now = this.#clock.now();
    for (const socket of this.freeSockets[origin]?.slice() ?? [])
      if (this.#stateOf(socket).idleMs(now) > this.#limits.nonRepeatable) destroyAndRemove(socket);
  }

  #stateOf(socket: Duplex): ConnectionState {
    return this.#states.get(socket) as ConnectionState;
  }

  #onResponse(request: ClientRequest, response: IncomingMessage): void {
    const state = request.socket && this.#states.get(request.socket);
    if (state?.isOld) this.#unreliable.delete(state.origin);
    state?.onResponse(response, this.#limits);
    if (this.#limits.nonRepeatable === 0 || mayHaveUnreadBody(request.method, response))
      request.shouldKeepAlive = false;
    // As Node does if nobody else listens.
    if (request.listenerCount('response') === 1) response.resume();
  }
}

/** The name of a place, by which connections and TLS sessions are kept. Node's own for https joins all PEMs on each call. */
export function connectionKey({ host, port, localAddress, family, servername }: RequestOptions): string {
  return `${host}:${port}:${localAddress ?? ''}:${family ?? ''}:${servername ?? ''}`;
}

/** As Node's agent does it later on, before it looks for a connection. */
function serverNameOf(request: ClientRequest, { host }: RequestOptions): string {
  const named = String(request.getHeader('host') ?? host);
  const name = named.startsWith('[') ? named.slice(1, named.indexOf(']')) : named.split(':', 1)[0];
  return isIP(name) ? '' : name;
}

/** For plain http, on loopback. */
export function plainConnector({ connectTimeoutMs }: KeepAliveSettings): Connector {
  return (options) =>
    net.connect({ ...attemptTimeoutPerAddress(connectTimeoutMs), ...options } as TcpNetConnectOpts);
}

/** Closes it, and takes it out of the agent at once, not only when it is closed. */
function destroyAndRemove(socket: Duplex): void {
  socket.destroy();
  socket.emit('agentRemove');
}

/** A connection that fails in the next turn, before anything is sent: Node then fails the next call that waits. */
export function failToConnect(): Socket {
  const error = codedError('The client is closed: its agent takes no more calls.', 'ERR_AGENT_CLOSED');
  const lookup: LookupFunction = (_host, _how, found) => setImmediate(() => found(error, []));
  return net.connect({ host: 'closed', port: 1, lookup });
}

/** Whether an answer that should have no body, by method or status, may bring one. */
function mayHaveUnreadBody(method: string, { statusCode, headers }: IncomingMessage): boolean {
  if (method === 'HEAD') return true;
  if (statusCode !== 204 && statusCode !== 304) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
}
