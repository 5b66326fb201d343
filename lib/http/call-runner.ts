import { type WaitOptions } from '../auth/access-token.js';
import { type Credentials } from '../auth/authenticator.js';
import { certificateRefusal, isSuccess, parseRetryAfter } from '../exchange/response.js';
import {
  CallCancelled,
  ExchangeFault,
  hadDeadConnection,
  type Outcome,
  captureOutcome,
} from '../exchange/fault.js';
import { type ExchangeRequest, type ExchangeResponse } from '../exchange/io.js';
import { delayAfterRetryAfter, retryDelay, nextTurn, systemClock, sleep, within } from '../time/time.js';
import { canDetectUnreadInput } from '../tls/connections/unread-input.js';
import { type Call, type CallAuthenticator, type ClientContext } from './call.js';
import { type CallObserver } from './call-observer.js';
import { faultToError } from './call-error.js';
import { isRepeatable, isRetryableFault, isRetryableResponse, isOutcomeUnknown } from './repeatability.js';

const CAPACITY = 500;
const RETRY_COST = 5;
const TIMEOUT_COST = 10;

/**
 * Limits the retries of a whole client, so that a service in trouble does not get several times its normal load. The budget
 * is a token bucket: each retry takes units, and each successful call gives back what its last retry took (one unit if it had no
 * retry).
 */
export class RetryBudget {
  #left = CAPACITY;

  /** Takes the cost of a retry and returns it. Returns undefined, and takes nothing, if too little is left. */
  take(afterTimeout: boolean): number | undefined {
    const cost = afterTimeout ? TIMEOUT_COST : RETRY_COST;
    if (cost > this.#left) return undefined;
    this.#left -= cost;
    return cost;
  }

  giveBack(taken = 1): void {
    this.#left = Math.min(CAPACITY, this.#left + taken);
  }
}

/** With less time left, another attempt cannot succeed and would only add load to the service. */
const MIN_ATTEMPT_MS = 10;

type ExchangeLimits = Pick<ExchangeRequest, 'timeoutMs' | 'attemptTimeoutMs' | 'connectTimeoutMs'>;

/**
 * What follows an attempt:
 * - `end`: the caller gets the response or the error
 * - `reconnect`: another attempt at once, because the server had closed the reused connection
 * - `replay`: another attempt at once, with another token or another client certificate
 * - `retry`: another attempt after a pause
 */
type Decision = { kind: 'end' | 'reconnect' | 'replay' } | { kind: 'retry'; afterMs: number };

const END: Decision = { kind: 'end' };

/**
 * Runs the attempts of a call. No other place decides whether a call is sent again. A call is sent at most
 * - once,
 * - once more after a reconnect,
 * - once more with another token after a 401,
 * - once more with another client certificate after the server refused ours,
 * - `http.retries` times after a pause.
 *
 * With the default of 2 retries that makes 6 attempts. CONTRIBUTING.md shows the decision after an attempt as a table.
 */
export class CallRunner {
  readonly #client: ClientContext;
  readonly #authenticator: CallAuthenticator;
  readonly #budget: RetryBudget;
  readonly #observer: CallObserver;
  /** Number of exchanges in flight. */
  #running = 0;

  constructor(
    client: ClientContext,
    authenticator: CallAuthenticator,
    budget: RetryBudget,
    observer: CallObserver,
  ) {
    this.#client = client;
    this.#authenticator = authenticator;
    this.#budget = budget;
    this.#observer = observer;
  }

  async run(call: Call): Promise<ExchangeResponse> {
    const { closed } = this.#client.calls;
    let outcome = await this.#attempt(call);
    for (;;) {
      const { response } = outcome;
      const isOver = closed.aborted || (response && isSuccess(response.status));
      const decision = isOver ? END : await this.#decide(call, outcome);
      if (decision.kind === 'end') return this.#finish(call, outcome);
      call.outcomeUnknown = isOutcomeUnknown(call, outcome);
      if (decision.kind !== 'reconnect') this.#observer.retrying(call, outcome);
      try {
        if (decision.kind === 'retry') await sleep(systemClock, decision.afterMs, call.signal, closed);
        outcome = await this.#attempt(call);
      } catch (error) {
        if (!call.outcomeUnknown || isEndedByCaller(call)) throw error;
        // The next attempt was not sent. The error of the previous one tells the caller that the call may have been executed.
        return this.#finish(call, outcome);
      }
    }
  }

  /**
   * Sends the call once, with the current credentials: the token of the previous attempt may have expired. While other calls
   * are in flight, the request is sent in the next turn of the event loop. All requests of that turn then go out together,
   * which costs a third less CPU.
   */
  async #attempt(call: Call): Promise<Outcome> {
    // Wait for at most half of the time that is left. The other half is enough to send the call with the old certificate: the
    // server's refusal tells the caller more than a time-out.
    const search = this.#client.identity.rotation.search('api');
    if (search) await this.#waitForCertificate(search, call, call.leftMs / 2);
    const credentials = this.#authenticator.getCached() ?? (await this.#waitForToken(call));
    if (credentials !== call.getCredentials()) call.setCredentials(credentials);
    const isAlone = this.#running === 0;
    this.#running += 1;
    try {
      if (!isAlone) await nextTurn();
      // On Windows, the agent cannot see unread input. Two turns let the event loop process FINs and stray data that have arrived.
      if (!canDetectUnreadInput) await nextTurn().then(nextTurn);
      // The process may have been suspended during this turn, until the token expired.
      if (!this.#authenticator.areStillValid(credentials) && call.leftMs > 0)
        return await this.#attempt(call);
      return await captureOutcome(() => this.#exchange(call));
    } finally {
      this.#running -= 1;
    }
  }

  #waitForToken(call: Call): Promise<Credentials> {
    return this.#client.identity.preconnectDuring(call.url, () =>
      this.#authenticator.get(tokenWaitOptions(call)),
    );
  }

  #exchange(call: Call): Promise<ExchangeResponse> {
    const { io, identity, options, calls } = this.#client;
    call.signal?.throwIfAborted();
    calls.closed.throwIfAborted();
    const { timeoutMs, attemptTimeoutMs, connectTimeoutMs } = this.#limitsOf(call);
    if (timeoutMs <= 0) throw timeoutFault();
    call.attempts += 1;
    call.certificate = identity.certificate;
    return io.exchange({
      url: call.url,
      method: call.method,
      headers: call.getHeaders(),
      body: call.body,
      agent: identity.agentFor(call.url),
      // After a reconnect, use only a connection that the server is known to keep open.
      mayUseOlderConnection: isRepeatable(call) && !call.reconnected,
      hasCertificate: call.certificate !== undefined,
      timeoutMs,
      attemptTimeoutMs,
      connectTimeoutMs,
      maxResponseBytes: call.maxResponseBytes ?? options.http.maxResponseBytes,
      signal: call.signal,
    });
  }

  /**
   * If a retry may follow, connecting may take at most half of the time that is left, and the attempt of a repeatable call at most
   * `attemptTimeout`, if that is set. The last attempt gets all the time that is left.
   */
  #limitsOf(call: Call): ExchangeLimits {
    const { connectTimeout, attemptTimeout } = this.#client.options.http;
    const timeoutMs = call.leftMs;
    if (!this.#hasRetriesLeft(call)) return { timeoutMs, connectTimeoutMs: connectTimeout };
    const partMs = call.attemptTimeoutMs ?? attemptTimeout;
    return {
      timeoutMs,
      attemptTimeoutMs: isRepeatable(call) ? partMs : undefined,
      connectTimeoutMs: Math.min(connectTimeout, partMs ?? timeoutMs / 2),
    };
  }

  async #decide(call: Call, outcome: Outcome): Promise<Decision> {
    // Servers close idle connections all the time, so this costs no retry and writes no log line.
    if (!call.reconnected && isRepeatable(call) && hadDeadConnection(outcome.fault)) {
      call.reconnected = true;
      return { kind: 'reconnect' };
    }
    return (await this.#renewCredentials(call, outcome))
      ? { kind: 'replay' }
      : this.#decideRetry(call, outcome);
  }

  /** Gets another token or certificate after a refusal. Resolves with whether the call can be sent again with it. */
  async #renewCredentials(call: Call, outcome: Outcome): Promise<boolean> {
    if (!isOutcomeUnknown(call, outcome)) return this.#renewTokenOrCertificate(call, outcome, true);
    // The call may have been executed, but later calls need the new credentials too. A failure here does not change the
    // outcome of this call, and only the caller can end it earlier.
    const isRenewed = await this.#renewTokenOrCertificate(call, outcome, isRepeatable(call)).catch(
      () => false,
    );
    if (isEndedByCaller(call)) throw call.signal?.reason;
    return isRenewed && isRepeatable(call);
  }

  /** @param waitsForCertificate whether the call can be sent again, so that waiting for a new certificate makes sense */
  async #renewTokenOrCertificate(
    call: Call,
    outcome: Outcome,
    waitsForCertificate: boolean,
  ): Promise<boolean> {
    if (outcome.response?.status === 401 && (await this.#replaceToken(call))) return true;
    if (call.hasOtherCertificate || certificateRefusal(outcome) === undefined) return false;
    const { identity } = this.#client;
    const search = identity.findOther(call.certificate, outcome, 'api');
    // Later calls wait for this search. A call that cannot be sent again need not.
    if (!waitsForCertificate && identity.rotation.search('api')) return false;
    call.hasOtherCertificate = (await this.#waitForCertificate(search, call, call.leftMs)) ?? false;
    return call.hasOtherCertificate;
  }

  async #replaceToken(call: Call): Promise<boolean> {
    if (call.triedOtherToken) return false;
    call.triedOtherToken = true;
    return (await this.#authenticator.replace(call.getCredentials(), tokenWaitOptions(call))) !== undefined;
  }

  /** Waits for the search for another certificate. Resolves with undefined if the time is over. */
  async #waitForCertificate<T>(search: Promise<T>, call: Call, timeoutMs: number): Promise<T | undefined> {
    const { closed } = this.#client.calls;
    const limit = { clock: systemClock, timeoutMs, expired: timeoutFault, signals: [call.signal, closed] };
    return within(limit, () => search).catch((error: unknown) => {
      if (error instanceof ExchangeFault) return undefined;
      throw error;
    });
  }

  #hasRetriesLeft({ retries, maxRetries = this.#client.options.http.retries }: Call): boolean {
    return retries < maxRetries;
  }

  #decideRetry(call: Call, { response, fault }: Outcome): Decision {
    const isRetryable = fault ? isRetryableFault(call, fault) : isRetryableResponse(call, response);
    if (!isRetryable || !this.#hasRetriesLeft(call)) return END;
    const leftMs = call.leftMs - MIN_ATTEMPT_MS;
    const afterMs = this.#retryDelayMs(call, response, leftMs);
    if (afterMs > leftMs) return END;
    const taken = this.#budget.take(fault?.kind === 'timeout');
    if (taken === undefined) return END;
    call.budgetTaken = taken;
    call.retries += 1;
    return { kind: 'retry', afterMs };
  }

  #retryDelayMs({ retries }: Call, response: ExchangeResponse | undefined, leftMs: number): number {
    const random = this.#client.io.random();
    const seconds = parseRetryAfter(response?.headers, Date.now());
    return seconds === undefined
      ? retryDelay(retries, random)
      : delayAfterRetryAfter(seconds * 1000, retries, random, leftMs);
  }

  #finish(call: Call, { response, fault }: Outcome): ExchangeResponse {
    // The shutdown closed the connection, which may look like any fault.
    if (fault && this.#client.calls.closed.aborted)
      throw faultToError(toClosedFault(fault), call, this.#client);
    if (fault) throw faultToError(withLimitOfCall(fault, call), call, this.#client);
    if (isSuccess(response.status)) {
      this.#budget.giveBack(call.budgetTaken);
      this.#client.identity.rotation.accept(call.certificate?.fingerprint256, 'api');
    }
    call.response = response;
    return response;
  }
}

/** A call waits for a token until its own deadline, or until its caller aborts. */
function tokenWaitOptions({ signal, leftMs: timeoutMs }: Call): WaitOptions {
  return { signal, timeoutMs };
}

/** Whether the caller aborted the call by its signal. Unsubscribing from an Observable of the call does not count. */
function isEndedByCaller({ signal }: Call): boolean {
  return signal?.aborted === true && !(signal.reason instanceof CallCancelled);
}

/** The last attempt gets the rest of the call's time. The error shows the time limit that the caller knows, that of the call. */
function withLimitOfCall(fault: ExchangeFault, { timeoutMs, endsAt }: Call): ExchangeFault {
  const isLast = fault.kind === 'timeout' && fault.reason === undefined && performance.now() > endsAt - 5;
  return isLast ? new ExchangeFault({ ...fault, limitMs: timeoutMs }) : fault;
}

/** The fault of a call whose time is over before its next request has begun. */
function timeoutFault(): ExchangeFault {
  return new ExchangeFault({ kind: 'timeout', phase: 'waiting' });
}

function toClosedFault({ phase, reusedSocket, refusedInHandshake }: ExchangeFault): ExchangeFault {
  return new ExchangeFault({ kind: 'closed', phase, reusedSocket, refusedInHandshake });
}
