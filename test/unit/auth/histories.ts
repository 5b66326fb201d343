import fc from 'fast-check';
import {
  type AccessToken,
  expiryMargin,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../../../lib/auth/access-token.js';
import { ServiceConnectionError, ServiceTokenError } from '../../../lib/errors/index.js';
import { elapsedMs, type Moment, momentOf } from '../../../lib/time/time.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { makeCache } from './fakes.js';

const RESERVE_MS = 20_000;
const SCOPES = ['api', 'customer.c1', 'customer.c2'];

type PlannedResponse =
  | { kind: 'token'; lifetime: number; delay: number }
  | { kind: 'reset' | 'refused' | 'busy' | 'limited'; delay: number };

type Step =
  | { kind: 'peek' | 'force' | 'invalidate'; scope: string }
  | { kind: 'get'; scope: string; callers: number; timeoutMs: number }
  | { kind: 'advance'; ms: number }
  | { kind: 'jump'; ms: number };

interface Issued {
  lifetimeMs: number;
  usableMs: number;
  /** True if the token had too little time left when it arrived. */
  isShort: boolean;
  arrivedAt: number;
  monotonic: number;
  wall: number;
}

/** A simulated token endpoint that checks, at each request, that the cache was allowed to send it. */
class WatchedSource implements TokenSource {
  readonly issued = new Map<string, Issued>();
  /** Scopes whose token was dropped by a forced refresh. */
  readonly forced: string[] = [];
  isForced = false;
  readonly violations: string[] = [];
  heldUntil = -Infinity;
  /** When a request last failed, of any scope. */
  failedAt = -Infinity;
  /** For each scope, when its last request was refused. */
  readonly #refusedAt = new Map<string, number>();
  /** When the last 429 was sent, for any scope. */
  #limitedAt = -Infinity;
  readonly #inFlight = new Set<string>();
  /** For each scope, the latest event that may justify its next request: a token, `failed` or `dropped`. */
  readonly #last = new Map<string, string>();
  #next = 0;

  constructor(
    readonly clock: FakeClock,
    readonly responses: PlannedResponse[],
  ) {}

  request(scope: string, { signal }: TokenRequestContext): Promise<TokenGrant> {
    if (this.#inFlight.has(scope)) this.violations.push(`two requests at a time for ${scope}`);
    this.#justify(scope);
    this.#inFlight.add(scope);
    const plannedResponse = this.responses[this.#next++ % this.responses.length];
    const requestedAt = momentOf(this.clock);
    return new Promise<TokenGrant>((resolve, reject) => {
      const cancel = this.clock.schedule(() => {
        this.#inFlight.delete(scope);
        if (plannedResponse.kind === 'token')
          resolve(this.#issue(scope, plannedResponse.lifetime, requestedAt));
        else reject(this.#fail(scope, plannedResponse.kind));
      }, plannedResponse.delay);
      signal.addEventListener('abort', () => {
        cancel();
        this.#inFlight.delete(scope);
        this.#failed(signal.reason as Error);
        this.#last.set(scope, 'failed');
        reject(signal.reason as Error);
      });
    });
  }

  drop(scope: string): void {
    if (this.isForced) this.forced.push(scope);
    this.#last.set(scope, 'dropped');
  }

  ages(token: Issued): number {
    return Math.max(this.clock.monotonic() - token.monotonic, this.clock.now() - token.wall);
  }

  /** Each request but the first needs a reason: a token that is due for renewal, a failure or a dropped token. */
  #justify(scope: string): void {
    const now = this.clock.monotonic();
    const refusedAt = this.#refusedAt.get(scope) ?? -Infinity;
    if (now - refusedAt < 1_000) this.violations.push(`${scope} was refused just now`);
    if (now > this.#limitedAt && now - this.#limitedAt < 3_999)
      this.violations.push(`${scope} was asked for during a 429`);
    const last = this.#last.get(scope);
    if (last === undefined || last === 'failed' || last === 'dropped') return;
    const token = this.issued.get(last);
    // A renewal is due after 75 % of the usable time, less at most 2 % jitter.
    if (token && this.ages(token) < token.usableMs * 0.73)
      this.violations.push(`${scope} was asked for too early`);
  }

  #limitedInARow = 0;

  #issue(scope: string, lifetime: number, requestedAt: Moment): TokenGrant {
    const accessToken = `${scope}-${this.#next}-${this.issued.size}`;
    const lifetimeMs = lifetime * 1000;
    // A token without a lifetime is shared for 1 s from its arrival.
    const sinceMs = lifetime === 0 ? 0 : elapsedMs(this.clock, requestedAt);
    const reserveMs = scope === 'api' ? 0 : Math.min(RESERVE_MS, lifetimeMs / 2);
    const usableMs = lifetime === 0 ? 1_000 : lifetimeMs - Math.max(expiryMargin(lifetimeMs), reserveMs);
    const token = {
      lifetimeMs: lifetime === 0 ? 1_000 : lifetimeMs,
      usableMs,
      isShort: sinceMs >= usableMs,
      arrivedAt: this.clock.monotonic(),
      monotonic: this.clock.monotonic() - sinceMs,
      wall: this.clock.now() - sinceMs,
    };
    this.issued.set(accessToken, token);
    if (sinceMs >= token.lifetimeMs) this.failedAt = this.clock.monotonic();
    // If a token arrives with too little time left, the cache may request once more.
    this.#last.set(scope, token.isShort ? 'failed' : accessToken);
    this.#limitedInARow = 0;
    return { accessToken, scope, expiresIn: lifetime };
  }

  #fail(scope: string, kind: 'reset' | 'refused' | 'busy' | 'limited'): Error {
    this.#last.set(scope, 'failed');
    if (kind === 'refused') this.#refusedAt.set(scope, this.clock.monotonic());
    const error = {
      reset: () => new ServiceConnectionError({ kind: 'reset', message: 'reset' }),
      refused: () => new ServiceTokenError({ code: 'token_refused', status: 401, message: 'refused' }),
      busy: () => new ServiceTokenError({ code: 'token_unavailable', status: 503, message: 'busy' }),
      limited: () =>
        new ServiceTokenError({ code: 'token_rate_limited', status: 429, retryAfter: 4, message: '429' }),
    }[kind]();
    if (kind === 'limited') {
      this.#limitedAt = this.clock.monotonic();
      this.#limitedInARow += 1;
      const minMs = Math.min(3_000 * 2 ** (this.#limitedInARow - 1), 30_000);
      this.heldUntil = Math.max(this.heldUntil, this.clock.monotonic() + Math.max(4_000, minMs));
    }
    return this.#failed(error);
  }

  /** Stores the time in the error itself, because each caller gets a copy of the error. */
  #failed(error: Error): Error {
    this.failedAt = this.clock.monotonic();
    return Object.assign(error, { failedAt: this.clock.monotonic() });
  }
}

const delay = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 1, max: 500 }),
  fc.integer({ min: 500, max: 12_000 }),
);
const plannedResponse: fc.Arbitrary<PlannedResponse> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('token' as const),
      lifetime: fc.integer({ min: 1, max: 90 }),
      delay,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('token' as const), lifetime: fc.constant(0), delay }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('reset' as const, 'refused' as const, 'busy' as const, 'limited' as const),
      delay,
    }),
  },
);
const scope = fc.constantFrom(...SCOPES);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('get' as const),
      scope,
      callers: fc.integer({ min: 1, max: 4 }),
      timeoutMs: fc.integer({ min: 1, max: 30_000 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('peek' as const), scope }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      ms: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 60_000 })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('jump' as const),
      ms: fc.integer({ min: -86_400_000, max: 86_400_000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('force' as const, 'invalidate' as const), scope }),
  },
);

async function replay(
  refresh: 'ahead' | 'scheduled' | 'on-expiry',
  responses: PlannedResponse[],
  steps: Step[],
): Promise<void> {
  const clock = new FakeClock();
  const source = new WatchedSource(clock, responses);
  const cache = makeCache({ source, clock, refresh, customerReserveMs: RESERVE_MS });
  const faults: unknown[] = source.violations;
  const started = clock.monotonic();
  let unsettled = 0;

  const checkHandedOut = (token: AccessToken | undefined, waited: boolean): void => {
    const known = token && source.issued.get(token.accessToken);
    if (!known) return;
    if (source.ages(known) >= known.lifetimeMs)
      faults.push(`a dead token was handed out: ${token.accessToken}`);
    // A waiting caller may get a token that has just arrived, even if the token had too little time left from the start.
    if (waited && (known.arrivedAt === clock.monotonic() || known.isShort)) return;
    if (source.ages(known) >= known.usableMs)
      faults.push(`an expired token was handed out: ${token.accessToken}`);
  };
  const watch = (promise: Promise<AccessToken | undefined>, timeoutMs = 30_000): void => {
    const startedAt = clock.monotonic();
    unsettled += 1;
    promise
      .then(
        (token) => checkHandedOut(token, true),
        (error: Error & { code?: string; failedAt?: number }) => {
          const { failedAt } = error;
          if (failedAt !== undefined) {
            if (failedAt < startedAt) faults.push('an earlier rejection was handed out');
          } else if (error.message.includes('is not asked again') && error.code !== 'token_rate_limited') {
            if (clock.monotonic() - source.failedAt > 30_000) faults.push('the error of an old failure');
          } else if (error.code === 'token_rate_limited') {
            if (source.heldUntil <= clock.monotonic()) faults.push('held back for no reason');
          } else if (error.code === 'connection_timeout') {
            if (clock.monotonic() - startedAt < Math.min(timeoutMs, 10_000) - 1e-6)
              faults.push('given up too early');
          } else if (
            error.code !== 'connection_closed' &&
            !error.message.includes('expired when it arrived')
          ) {
            faults.push(error);
          }
          if (clock.monotonic() - startedAt > timeoutMs + 1e-6) faults.push('rejected after the deadline');
        },
      )
      .finally(() => (unsettled -= 1));
  };

  cache.start();
  for (const next of steps) {
    if (next.kind === 'advance') await clock.advance(next.ms);
    else if (next.kind === 'jump') clock.jump(next.ms);
    else if (next.kind === 'get') {
      for (let n = 0; n < next.callers; n += 1) watch(cache.scope(next.scope).get(next), next.timeoutMs);
    } else {
      const token = cache.scope(next.scope).getCached();
      checkHandedOut(token, false);
      if (token && next.kind === 'invalidate') cache.invalidate(token.accessToken);
      if (token && next.kind === 'force') {
        source.isForced = true;
        watch(cache.scope(next.scope).replace(token.accessToken));
        source.isForced = false;
      }
    }
    await settle();
  }
  for (const name of SCOPES) {
    const allowed = 3 + Math.floor((clock.monotonic() - started) / 30_000);
    if (source.forced.filter((scope) => scope === name).length > allowed) faults.push('forced too often');
  }
  cache.close();
  await settle();
  if (unsettled > 0) faults.push(`${unsettled} callers were left waiting`);
  if (clock.timers > 0) faults.push(`${clock.timers} timers were left`);
  if (faults.length > 0) throw new Error(faults.map(String).join('\n'));
}

/**
 * Replays random histories. Rejects if a cache sends two requests at a time, requests too early, hands out an expired token,
 * caches a rejection or leaves a timer. The error shows the seed; set HISTORIES_SEED to it to replay the same histories.
 */
export function replayHistories(count: number, known: Parameters<typeof replay>[] = []): Promise<void> {
  const property = fc.asyncProperty(
    fc.constantFrom('ahead' as const, 'scheduled' as const, 'on-expiry' as const),
    fc.array(plannedResponse, { minLength: 1, maxLength: 8 }),
    fc.array(step, { minLength: 1, maxLength: 30 }),
    replay,
  );
  const seed = process.env.HISTORIES_SEED;
  const given = seed === undefined ? {} : { seed: Number(seed) };
  return fc.assert(property, { numRuns: count, examples: known, ...given });
}
