import { readSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage } from 'node:http';
import { type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { type Clock } from '../../time/time.js';
import { type Connection, type Connector } from './connectors.js';

/**
 * A server with `Keep-Alive: timeout=5` closes the connection after 5 s. Stop reusing it 1 s earlier, as Node's agent does, so
 * that no request is on its way at that moment.
 */
const HINT_MARGIN_MS = 1_000;
const MAX_HINT_MS = 60_000;
/** A firewall or load balancer may have dropped a connection that was idle for longer, without a FIN or RST. */
const LONG_IDLE_MS = 4_000;
/** If a request gets no response for so long on a connection that was idle before, that connection was probably dead. */
const NO_RESPONSE_MS = 1_000;
/** How long a preconnected socket waits for its request at most. */
const PRECONNECTED_MS = 4_000;
const FIRST_UNRELIABLE_MS = 300_000;
const MAX_UNRELIABLE_MS = 3_600_000;
/**
 * If the previous response ended at most so many milliseconds ago, a request that may be sent again reuses the connection without
 * a look for unread input. The look costs about 10 us (30 us if its code is cold). A stray response that arrives within so short a
 * time could just as well arrive a moment later, when the request is on its way and nothing can tell the two responses apart.
 */
const JUST_USED_MS = 2;

/** How long connections may be idle. */
export interface IdleSettings {
  clock: Clock;
  /**
   * How long a connection may have been idle, in milliseconds, for a request that must not be sent twice to reuse it. A
   * `Keep-Alive: timeout` header of the server replaces this limit. With 0, no request reuses a connection. Default: the
   * default of `http.idleTimeout`.
   */
  idleTimeoutMs: number;
  /**
   * The same for a request that may be sent again. Default 55,000: load balancers usually close idle connections after 60 s
   * or more.
   */
  longIdleTimeoutMs: number;
}

/** A connection with its last request, and the response. Node's own agent reads both too, but the type definitions leave them out. */
export type UsedConnection = Duplex & {
  _httpMessage?: (ClientRequest & { res?: IncomingMessage | null }) | null;
};

/** The connections to one origin with one client certificate. */
export interface Pool {
  /** The key of the pool in Node's agent. */
  readonly name: string;
  readonly connect: Connector;
  readonly origin: OriginState;
  /** A connection that was made before there was a request for it. */
  preconnected?: ConnectionState;
}

/** A connection of the agent, and what the agent knows about it. */
export class ConnectionState {
  /** When the connection became idle, by the wall clock, which also counts a suspended machine. Undefined during a request. */
  idleSince: number | undefined = undefined;
  /** How long the connection was idle before its current request. 0 again once that request has ended. */
  wasIdleMs = 0;
  /** Whether a TLS session ticket has arrived, which shows that the server has accepted the handshake and our certificate. */
  hasTicket = false;
  /** When the current request reused the connection. */
  #usedSince = 0;
  /** Whether there was no response yet. */
  #isNew = true;
  /** How long the server says that it keeps the connection, less the margin. */
  #hintMs: number | undefined = undefined;
  readonly #settings: IdleSettings;

  constructor(
    readonly socket: Socket,
    readonly pool: Pool,
  ) {
    this.#settings = pool.origin.settings;
    const closeIfIdle = (): void => {
      if (this.idleSince !== undefined) this.close();
    };
    socket
      .on('data', closeIfIdle)
      .once('end', closeIfIdle)
      .once('session', () => (this.hasTicket = true))
      // While the connection is idle, nobody else listens to its errors, and an error without a listener ends the process.
      .on('error', () => undefined)
      .once('close', () => {
        const isUnanswered = this.wasIdleLong && !(socket as UsedConnection)._httpMessage?.res;
        if (isUnanswered && this.#settings.clock.now() - this.#usedSince > NO_RESPONSE_MS)
          pool.origin.onNoResponse();
      });
  }

  /** Whether the connection was idle for over 4 s before its current request, so that it may be dead without a FIN or RST. */
  get wasIdleLong(): boolean {
    return this.wasIdleMs > LONG_IDLE_MS;
  }

  /** Infinity if the wall clock was set back meanwhile, because the time is then unknown. */
  get idleMs(): number {
    const now = this.#settings.clock.now();
    const ms = now - (this.idleSince ?? now);
    return ms < 0 ? Infinity : ms;
  }

  startIdle(): void {
    this.idleSince = this.#settings.clock.now();
  }

  endIdle(): void {
    this.wasIdleMs = this.idleMs;
    this.idleSince = undefined;
    this.#usedSince = this.#settings.clock.now();
  }

  /** How long the connection may have been idle, in milliseconds, for a request to use it. */
  limitFor(mayUseOlderConnection: boolean): number {
    const { idleTimeoutMs, longIdleTimeoutMs } = this.#settings;
    if (this.#isNew) return Math.min(PRECONNECTED_MS, idleTimeoutMs);
    const limit = this.#hintMs ?? (mayUseOlderConnection ? longIdleTimeoutMs : idleTimeoutMs);
    return this.pool.origin.isUnreliable ? Math.min(limit, idleTimeoutMs) : limit;
  }

  /** What becomes of this idle connection when a request looks for one: the request uses it, it stays in the pool, or it closes. */
  judge(mayUseOlderConnection: boolean): 'use' | 'keep' | 'close' {
    const { idleMs } = this;
    // Since Node 22, Node destroys an idle connection that the server has closed, but keeps it in the pool until its `close`
    // event. While the event loop was blocked, the idle timer has not run.
    if (this.socket.destroyed || idleMs > this.limitFor(true)) return 'close';
    if (idleMs > this.limitFor(mayUseOlderConnection)) return 'keep';
    if (mayUseOlderConnection && idleMs <= JUST_USED_MS) return 'use';
    // Before the session ticket of a new connection has arrived, unread input is most likely that ticket.
    if (this.#isNew && !this.hasTicket) return 'use';
    // While the event loop was blocked, the server may have closed the connection (nginx does so at each reload), or may have sent
    // something that must not become the response to this request.
    return detectUnreadInput(this.socket) ? 'close' : 'use';
  }

  /** Reads the response of a request that has ended. Returns whether another request may follow on the connection. */
  onResponse(method: string, response: IncomingMessage): boolean {
    const hint = /\btimeout=(\d+)/i.exec(String(response.headers['keep-alive']))?.[1];
    this.#hintMs = hint ? Math.min(Number(hint) * 1000 - HINT_MARGIN_MS, MAX_HINT_MS) : undefined;
    if (this.wasIdleLong) this.pool.origin.onResponse();
    this.#isNew = false;
    this.wasIdleMs = 0;
    return !mayHaveUnreadBody(method, response);
  }

  /** Closes the connection and removes it from the agent's pool at once. Node would remove it only after the socket has closed. */
  close(): void {
    this.socket.destroy();
    this.socket.emit('agentRemove');
  }
}

/**
 * What is known of an origin, with any certificate: a firewall or load balancer may drop its idle connections silently, without a
 * FIN or RST. That is so when a request on a connection that was idle for over 4 s gets no response. For 5 minutes, connections
 * are then reused only within `http.idleTimeout`. If it happens again afterwards, that time doubles, up to 1 hour.
 */
export class OriginState {
  #endsAt = -Infinity;
  #nextMs = FIRST_UNRELIABLE_MS;

  /** @param onUnreliable called when idle connections of this origin must close, unless they are young */
  constructor(
    readonly settings: IdleSettings,
    private readonly onUnreliable: (origin: OriginState) => void,
  ) {}

  get isUnreliable(): boolean {
    return this.#endsAt > this.settings.clock.monotonic();
  }

  /** A request got its response on a connection that was idle for over 4 s. */
  onResponse(): void {
    this.#endsAt = -Infinity;
    this.#nextMs = FIRST_UNRELIABLE_MS;
  }

  /** A request on a connection that was idle for over 4 s got no response. */
  onNoResponse(): void {
    if (this.isUnreliable) return;
    this.#endsAt = this.settings.clock.monotonic() + this.#nextMs;
    this.#nextMs = Math.min(2 * this.#nextMs, MAX_UNRELIABLE_MS);
    this.onUnreliable(this);
  }
}

/** Whether a response that must have no body, because of its method or status, may have one on the wire nevertheless. */
function mayHaveUnreadBody(method: string, { statusCode, headers }: IncomingMessage): boolean {
  if (method === 'HEAD') return true;
  if (statusCode !== 204 && statusCode !== 304) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
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
