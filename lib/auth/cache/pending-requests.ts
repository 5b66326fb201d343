import { ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { allowListeners } from '../../exchange/call-limits.js';
import { type TokenGrant, type TokenIo, type TokenSource } from '../access-token.js';
import { API_SCOPE } from '../scope.js';
import { ConcurrencyLimit, RetryAfterGate } from './request-limits.js';
import { AbandonedRequest, type RequestTools, type TokenKeeper, TokenRequest } from './token-request.js';
import { type CachedToken } from './token-slots.js';
import { type WaitOptions } from './waiting-callers.js';

/** So many requests may be under way or wait, however small the cache. */
const MIN_REQUESTS = 1_000;

export interface RequestSettings {
  /** Customer tokens kept; the api token comes on top. */
  maxEntries: number;
  /** Requests for customer tokens that the source gets at a time; the others wait for their turn. */
  customerRequests: number;
  /** Milliseconds that a caller waits who names no time. */
  timeoutMs: number;
}

/** The token requests under way, at most one per scope. */
export class PendingRequests {
  readonly #tools: RequestTools;
  readonly #settings: RequestSettings;
  readonly #requests = new Map<string, TokenRequest>();
  readonly #stop = new AbortController();

  constructor(source: TokenSource, settings: RequestSettings, io: TokenIo, keeper: TokenKeeper) {
    const gate = new RetryAfterGate(io.clock);
    const customers = new ConcurrencyLimit(settings.customerRequests);
    this.#tools = { source, io, keeper, gate, customers, signal: this.closed };
    this.#settings = settings;
    allowListeners(this.closed);
  }

  /** Aborted by {@link close}. */
  get closed(): AbortSignal {
    return this.#stop.signal;
  }

  /** Milliseconds for which the endpoint asks for no requests. */
  get retryAfterMs(): number {
    return this.#tools.gate.remainingMs;
  }

  has(scope: string): boolean {
    return this.#requests.has(scope);
  }

  /**
   * Begins a request that nobody waits for.
   * @returns whether one is under way now
   */
  renew(scope: string): boolean {
    if (this.has(scope)) return true;
    if (this.closed.aborted || this.retryAfterMs > 0) return false;
    // Callers that have no token go first.
    const customersPending = this.#requests.size - (this.has(API_SCOPE) ? 1 : 0);
    if (scope !== API_SCOPE && customersPending >= this.#settings.customerRequests) return false;
    this.#begin(scope);
    return true;
  }

  /** The outcome of the request of this scope, which begins where there is none. */
  async join(scope: string, wait: WaitOptions): Promise<CachedToken> {
    const { timeoutMs = this.#settings.timeoutMs } = wait;
    const gateMs = this.retryAfterMs;
    if (gateMs > 0 && gateMs > timeoutMs) throw this.#tools.gate.error(scope);
    const pending = this.#requests.get(scope);
    const isFull = this.#requests.size >= Math.max(this.#settings.maxEntries, MIN_REQUESTS);
    if (!pending && isFull && scope !== API_SCOPE) throw tooMany(scope);
    return (pending ?? this.#begin(scope)).join(timeoutMs, wait);
  }

  /** What was asked for until now is not to be kept. */
  markOutdated(): void {
    for (const request of this.#requests.values()) request.isOutdated = true;
  }

  /** Ends all requests and rejects all who wait; no timer is left. */
  close(): void {
    const reason = ServiceConnectionError.closed();
    this.#stop.abort(reason);
    for (const request of this.#requests.values()) request.callers.reject(reason);
    this.#requests.clear();
  }

  #begin(scope: string): TokenRequest {
    const request = new TokenRequest(scope, this.#tools);
    this.#requests.set(scope, request);
    this.#run(scope, request);
    return request;
  }

  #run(scope: string, request: TokenRequest): void {
    // Not in this tick: the caller joins first, and a look at the cache stays quick. Not queueMicrotask: a test's fake
    // timers may have replaced it.
    void Promise.resolve()
      .then(() => request.run())
      .then(
        (grant) => this.#arrived(scope, request, grant),
        (error: Error) => this.#failed(scope, request, error),
      );
  }

  #arrived(scope: string, request: TokenRequest, grant: TokenGrant): void {
    if (this.closed.aborted) return;
    this.#requests.delete(scope);
    request.callers.resolve(this.#tools.keeper.arrived(scope, grant, request.isOutdated));
  }

  #failed(scope: string, request: TokenRequest, error: Error): void {
    if (this.closed.aborted) return;
    // Somebody joined after the last one had left.
    if (error instanceof AbandonedRequest && request.callers.size > 0) return this.#run(scope, request);
    this.#requests.delete(scope);
    this.#tools.keeper.failed(scope);
    request.callers.reject(error);
  }
}

function tooMany(scope: string): ServiceTokenError {
  const message = 'Too many token requests are under way; this one was not begun.';
  return new ServiceTokenError({ code: 'token_unavailable', message, scope });
}
