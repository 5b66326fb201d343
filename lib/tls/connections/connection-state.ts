import { readSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage } from 'node:http';
import { type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { elapsedMs, type Moment } from '../../time/time.js';
import { type Connection, type Connector } from './connectors.js';
import { type OriginState, USUAL_IDLE_MS } from './origin-state.js';

/**
 * A server with `Keep-Alive: timeout=5` closes the connection after 5 s. Stop reusing it 1 s earlier, as Node's agent does, so
 * that no request is on its way at that moment.
 */
const HINT_MARGIN_MS = 1_000;
const MAX_HINT_MS = 60_000;
/** For how long it counts that a connection has answered after an idle time: routes and servers change. */
const PROOF_MS = 600_000;
/** If a request gets no response for so long on a connection that was idle before, that connection was probably dead. */
const NO_RESPONSE_MS = 1_000;
/**
 * If the previous response ended at most so many milliseconds ago, a request that may be sent again reuses the connection without
 * a look for unread input. The look costs about 10 us (30 us if its code is cold). A stray response that arrives within so short a
 * time could just as well arrive a moment later, when the request is on its way and nothing can tell the two responses apart.
 */
const JUST_USED_MS = 2;

type FinishedRequest = ClientRequest & { res?: IncomingMessage | null };
/** A connection with its last request. Node's own agent reads `_httpMessage` and `res` too, but the type definitions leave them out. */
type UsedConnection = Duplex & { _httpMessage?: FinishedRequest | null };

/** The connections to one origin with one client certificate. */
export interface Pool {
  /** The key of the pool in Node's agent. */
  readonly name: string;
  readonly connect: Connector;
  readonly origin: OriginState;
  /** The newest TLS session, for resumption. */
  session?: Buffer;
}

/** A connection of the agent, and what the agent knows about it. */
export class ConnectionState {
  /** When the connection became idle. Undefined during a request. */
  idleSince: Moment | undefined = undefined;
  /** Whether a TLS session ticket has arrived, which shows that the server has accepted the handshake and our certificate. */
  hasTicket = false;
  /** Whether there was no response yet. */
  isNew = true;
  /** How long the connection was idle until its current request took it. Undefined if it was not idle between two requests. */
  #wasIdle: ConnectionState['idleTime'] | undefined = undefined;
  /** Whether a byte of a response has arrived since then. */
  #hasInput = false;
  /** How long the server says that it keeps the connection, less the margin. */
  #hintMs: number | undefined = undefined;
  /** The idle times after which the connection has answered. An older one is kept only while it is longer than all newer ones. */
  #proofs: ConnectionState['idleTime'][] = [];

  constructor(
    readonly socket: Socket & UsedConnection,
    readonly pool: Pool,
  ) {
    const { connections } = pool.origin;
    connections.add(this);
    socket
      .on('data', () => (this.idleSince ? this.close() : (this.#hasInput = true)))
      .on('timeout', () => this.idleSince && this.close())
      .once('session', () => (this.hasTicket = true))
      .once('end', () => this.#onEnd())
      // While the connection is idle, nobody else listens to its errors, and an error without a listener ends the process.
      .on('error', (error: NodeJS.ErrnoException) => this.#onEnd(error.code))
      .once('close', () => this.#onEnd())
      .once('close', () => connections.delete(this));
  }

  /** Whether the connection was idle for over 4 s before its current request, so that it may be dead without a FIN or RST. */
  get wasIdleLong(): boolean {
    return this.#wasIdle !== undefined && this.#wasIdle.mostMs > USUAL_IDLE_MS;
  }

  /**
   * How long the connection has been idle, at least and at most: the wall clock may have been set, and the monotonic clock does not
   * run while the machine is suspended. At most Infinity if the wall clock was set back, because the time is then unknown.
   */
  get idleTime(): { leastMs: number; mostMs: number; at: Moment } {
    const at = this.pool.origin.now;
    const since = this.idleSince ?? at;
    const wallMs = at.wall - since.wall;
    const ms = at.monotonic - since.monotonic;
    const mostMs = wallMs < 0 ? Infinity : Math.max(wallMs, ms);
    return { leastMs: Math.max(0, Math.min(wallMs, ms)), mostMs, at };
  }

  /** The connection is free, and no request waits for it. */
  startIdle(): void {
    this.idleSince = this.pool.origin.now;
  }

  /** A request reuses the connection. */
  endIdle(): void {
    this.#wasIdle = this.idleTime;
    this.idleSince = undefined;
    this.#hasInput = false;
  }

  /**
   * How long the connection may have been idle, in milliseconds, for a request to use it. A request that must not be sent twice goes by
   * what this very connection has proven: behind one address there may be servers with other limits. Half of the proven time is the
   * margin for the way of the request, for the server's timer, and for servers that look for idle connections only now and then.
   */
  limitFor(mayUseOlderConnection: boolean): number {
    const { origin } = this.pool;
    const { clock, idleTimeoutMs, longIdleTimeoutMs } = origin.settings;
    const proven = this.#proofs.find(({ at }) => elapsedMs(clock, at) < PROOF_MS);
    const usualMs = idleTimeoutMs ?? Math.max(USUAL_IDLE_MS, (proven?.leastMs ?? 0) / 2);
    const olderMs = mayUseOlderConnection ? Math.max(usualMs, longIdleTimeoutMs) : usualMs;
    const ownMs = this.isNew ? Math.min(usualMs, USUAL_IDLE_MS) : (this.#hintMs ?? olderMs);
    return Math.min(ownMs, origin.limitFor(mayUseOlderConnection));
  }

  /** What becomes of this idle connection when a request looks for one: the request uses it, it stays in the pool, or it closes. */
  judge(mayUseOlderConnection: boolean): 'use' | 'keep' | 'close' {
    const { mostMs: idleMs } = this.idleTime;
    // Since Node 22, Node destroys an idle connection that the server has closed, but keeps it in the pool until its `close`
    // event. While the event loop was blocked, the idle timer has not run.
    if (this.socket.destroyed || idleMs > this.limitFor(true)) return 'close';
    if (idleMs > this.limitFor(mayUseOlderConnection)) return 'keep';
    if (mayUseOlderConnection && idleMs <= JUST_USED_MS) return 'use';
    // Before the session ticket of a new connection has arrived, unread input is most likely that ticket.
    if (this.isNew && !this.hasTicket) return 'use';
    // While the event loop was blocked, the server may have closed the connection (nginx does so at each reload), or may have sent
    // something that must not become the response to this request.
    return detectUnreadInput(this.socket) ? 'close' : 'use';
  }

  /** Reads the response of a request that has ended. Returns whether another request may follow on the connection. */
  onResponse(method: string, response: IncomingMessage): boolean {
    const hint = /\btimeout=(\d+)/i.exec(String(response.headers['keep-alive']))?.[1];
    this.#hintMs = hint ? Math.min(Number(hint) * 1000 - HINT_MARGIN_MS, MAX_HINT_MS) : undefined;
    const wasIdle = this.#wasIdle;
    if (wasIdle && this.wasIdleLong) {
      this.#proofs = [...this.#proofs.filter(({ leastMs }) => leastMs > wasIdle.leastMs), wasIdle];
      this.pool.origin.recordLongIdleAnswer();
    }
    this.#wasIdle = undefined;
    this.isNew = false;
    return !mayHaveUnreadBody(method, response);
  }

  /** Closes the connection and removes it from the agent's pool at once. Node would remove it only after the socket has closed. */
  close(): void {
    this.idleSince = this.#wasIdle = undefined;
    this.socket.destroy();
    this.socket.emit('agentRemove');
  }

  /**
   * The connection ends. close() deletes `idleSince` and `#wasIdle`, so that an end of our own is no sign of the server.
   */
  #onEnd(code?: string): void {
    const { origin } = this.pool;
    const wasIdle = this.#wasIdle;
    if (this.idleSince) {
      const { leastMs } = this.idleTime;
      this.close();
      // Since Node 22, Node hides the code of an idle connection without a proxy.
      if (code === 'ETIMEDOUT') origin.recordSilence();
      else if (!this.isNew) origin.recordIdleEnd(leastMs);
    } else if (wasIdle && !this.#hasInput) {
      // If this side has aborted the request, the request is destroyed already.
      if (this.socket._httpMessage?.destroyed === false) origin.recordLoss(wasIdle.leastMs);
      const inUseMs = elapsedMs(origin.settings.clock, wasIdle.at);
      if (this.wasIdleLong && inUseMs > NO_RESPONSE_MS) origin.recordSilence();
    }
  }
}

/** Whether a response that must have no body, because of its method or status, may have one on the wire nevertheless. */
function mayHaveUnreadBody(method: string, { statusCode, headers }: IncomingMessage): boolean {
  const isAnnounced = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
  return method === 'HEAD' || ((statusCode === 204 || statusCode === 304) && isAnnounced);
}

/** False on Windows, where a socket has no file descriptor that can be read. */
export const canDetectUnreadInput = process.platform !== 'win32';

/** For the byte that is read, which nobody uses. A new buffer for each read would cost as much as the system call. */
const discarded = Buffer.alloc(1);

/**
 * Whether the socket of an idle connection has input that the event loop has not processed yet: a FIN, because the server has
 * closed the connection, or stray data. That happens while the event loop is blocked or runs other callbacks first. A
 * request on such a connection would be lost. The function reads one byte directly from the socket, so close the connection
 * if it returns true.
 */
export function detectUnreadInput(connection: Connection): boolean {
  const socket = connection.transport?.socket ?? connection;
  // Node does not document `_handle`. It is absent once the connection is closed.
  const { fd = -1 } = (socket as { _handle?: { fd?: number } | null })._handle ?? {};
  if (fd < 0) return false;
  const { stackTraceLimit } = Error;
  // The error below needs no stack trace, which costs more than the system call. False if the host has frozen the intrinsics.
  const isLimited = Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    // A result of 0 bytes is a FIN.
    readSync(fd, discarded);
    return true;
  } catch (error) {
    // EAGAIN: nothing has arrived.
    return (error as NodeJS.ErrnoException).code === 'ECONNRESET';
  } finally {
    if (isLimited) Error.stackTraceLimit = stackTraceLimit;
  }
}
