import { ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { allowListeners } from '../../exchange/call-limits.js';
import { API_SCOPE } from '../scope.js';
import { type CachedToken } from './cached-token.js';
import { ConcurrencyLimit, RetryAfterGate } from './request-limits.js';
import { AbandonedRequest, type ArrivedGrant, type RequestTools, TokenRequest } from './token-request.js';
import { DEFAULT_WAIT_MS, type WaitOptions } from './waiting-callers.js';

/** What becomes of their outcomes. */
interface TokenKeeper {
  /** Called before those who wait get the token. `isOutdated`: it was asked for before {@link PendingRequests.markOutdated}. */
  arrived(scope: string, arrived: ArrivedGrant, isOutdated: boolean): CachedToken;
  failed(scope: string): void;
}

/** The token requests under way, at most one per scope. */
export class PendingRequests {
  readonly #tools: RequestTools;
  readonly #keeper: TokenKeeper;
  readonly #customerRequests: number;
  readonly #maxRequests: number;
  readonly #requests = new Map<string, TokenRequest>();
  readonly #gate: RetryAfterGate;
  /** The api token's request does not count: it never waits for those of customers. */
  readonly #customers: ConcurrencyLimit;
  readonly #stop = new AbortController();

  /**
   * @param customerRequests requests for customer tokens that the source gets at a time
   * @param maxRequests those that wait for their turn included: from this number on customers' are refused
   */
  constructor(
    tools: Omit<RequestTools, 'gate' | 'signal'>,
    keeper: TokenKeeper,
    customerRequests: number,
    maxRequests: number,
  ) {
    this.#gate = new RetryAfterGate(tools.io.clock);
    this.#tools = { ...tools, gate: this.#gate, signal: this.closed };
    this.#keeper = keeper;
    this.#customerRequests = customerRequests;
    this.#maxRequests = maxRequests;
    this.#customers = new ConcurrencyLimit(customerRequests);
    allowListeners(this.closed);
  }

  /** Aborted by {@link close}. */
  get closed(): AbortSignal {
    return this.#stop.signal;
  }

  /** Milliseconds for which the endpoint asks for no requests. */
  get retryAfterMs(): number {
    return this.#gate.remainingMs;
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
    if (this.closed.aborted || this.#isFull(scope) || this.retryAfterMs > 0) return false;
    // Callers that have no token go first.
    if (scope !== API_SCOPE && this.#customersPending() >= this.#customerRequests) return false;
    this.#begin(scope, true);
    return true;
  }

  /** The outcome of the request of this scope, which begins where there is none. */
  async join(scope: string, wait: WaitOptions): Promise<CachedToken> {
    const gateMs = this.retryAfterMs;
    if (gateMs > 0 && gateMs > (wait.timeoutMs ?? DEFAULT_WAIT_MS)) throw this.#gate.error(scope);
    const pending = this.#requests.get(scope);
    if (!pending && this.#isFull(scope)) throw tooMany(scope);
    return (pending ?? this.#begin(scope)).join(wait);
  }

  /** What was asked for until now is not to be kept. */
  markOutdated(): void {
    for (const request of this.#requests.values()) request.isOutdated = true;
  }

  /** Ends all requests and rejects all who wait; no timer is left. */
  close(): void {
    const reason = new ServiceConnectionError({ kind: 'closed', message: 'The module was shut down' });
    this.#stop.abort(reason);
    for (const request of this.#requests.values()) request.callers.reject(reason);
    this.#requests.clear();
  }

  #isFull(scope: string): boolean {
    return scope !== API_SCOPE && this.#requests.size >= this.#maxRequests;
  }

  /** Those that wait for their turn included, and those that are about to. */
  #customersPending(): number {
    return this.#requests.size - (this.has(API_SCOPE) ? 1 : 0);
  }

  #begin(scope: string, inBackground = false): TokenRequest {
    const limit = scope === API_SCOPE ? undefined : this.#customers;
    const request = new TokenRequest(scope, this.#tools, limit, inBackground);
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
        (arrived) => this.#arrived(scope, request, arrived),
        (error: Error) => this.#failed(scope, request, error),
      );
  }

  #arrived(scope: string, request: TokenRequest, arrived: ArrivedGrant): void {
    if (this.closed.aborted) return;
    this.#requests.delete(scope);
    // One from a shared store is no request to the endpoint.
    if (arrived.grant.ageMs === undefined) this.#tools.observer.succeeded();
    request.callers.resolve(this.#keeper.arrived(scope, arrived, request.isOutdated));
  }

  #failed(scope: string, request: TokenRequest, error: Error): void {
    if (this.closed.aborted) return;
    // Somebody joined after the last one had left.
    if (error instanceof AbandonedRequest && request.callers.size > 0) return this.#run(scope, request);
    this.#requests.delete(scope);
    this.#keeper.failed(scope);
    request.callers.reject(error);
  }
}

function tooMany(scope: string): ServiceTokenError {
  const message = 'Too many token requests are under way; this one was not begun';
  return new ServiceTokenError({ code: 'token_unavailable', message, scope });
}
