import { type Clock, type Moment, momentOf } from '../../time/time.js';
import { type ConnectionState, type Pool } from './connection-state.js';

/**
 * How long a connection may have been idle for a request that must not be sent twice, if neither the server nor the host application
 * says anything. After a longer time, a firewall or load balancer may have dropped the connection without a FIN or RST.
 */
export const USUAL_IDLE_MS = 4_000;
/** A connection that ends so soon after its last response ends for another reason than its idle time. */
const MIN_AGE_MS = 500;
/** How long the end of an idle connection is remembered, and how long the limit holds that two of them show. */
const IDLE_ENDS_MS = 600_000;
const MAX_IDLE_ENDS = 20;
const FIRST_PENALTY_MS = 300_000;
const MAX_PENALTY_MS = 3_600_000;

/** How long connections may be idle. */
export interface IdleSettings {
  clock: Clock;
  /**
   * How long a connection may have been idle, in milliseconds, for a request that must not be sent twice to reuse it
   * (`http.idleTimeout`). A `Keep-Alive: timeout` header of the server replaces this limit. With 0, no request reuses a connection.
   * Undefined: 4 s, or more if the connection has proven more.
   */
  idleTimeoutMs?: number;
  /**
   * The same for a request that may be sent again. Default 55,000: load balancers usually close idle connections after 60 s
   * or more.
   */
  longIdleTimeoutMs: number;
}

type LimitKind = 'lost' | 'silent' | 'closing';

/**
 * What the connections to one origin have shown, with any client certificate. It cuts the time for which a connection may have been
 * idle when a request that must not be sent twice reuses it:
 * - `lost`: the server ended a connection before the first byte of a response. So it closes connections at about the age which that
 *   one had. Half of that age, and at most 4 s.
 * - `silent`: a request on a connection that was idle for over 4 s got no response, or an idle connection did not answer its TCP
 *   keep-alive probes. So a firewall or load balancer drops idle connections without a FIN or RST. 4 s, also for requests that may
 *   be sent again.
 * - `closing`: two idle connections ended at the same age, so the server closes them at that age. Half of it, for 10 minutes after the
 *   last end. One end alone may be a restart of the server.
 *
 * The first two hold for 5 minutes. If it happens again afterwards, they hold for twice as long as before, up to 1 hour.
 */
export class OriginState {
  /** The pool of the certificate in use. */
  pool: Pool | undefined = undefined;
  /** The open connections. */
  readonly connections = new Set<ConnectionState>();
  readonly #limits = new Map<LimitKind, { ms: number; endsAt: number; nextMs: number }>();
  #idleEnds: { ageMs: number; at: number }[] = [];

  constructor(readonly settings: IdleSettings) {}

  /** For how long a connection may have been idle, as far as the origin is concerned. */
  limitFor(mayUseOlderConnection: boolean): number {
    const limits = [...this.#limits].filter(([kind]) => kind === 'silent' || !mayUseOlderConnection);
    return Math.min(...limits.map(([, { ms, endsAt }]) => (this.now.monotonic < endsAt ? ms : Infinity)));
  }

  /** The server has ended a connection that had been idle for `idleMs`, so that its next request was lost. */
  recordLoss(idleMs: number): void {
    if (idleMs >= MIN_AGE_MS) this.#limit('lost', idleMs / 2);
  }

  /** A connection that had been idle has died without a FIN or RST. Closes the idle ones that may be dead too. */
  recordSilence(): void {
    this.#limit('silent', USUAL_IDLE_MS);
    for (const each of this.connections) if (each.idleSince && each.judge(true) === 'close') each.close();
  }

  /** Something other than this client has ended a connection that was idle for `ageMs`. */
  recordIdleEnd(ageMs: number): void {
    if (ageMs < MIN_AGE_MS) return;
    const recent = this.#idleEnds
      .filter(({ at }) => this.now.monotonic - at < IDLE_ENDS_MS)
      .slice(1 - MAX_IDLE_ENDS);
    const alike = recent.find((end) => Math.abs(end.ageMs - ageMs) < Math.max(end.ageMs, ageMs) / 10);
    if (alike) this.#limit('closing', Math.min(alike.ageMs, ageMs) / 2);
    this.#idleEnds = [...recent, { ageMs, at: this.now.monotonic }];
  }

  /** A connection that had been idle for over 4 s has answered. */
  recordLongIdleAnswer(): void {
    for (const limit of this.#limits.values()) limit.nextMs = FIRST_PENALTY_MS;
  }

  #limit(kind: LimitKind, ms: number): void {
    const { idleTimeoutMs = USUAL_IDLE_MS } = this.settings;
    const limit = this.#limits.get(kind) ?? { ms, endsAt: -Infinity, nextMs: FIRST_PENALTY_MS };
    this.#limits.set(kind, limit);
    const isOver = this.now.monotonic >= limit.endsAt;
    const maxMs = kind === 'closing' ? ms : Math.min(USUAL_IDLE_MS, idleTimeoutMs);
    limit.ms = Math.min(ms, maxMs, isOver ? Infinity : limit.ms);
    if (kind === 'closing') limit.endsAt = this.now.monotonic + IDLE_ENDS_MS;
    else if (isOver) {
      limit.endsAt = this.now.monotonic + limit.nextMs;
      limit.nextMs = Math.min(2 * limit.nextMs, MAX_PENALTY_MS);
    }
  }

  get now(): Moment {
    return momentOf(this.settings.clock);
  }
}
