import { type Credentials } from '../auth/authenticator.js';
import { certificateVerdict, isSuccess, parseRetryAfter } from '../exchange/response.js';
import { CallCancelled, ExchangeFault, hadDeadConnection, type Outcome } from '../exchange/fault.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { AttemptTrace } from '../telemetry/telemetry.js';
import { delayAfterRetryAfter, retryDelay, nextTurn, systemClock, within } from '../time/time.js';
import { canDetectUnreadInput } from '../tls/connections/connection-state.js';
import { type Call, type CallAuthenticator, type ClientContext } from './call.js';
import { type CallObserver } from './call-observer.js';
import { faultToError } from './call-error.js';
import {
  mayHaveActed,
  isRepeatable,
  isRetryableFault,
  isRetryableResponse,
  isSafe,
  type RetryBudget,
} from './repeatability.js';

/** With less time left, another attempt cannot succeed and would only add load to the service. */
const MIN_ATTEMPT_MS = 10;

/** What has been done so far to repeat a call. Each field limits one kind of repetition. */
class Repetitions {
  /** Number of attempts that followed a pause. */
  retries = 0;
  /** What the last retry took from the retry budget. */
  budgetTaken: number | undefined = undefined;
  /** Whether the call was sent again because the server had closed the reused connection. */
  hasReconnected = false;
  /** Whether another token was requested after a 401, successfully or not. */
  hasTriedToken = false;
  /** Whether another client certificate was found after the server refused ours. */
  hasOtherCertificate = false;
}

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
    const { calls, options } = this.#client;
    const { closed } = calls;
    const { onCall, logCalls } = options.http;
    if (onCall || logCalls) call.traces = [];
    const done = new Repetitions();
    let outcome = await this.#attempt(call, done, startTrace(call));
    for (;;) {
      const { response } = outcome;
      const isOver = closed.aborted || (response && isSuccess(response.status));
      // An attempt with another token or certificate begins here, so that its times include the wait for that.
      const trace = isOver ? undefined : startTrace(call);
      const pauseMs = isOver ? undefined : await this.#pauseBeforeNext(call, outcome, done);
      call.mayHaveActed = mayHaveActed(call, outcome);
      if (pauseMs === undefined) return this.#finish(call, outcome, done);
      try {
        if (pauseMs > 0) await this.#client.io.pause(pauseMs, call.signal, closed);
        outcome = await this.#attempt(call, done, pauseMs > 0 ? startTrace(call) : trace);
      } catch (error) {
        if (!call.mayHaveActed || isEndedByCaller(call)) throw error;
        // The next attempt was not sent. The error of the previous one tells the caller that the call may have been executed.
        return this.#finish(call, outcome, done);
      }
    }
  }

  /**
   * Sends the call once, with the current credentials: the token of the previous attempt may have expired. While other calls
   * are in flight, the request is sent in the next turn of the event loop. All requests of that turn then go out together,
   * which costs a third less CPU. Rejects only if the call has ended, for example because its caller aborted.
   */
  async #attempt(call: Call, done: Repetitions, trace: AttemptTrace | undefined): Promise<Outcome> {
    // Wait for at most half of the time that is left. The other half is enough to send the call with the old certificate: the
    // server's refusal tells the caller more than a time-out.
    const search = this.#client.identity.rotation.search('api');
    if (search) await this.#waitForCertificate(search, call, call.leftMs / 2);
    const credentials = this.#authenticator.getCached() ?? (await this.#waitForToken(call));
    if (credentials !== call.getCredentials()) call.setCredentials(credentials);
    if (credentials.Authorization) trace?.mark('tokenMs');
    const isAlone = this.#running === 0;
    this.#running += 1;
    try {
      if (!isAlone) await nextTurn();
      // On Windows, the agent cannot see unread input. Two turns let the event loop process FINs and stray data that have arrived.
      if (!canDetectUnreadInput) await nextTurn().then(nextTurn);
      // The process may have been suspended during this turn, until the token expired.
      if (!this.#authenticator.areStillValid(credentials) && call.leftMs > 0)
        return await this.#attempt(call, done, trace);
      return { response: await this.#exchange(call, done, trace) };
    } catch (error) {
      if (error instanceof ExchangeFault) return { fault: error };
      throw error;
    } finally {
      this.#running -= 1;
    }
  }

  #waitForToken(call: Call): Promise<Credentials> {
    return this.#client.identity.preconnectDuring(call.url, () =>
      this.#authenticator.get({ signal: call.signal, timeoutMs: call.leftMs }),
    );
  }

  #exchange(call: Call, done: Repetitions, trace?: AttemptTrace): Promise<ExchangeResponse> {
    const { io, identity, options, calls } = this.#client;
    call.signal?.throwIfAborted();
    calls.closed.throwIfAborted();
    const { timeoutMs, attemptTimeoutMs, connectTimeoutMs } = this.#limitsOf(call, done);
    if (timeoutMs <= 0) throw timeoutFault();
    if (trace) call.traces?.push(trace);
    call.certificate = identity.certificate;
    return io.exchange({
      url: call.url,
      method: call.method,
      headers: call.getHeaders(),
      body: call.body,
      agent: identity.agentFor(call.url),
      // After a reconnect, use only a connection that the server is known to keep open.
      mayUseOlderConnection: isRepeatable(call) && !done.hasReconnected,
      certificate: call.certificate && { keyType: identity.keyType },
      timeoutMs,
      attemptTimeoutMs,
      connectTimeoutMs,
      maxResponseBytes: call.details.maxResponseBytes ?? options.http.maxResponseBytes,
      signal: call.signal,
      onLost: isSafe(call) ? undefined : () => (call.mayHaveActed = true),
      trace,
    });
  }

  /**
   * If a retry may follow, connecting may take at most half of the time that is left, and the attempt of a repeatable call at most
   * `attemptTimeout`, if that is set. The last attempt gets all the time that is left.
   */
  #limitsOf(call: Call, done: Repetitions) {
    const { connectTimeout, attemptTimeout } = this.#client.options.http;
    const timeoutMs = call.leftMs;
    if (!this.#hasRetriesLeft(call, done)) return { timeoutMs, connectTimeoutMs: connectTimeout };
    const partMs = call.details.attemptTimeoutMs ?? attemptTimeout;
    return {
      timeoutMs,
      attemptTimeoutMs: isRepeatable(call) ? partMs : undefined,
      connectTimeoutMs: Math.min(connectTimeout, partMs ?? timeoutMs / 2),
    };
  }

  /**
   * Decides whether the call is sent again, and gets what that needs. Resolves with the pause before the next attempt in
   * milliseconds, or with undefined if the caller gets this outcome.
   */
  async #pauseBeforeNext(call: Call, outcome: Outcome, done: Repetitions): Promise<number | undefined> {
    // Servers close idle connections all the time, so this costs no retry and writes no log line.
    if (!done.hasReconnected && isRepeatable(call) && hadDeadConnection(outcome.fault)) {
      done.hasReconnected = true;
      return 0;
    }
    const pauseMs = (await this.#renewCredentials(call, outcome, done))
      ? 0
      : this.#takeRetry(call, outcome, done);
    if (pauseMs !== undefined) this.#observer.retrying(call, outcome);
    return pauseMs;
  }

  /** Gets another token or certificate after a refusal. Resolves with whether the call can be sent again with it. */
  async #renewCredentials(call: Call, outcome: Outcome, done: Repetitions): Promise<boolean> {
    if (!mayHaveActed(call, outcome)) return this.#renewTokenOrCertificate(call, outcome, done, true);
    // The call may have been executed, but later calls need the new credentials too. A failure here does not change the
    // outcome of this call, and only the caller can end it earlier.
    const renewing = this.#renewTokenOrCertificate(call, outcome, done, isRepeatable(call));
    const isRenewed = await renewing.catch(() => false);
    if (isEndedByCaller(call)) throw call.signal?.reason;
    return isRenewed && isRepeatable(call);
  }

  /** @param waitsForCertificate whether the call can be sent again, so that waiting for a new certificate makes sense */
  async #renewTokenOrCertificate(
    call: Call,
    outcome: Outcome,
    done: Repetitions,
    waitsForCertificate: boolean,
  ): Promise<boolean> {
    if (outcome.response?.status === 401 && (await this.#replaceToken(call, done))) return true;
    if (done.hasOtherCertificate || certificateVerdict(outcome) === undefined) return false;
    const { identity } = this.#client;
    const search = identity.findOther(call.certificate, outcome, 'api');
    // Later calls wait for this search. A call that cannot be sent again need not.
    if (!waitsForCertificate && identity.rotation.search('api')) return false;
    done.hasOtherCertificate = (await this.#waitForCertificate(search, call, call.leftMs)) ?? false;
    return done.hasOtherCertificate;
  }

  async #replaceToken(call: Call, done: Repetitions): Promise<boolean> {
    if (done.hasTriedToken) return false;
    done.hasTriedToken = true;
    const wait = { signal: call.signal, timeoutMs: call.leftMs };
    return (await this.#authenticator.replace(call.getCredentials(), wait)) !== undefined;
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

  #hasRetriesLeft({ details }: Call, { retries }: Repetitions): boolean {
    return retries < (details.maxRetries ?? this.#client.options.http.retries);
  }

  /** Takes a retry from the call and from the budget. Returns the pause before it, or undefined if the call must not be retried. */
  #takeRetry(call: Call, { response, fault }: Outcome, done: Repetitions): number | undefined {
    const isRetryable = fault ? isRetryableFault(call, fault) : isRetryableResponse(call, response);
    if (!isRetryable || !this.#hasRetriesLeft(call, done)) return undefined;
    const leftMs = call.leftMs - MIN_ATTEMPT_MS;
    const pauseMs = this.#retryDelayMs(done, response, leftMs);
    if (pauseMs > leftMs) return undefined;
    const taken = this.#budget.take(fault?.kind === 'timeout');
    if (taken === undefined) return undefined;
    done.budgetTaken = taken;
    done.retries += 1;
    return pauseMs;
  }

  #retryDelayMs({ retries }: Repetitions, response: ExchangeResponse | undefined, leftMs: number): number {
    const random = this.#client.io.random();
    const seconds = parseRetryAfter(response?.headers, Date.now());
    return seconds === undefined
      ? retryDelay(retries, random)
      : delayAfterRetryAfter(seconds * 1000, retries, random, leftMs);
  }

  #finish(call: Call, { response, fault }: Outcome, { budgetTaken }: Repetitions): ExchangeResponse {
    if (fault) throw faultToError(this.#faultToShow(fault, call), call, this.#client);
    if (isSuccess(response.status)) {
      this.#budget.giveBack(budgetTaken);
      this.#client.identity.rotation.accept(call.certificate?.fingerprint256, 'api');
    }
    call.response = response;
    return response;
  }

  #faultToShow(fault: ExchangeFault, { timeoutMs, endsAt }: Call): ExchangeFault {
    // The shutdown closed the connection, which may look like any fault.
    const { phase, reusedSocket, handshakeRefused } = fault;
    if (this.#client.calls.closed.aborted)
      return new ExchangeFault({ kind: 'closed', phase, reusedSocket, handshakeRefused });
    // The last attempt gets the rest of the call's time. The error shows the time limit that the caller knows, that of the call.
    const isLast = fault.kind === 'timeout' && fault.reason === undefined && performance.now() > endsAt - 5;
    return isLast ? new ExchangeFault({ ...fault, limitMs: timeoutMs }) : fault;
  }
}

/** Begins to note an attempt, if somebody listens. */
function startTrace({ startedAt, traces }: Call): AttemptTrace | undefined {
  return traces && new AttemptTrace(startedAt);
}

/** Whether the caller aborted the call by its signal. Unsubscribing from an Observable of the call does not count. */
function isEndedByCaller({ signal }: Call): boolean {
  return signal?.aborted === true && !(signal.reason instanceof CallCancelled);
}

/** The fault of a call whose time is over before its next request has begun. */
function timeoutFault(): ExchangeFault {
  return new ExchangeFault({ kind: 'timeout', phase: 'waiting' });
}
