import { type IncomingMessage } from 'node:http';
import { type Clock } from '../../time/time.js';

/**
 * A server with `Keep-Alive: timeout=5` closes the connection after 5 s. Stop reusing it 1 s earlier, as Node's agent does, so
 * that no request is on its way at that moment.
 */
const HINT_MARGIN_MS = 1_000;
const MAX_HINT_MS = 60_000;
/** A firewall or load balancer may have dropped a connection that was idle for longer, without a FIN or RST. */
const LONG_IDLE_MS = 4_000;
const FIRST_UNRELIABLE_MS = 300_000;
const MAX_UNRELIABLE_MS = 3_600_000;

/** How long a connection may have been idle when a request reuses it, in milliseconds. */
export interface IdleLimits {
  /** For a request that must not be sent twice. */
  nonRepeatable: number;
  /** For a request that may be sent again. */
  repeatable: number;
}

/** What the agent knows about one of its connections. */
export class ConnectionState {
  /** Undefined until the first response. */
  limits: IdleLimits | undefined = undefined;
  /** When the connection became idle, by the wall clock, which also counts a suspended machine. Undefined during a request. */
  idleSince: number | undefined = undefined;
  /** How long the connection was idle before its current request. 0 again once that request has ended. */
  wasIdleMs = 0;
  /** Whether a TLS session ticket has arrived, which shows that the server has accepted the handshake and our certificate. */
  hasTicket = false;

  /** @param origin the key of its pool */
  constructor(readonly origin: string) {}

  /** Whether the connection was idle for over 4 s before its current request, so that it may be dead without a FIN or RST. */
  get wasIdleLong(): boolean {
    return this.wasIdleMs > LONG_IDLE_MS;
  }

  /** Infinity if the wall clock was set back meanwhile, because the time is then unknown. */
  idleMs(now: number): number {
    const ms = now - (this.idleSince ?? now);
    return ms < 0 ? Infinity : ms;
  }

  onResponse({ headers }: IncomingMessage, limits: IdleLimits): void {
    const hint = /\btimeout=(\d+)/i.exec(String(headers['keep-alive']))?.[1];
    const hintMs = Math.min(Number(hint) * 1000 - HINT_MARGIN_MS, MAX_HINT_MS);
    this.limits = hint ? { nonRepeatable: hintMs, repeatable: hintMs } : limits;
    this.wasIdleMs = 0;
  }
}

/**
 * Origins behind a firewall or load balancer that drops idle connections silently, without a FIN or RST. An origin is added when
 * a request on a connection that was idle for over 4 s gets no response. For 5 minutes, connections to it are then reused
 * only within `http.idleTimeout`. If it happens again afterwards, that time doubles, up to 1 hour.
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

  /** Forgets an origin, because a request got its response on a connection that was idle for over 4 s. */
  delete(origin: string): void {
    this.#origins.delete(origin);
  }
}
