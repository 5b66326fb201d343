import { type IncomingMessage } from 'node:http';
import { type Clock } from '../../time/clock.js';

/** A server ends a connection after its hint: it must not be on its way then (as Node has it). */
const HINT_MARGIN_MS = 1_000;
const MAX_HINT_MS = 60_000;
/** After a longer pause, a firewall or load balancer may have forgotten the connection. */
const OLD_MS = 4_000;
const FIRST_UNRELIABLE_MS = 300_000;
const MAX_UNRELIABLE_MS = 3_600_000;

/** How long a connection may be idle, in milliseconds, if the server gives no hint. */
export interface IdleLimits {
  /** When a request takes it that must not be sent twice. */
  nonRepeatable: number;
  /** When a request takes it that may be sent again. */
  repeatable: number;
}

/** What the agent knows of one of its connections. */
export class ConnectionState {
  /** Undefined until it has had a response. */
  limits: IdleLimits | undefined = undefined;
  /** When it became idle, by the wall clock; undefined while it has a request. */
  idleSince: number | undefined = undefined;
  /** How long it was idle before its current request, until the response. */
  wasIdleMs = 0;
  /** A TLS session ticket has come: the server has accepted the handshake, and our certificate. */
  hasTicket = false;

  /** @param origin the name of its pool */
  constructor(readonly origin: string) {}

  /** It may be dead without anybody having said so. */
  get isOld(): boolean {
    return this.wasIdleMs > OLD_MS;
  }

  idleMs(now: number): number {
    return now - (this.idleSince ?? now);
  }

  onResponse({ headers }: IncomingMessage, limits: IdleLimits): void {
    const hint = /\btimeout=(\d+)/i.exec(String(headers['keep-alive']))?.[1];
    const hintMs = Math.min(Number(hint) * 1000 - HINT_MARGIN_MS, MAX_HINT_MS);
    this.limits = hint ? { nonRepeatable: hintMs, repeatable: hintMs } : limits;
    this.wasIdleMs = 0;
  }
}

/**
 * Origins on whose old connections a request got no response: something on the way drops idle connections without a word.
 * They are not trusted for 5 minutes, and twice as long each time that the next trial fails.
 */
export class UnreliableOrigins {
  readonly #clock: Clock;
  readonly #origins = new Map<string, { endsAt: number; nextMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(origin: string): boolean {
    return (this.#origins.get(origin)?.endsAt ?? -Infinity) > this.#clock.monotonic();
  }

  add(origin: string): void {
    if (this.has(origin)) return;
    const ms = this.#origins.get(origin)?.nextMs ?? FIRST_UNRELIABLE_MS;
    this.#origins.set(origin, {
      endsAt: this.#clock.monotonic() + ms,
      nextMs: Math.min(2 * ms, MAX_UNRELIABLE_MS),
    });
  }

  /** A request got its response on an old connection. */
  delete(origin: string): void {
    this.#origins.delete(origin);
  }
}
