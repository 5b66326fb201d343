import { type ClientRequest, type IncomingMessage } from 'node:http';
import { type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { type Clock } from '../../time/clock.js';

/** Milliseconds for which a connection may be idle, if the server's keep-alive hint is not shorter. */
export const IDLE_TIMEOUT_MS = 30_000;

export interface PoolSettings {
  /** Connections to one origin. */
  maxSockets: number;
  /** Milliseconds for which an idle connection is kept, if the server's keep-alive hint is not shorter. Default 30,000. */
  idleTimeoutMs?: number;
  /** Milliseconds to connect: `http.connectTimeout`. A request's own counts before it. Default: no limit. */
  connectTimeoutMs?: number;
  clock?: Clock;
}

/** A time by both clocks: the monotonic one stands still while a machine sleeps. */
interface Moment {
  now: number;
  monotonic: number;
}

const NEVER: Moment = { now: Infinity, monotonic: Infinity };

function isOver(moment: Moment, { now, monotonic }: Moment): boolean {
  return moment.now < now || moment.monotonic < monotonic;
}

function sooner(one: Moment, other: Moment): Moment {
  return { now: Math.min(one.now, other.now), monotonic: Math.min(one.monotonic, other.monotonic) };
}

/**
 * The idle connections of an agent. Drops those that must not be used again: data on one would be taken for the answer to
 * the next request (RFC 9112, 6.3), or the server has closed it.
 */
export class IdleConnections {
  readonly #clock: Clock;
  /** When the idle time of each ends. */
  readonly #until = new Map<Duplex, Moment>();
  /** The first of these times: before it, no call has to look at them. */
  #soonest = NEVER;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Watches a new connection: data that comes while it is idle closes it. */
  watch(socket: Duplex): void {
    const dropIdle = (): void => {
      if (this.#until.has(socket)) this.#drop(socket);
    };
    socket.on('data', dropIdle);
    socket.once('end', dropIdle);
    socket.once('close', () => this.#until.delete(socket));
  }

  /** Adds a connection, which has its time limit. */
  add(socket: Duplex): void {
    const { timeout } = socket as Socket;
    const mayBeIdleMs = timeout || Infinity;
    const until = {
      now: this.#clock.now() + mayBeIdleMs,
      monotonic: this.#clock.monotonic() + mayBeIdleMs,
    };
    this.#until.set(socket, until);
    this.#soonest = sooner(this.#soonest, until);
  }

  take(socket: Duplex): void {
    this.#until.delete(socket);
  }

  /** After a standstill, neither the timer of a connection nor the server's close has been seen yet. */
  dropOverdue(): void {
    if (this.#until.size === 0) return;
    const now = { now: this.#clock.now(), monotonic: this.#clock.monotonic() };
    if (!isOver(this.#soonest, now)) return;
    for (const [socket, until] of this.#until) if (isOver(until, now)) this.#drop(socket);
    this.#soonest = [...this.#until.values()].reduce(sooner, NEVER);
  }

  dropAll(): void {
    for (const socket of this.#until.keys()) this.#drop(socket);
  }

  /** Closes it, and takes it out of the agent at once, not only when it is closed. */
  #drop(socket: Duplex): void {
    socket.destroy();
    socket.emit('agentRemove');
  }
}

/** Does not use a connection again after an answer that should have no body, by method or status, but may bring one. */
export function endAfterUnreadBody(request: ClientRequest): void {
  request.once('response', onResponse);
}

function onResponse(this: ClientRequest, response: IncomingMessage): void {
  if (mayHaveUnreadBody(this.method, response)) this.shouldKeepAlive = false;
  // As Node does if nobody listens.
  if (this.listenerCount('response') === 0) response.resume();
}

function mayHaveUnreadBody(method: string, { statusCode, headers }: IncomingMessage): boolean {
  if (method === 'HEAD') return true;
  if (statusCode !== 204 && statusCode !== 304) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
}
