import { Agent, type ClientRequest, type ClientRequestArgs, type IncomingMessage } from 'node:http';
import { type RequestOptions } from 'node:https';
import net, { isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type Duplex } from 'node:stream';
import { DEFAULTS } from '../../config/options.js';
import { codedError } from '../../errors/error-codes.js';
import { type Clock, setImmediate, systemClock } from '../../time/clock.js';
import { timeForEachAddress } from './connecting.js';
import { hasUnreadInput } from './unread-input.js';

export interface PoolSettings {
  /** Connections to one origin. */
  maxSockets: number;
  /** Milliseconds for which an idle connection is used without a hint of the server; 0: none is used again. Default: that of `http.idleTimeout`. */
  idleTimeoutMs?: number;
  /** Milliseconds to connect: `http.connectTimeout`. Default: no limit. */
  connectTimeoutMs?: number;
  clock?: Clock;
}

export type Connect = (options: RequestOptions) => Socket;

/** What a request of ours tells the agent. A host's own requests tell it nothing, and nobody repeats them. */
type SentOptions = RequestOptions & { mayRepeat?: boolean };

/** The part of an agent by which node:http hands it a request, and which the types leave out. */
interface RequestTaker {
  addRequest(request: ClientRequest, options: RequestOptions): void;
}
const nodeAgent = Agent.prototype as unknown as RequestTaker;

/** Of a connection that has had an answer: how long it may be idle, and until when, if it has no call. */
interface Idle {
  ms: number;
  until?: number;
}

/** A server ends a connection after its hint: it must not be on its way then (as Node has it). */
const HINT_MARGIN_MS = 1_000;
const MAX_IDLE_MS = 60_000;
const KEEP_ALIVE_MS = 1_000;

/**
 * Connections that are used again, and the queue for them, which is Node's own. A connection is not used again if data on
 * it could be taken for the answer to the next request (RFC 9112, 6.3), or if the server may have closed it.
 */
export class Connections extends Agent {
  #connect: Connect;
  readonly #idleTimeoutMs: number;
  readonly #clock: Clock;
  readonly #made = new WeakSet<Duplex>();
  readonly #idle = new WeakMap<Duplex, Idle>();
  #isRetired = false;

  constructor(connect: Connect, settings: PoolSettings) {
    const { maxSockets, idleTimeoutMs = DEFAULTS.http.idleTimeout, clock = systemClock } = settings;
    super({ keepAlive: true, maxSockets });
    this.#connect = connect;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#clock = clock;
  }

  override getName(options: ClientRequestArgs = {}): string {
    return nameOf(options);
  }

  /** node:http calls this for each request. */
  addRequest(request: ClientRequest, options: SentOptions): void {
    options.servername ??= serverNameOf(request, options);
    this.#dropOverdue();
    if (!options.mayRepeat) this.#dropClosed(this.freeSockets[this.getName(options)]);
    if (this.#idleTimeoutMs === 0) request.shouldKeepAlive = false;
    request.on('response', (response) => this.#onResponse(request, response));
    nodeAgent.addRequest.call(this, request, options);
  }

  override createConnection(options: RequestOptions): Duplex {
    const socket = this.#connect(options);
    this.#made.add(socket);
    const onIdle = (): void => {
      if (this.#idle.get(socket)?.until !== undefined) drop(socket);
    };
    // Between two calls nobody else listens to errors; its close says enough.
    return socket
      .on('data', onIdle)
      .once('end', onIdle)
      .on('error', () => undefined);
  }

  hasMade(socket: Duplex): boolean {
    return this.#made.has(socket);
  }

  /**
   * Node gives a free connection at once to a request that waits in the queue. Wait two turns of the event loop, so that stray
   * data or a FIN is noticed first, and requests of one turn go out together.
   */
  override emit(event: string, ...details: unknown[]): boolean {
    const socket = details[0] as Duplex;
    const idle = event === 'free' ? this.#idle.get(socket) : undefined;
    if (!idle || Object.keys(this.requests).length === 0) return super.emit(event, ...details);
    idle.until = Infinity;
    const free = (): void => {
      if (hasUnreadInput(socket)) return drop(socket);
      idle.until = undefined;
      super.emit(event, ...details);
    };
    setImmediate(() => setImmediate(free));
    return true;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const idle = this.#idle.get(socket);
    if (this.#isRetired || !idle || idle.ms <= 0) return false;
    const { ms } = idle;
    idle.until = this.#clock.now() + ms;
    const connection = socket as Socket;
    connection.setKeepAlive(true, KEEP_ALIVE_MS).unref();
    if (connection.timeout !== ms) connection.setTimeout(ms);
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    const idle = this.#idle.get(socket);
    if (idle) idle.until = undefined;
  }

  /** Takes no more calls. Connections with a call finish it, and those that wait; the others close now. */
  retire(): void {
    this.#isRetired = true;
    for (const socket of Object.values(this.freeSockets).flat()) if (socket) drop(socket);
  }

  /** Resolves once no call is left: one that waits always has one in flight before it. */
  async whenEmpty(): Promise<void> {
    for (;;) {
      const [socket] = Object.values(this.sockets).flat();
      if (!socket) return;
      await new Promise((resolve) => socket.once('close', resolve));
    }
  }

  /** Ends all connections and calls, those that wait too (ERR_AGENT_CLOSED), as well as those that come later. */
  close(): void {
    this.#connect = failing;
    this.retire();
    this.destroy();
  }

  /** After a standstill, neither the timer of a connection nor the server's close has been seen yet. */
  #dropOverdue(): void {
    const now = this.#clock.now();
    const isOverdue = (socket: Duplex): boolean => (this.#idle.get(socket)?.until ?? Infinity) < now;
    for (const free of Object.values(this.freeSockets)) {
      // Node takes the last one.
      for (let last = free?.at(-1); last && isOverdue(last); last = free?.at(-1)) drop(last);
    }
  }

  /**
   * Node takes the last free connection. While handlers of the host block the event loop, the server may have closed it: nginx does
   * that at each reload.
   */
  #dropClosed(free: Duplex[] | undefined): void {
    for (let last = free?.at(-1); last && hasUnreadInput(last); last = free?.at(-1)) drop(last);
  }

  #onResponse(request: ClientRequest, response: IncomingMessage): void {
    if (request.socket) this.#idle.set(request.socket, { ms: this.#idleTimeOf(response) });
    if (this.#idleTimeoutMs === 0 || mayHaveUnreadBody(request.method, response))
      request.shouldKeepAlive = false;
    // As Node does if nobody else listens.
    if (request.listenerCount('response') === 1) response.resume();
  }

  #idleTimeOf({ headers }: IncomingMessage): number {
    const hint = /\btimeout=(\d+)/i.exec(String(headers['keep-alive']))?.[1];
    return hint ? Math.min(Number(hint) * 1000 - HINT_MARGIN_MS, MAX_IDLE_MS) : this.#idleTimeoutMs;
  }
}

/** The name of a place, by which connections and TLS sessions are kept. Node's own for https joins all PEMs on each call. */
export function nameOf({ host, port, localAddress, family, servername }: RequestOptions): string {
  return `${host}:${port}:${localAddress ?? ''}:${family ?? ''}:${servername ?? ''}`;
}

/** As Node's agent does it later on, before it looks for a connection. */
function serverNameOf(request: ClientRequest, { host }: RequestOptions): string {
  const named = String(request.getHeader('host') ?? host);
  const name = named.startsWith('[') ? named.slice(1, named.indexOf(']')) : named.split(':', 1)[0];
  return isIP(name) ? '' : name;
}

/** For plain http, on loopback. */
export function connectPlain({ connectTimeoutMs }: PoolSettings): Connect {
  return (options) =>
    net.connect({ ...timeForEachAddress(connectTimeoutMs), ...options } as TcpNetConnectOpts);
}

/** Closes it, and takes it out of the agent at once, not only when it is closed. */
function drop(socket: Duplex): void {
  socket.destroy();
  socket.emit('agentRemove');
}

/** A connection that fails in the next turn, before anything is sent: Node then fails the next call that waits. */
export function failing(): Socket {
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
