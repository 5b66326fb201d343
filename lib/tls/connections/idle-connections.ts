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

/** By both clocks: the monotonic one stands still while a machine sleeps. */
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
 * The connections of an agent that wait for a request, and which of them must not have one: a leftover would be the answer
 * to it (RFC 9112, 6.3), or the server has closed it.
 */
export class IdleConnections {
  readonly #clock: Clock;
  /** Until when each may be idle. */
  readonly #until = new Map<Duplex, Moment>();
  /** None of them is overdue before, so that most calls look at none. */
  #soonest = NEVER;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For a new connection: whatever comes while it is idle ends it. */
  watch(socket: Duplex): void {
    const dropIdle = (): void => {
      if (this.#until.has(socket)) this.#drop(socket);
    };
    socket.on('data', dropIdle);
    socket.once('end', dropIdle);
    socket.once('close', () => this.#until.delete(socket));
  }

  /** It has its time limit. */
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

  /** After a standstill neither the timer of a connection nor the server's close was seen yet. */
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

  /** Closes it, and takes it out of the agent at once: it would be there until it is closed. */
  #drop(socket: Duplex): void {
    this.#until.delete(socket);
    socket.destroy();
    socket.emit('agentRemove');
  }
}

/** A connection is not used again after an answer that has no body by its method or status, and may bring one all the same. */
export function endAfterUnreadBody(request: ClientRequest): void {
  request.once('response', onResponse);
}

function onResponse(this: ClientRequest, response: IncomingMessage): void {
  if (mayHaveUnreadBody(this.method, response)) this.shouldKeepAlive = false;
  // As Node does where nobody listens.
  if (this.listenerCount('response') === 0) response.resume();
}

function mayHaveUnreadBody(method: string, { statusCode, headers }: IncomingMessage): boolean {
  if (method === 'HEAD') return true;
  if (statusCode !== 204 && statusCode !== 304) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
}
