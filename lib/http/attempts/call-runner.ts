import { type WaitOptions } from '../../auth/access-token.js';
import { type Credentials } from '../../auth/authenticator.js';
import { certificateRefusal, isBareEnd } from '../../exchange/certificate-refusal.js';
import {
  CallCancelled,
  ExchangeFault,
  type ExchangeRequest,
  type ExchangeResponse,
  hadDeadConnection,
  isSuccess,
  type Outcome,
  outcomeOf,
} from '../../exchange/exchange.types.js';
import { parseRetryAfter } from '../../exchange/retry-after.js';
import { askedDelay, retryDelay } from '../../time/back-off.js';
import { nextTurn, systemClock } from '../../time/clock.js';
import { sleep, within } from '../../time/timers.js';
import { canSeeUnreadInput } from '../../tls/connections/unread-input.js';
import { type Call } from '../request/call.js';
import { type CallObserver } from './call-observer.js';
import { type CallAuthenticator, type ClientContext } from '../request/client-context.js';
import { faultToError } from './fault-to-error.js';
import {
  isRepeatable,
  isRetryableFault,
  isRetryableAnswer,
  isOutcomeUnknown,
  type RetryBudget,
} from '../request/repeatability.js';

/** With less time left than this, an attempt cannot succeed and only loads the service. */
const MIN_ATTEMPT_MS = 10;

type ExchangeLimits = Pick<ExchangeRequest, 'timeoutMs' | 'attemptTimeoutMs' | 'connectTimeoutMs'>;

/**
 * What follows an attempt: nothing, or another: at once on another connection (reconnect), or with other credentials or
 * another certificate (replay), or after a pause (retry).
 */
type Decision = { kind: 'end' | 'reconnect' | 'replay' } | { kind: 'retry'; afterMs: number };

const END: Decision = { kind: 'end' };

/**
 * Runs a call from first attempt to last: retries within deadline and budget if that is safe, one replay with another
 * token after a 401, one with another certificate after ours was refused. So without retries it is sent at most 3 times,
 * and once more if the server had closed the idle connection that it took. No other place decides on an attempt.
 */
export class CallRunner {
  readonly #client: ClientContext;
  readonly #authenticator: CallAuthenticator;
  readonly #budget: RetryBudget;
  readonly #observer: CallObserver;
  /** Exchanges of this client that are running. */
  #running = 0;
  /** Fingerprint of the client certificate of the last successful call. */
  #acceptedCertificate: string | undefined = undefined;
  /**
   * Set while a certificate that has worked is refused: the server may have switched to the new one before its files are
   * here. Calls wait for this promise and send nothing until then.
   */
  #newCertificate: Promise<boolean> | undefined = undefined;

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
      if (decision.kind === 'end') return this.#conclude(call, outcome);
      call.outcomeUnknown = isOutcomeUnknown(call, outcome);
      if (decision.kind !== 'reconnect') this.#observer.again(call, outcome);
      try {
        if (decision.kind === 'retry') await sleep(systemClock, decision.afterMs, call.signal, closed);
        outcome = await this.#attempt(call);
      } catch (error) {
        if (!call.outcomeUnknown || isEndedByCaller(call)) throw error;
        // Nothing more was sent. The error of the previous attempt says that the call may have been carried out.
        return this.#conclude(call, outcome);
      }
    }
  }

  /**
   * Sends the call with the current credentials: a token may have expired since the last attempt. While other calls are
   * running, it is sent in the next turn of the event loop. All requests of one turn go out together then, which costs a third
   * less CPU.
   */
  async #attempt(call: Call): Promise<Outcome> {
    // A call with a short time limit is sent after half of it: the server's refusal tells its caller more than a timeout.
    if (this.#newCertificate) await this.#waitFor(this.#newCertificate, call, call.leftMs / 2);
    const credentials = this.#authenticator.use() ?? (await this.#waitForToken(call));
    if (credentials !== call.getCredentials()) call.authenticate(credentials);
    const isAlone = this.#running === 0;
    this.#running += 1;
    try {
      if (!isAlone) await nextTurn();
      // In place of a look at the connection, which Windows does not allow: the event loop processes FINs that have arrived.
      if (!canSeeUnreadInput && !isRepeatable(call)) await nextTurn().then(nextTurn);
      // The process may have been suspended meanwhile, for longer than the token lives.
      if (!this.#authenticator.areAlive(credentials) && call.leftMs > 0) return await this.#attempt(call);
      return await outcomeOf(() => this.#exchange(call));
    } finally {
      this.#running -= 1;
    }
  }

  #waitForToken(call: Call): Promise<Credentials> {
    return this.#client.identity.connectDuring(call.url, () => this.#authenticator.get(waitOf(call)));
  }

  #exchange(call: Call): Promise<ExchangeResponse> {
    const { io, identity, options, calls } = this.#client;
    call.signal?.throwIfAborted();
    calls.closed.throwIfAborted();
    const { timeoutMs, attemptTimeoutMs, connectTimeoutMs } = this.#limitsOf(call);
    if (timeoutMs <= 0) throw outOfTime();
    call.attempts += 1;
    call.certificate = identity.certificate;
    return io.exchange({
      url: call.url,
      method: call.method,
      headers: call.getHeaders(),
      body: call.body,
      agent: identity.agentFor(call.url),
      // A reconnect takes a connection that is surely alive.
      mayRepeat: isRepeatable(call) && !call.reconnected,
      hasCertificate: call.certificate !== undefined,
      timeoutMs,
      attemptTimeoutMs,
      connectTimeoutMs,
      maxResponseBytes: call.maxResponseBytes ?? options.http.maxResponseBytes,
      signal: call.signal,
    });
  }

  /** What may be tried again leaves time for that. Once sent, a call that cannot be repeated has all that is left. */
  #limitsOf(call: Call): ExchangeLimits {
    const { connectTimeout, attemptTimeout } = this.#client.options.http;
    const timeoutMs = call.leftMs;
    if (!this.#mayRetry(call)) return { timeoutMs, connectTimeoutMs: connectTimeout };
    const partMs = call.attemptTimeoutMs ?? attemptTimeout;
    return {
      timeoutMs,
      attemptTimeoutMs: isRepeatable(call) ? partMs : undefined,
      connectTimeoutMs: Math.min(connectTimeout, partMs ?? timeoutMs / 2),
    };
  }

  async #decide(call: Call, outcome: Outcome): Promise<Decision> {
    // An everyday race, and nobody's fault: neither a retry nor worth a line in the log.
    if (!call.reconnected && isRepeatable(call) && hadDeadConnection(outcome.fault)) {
      call.reconnected = true;
      return { kind: 'reconnect' };
    }
    return (await this.#hasOther(call, outcome)) ? { kind: 'replay' } : this.#retry(call, outcome);
  }

  /** Whether the call can be sent again with other credentials, or with another certificate. */
  async #hasOther(call: Call, outcome: Outcome): Promise<boolean> {
    if (!isOutcomeUnknown(call, outcome)) return this.#replace(call, outcome, true);
    // For the next call too. If it fails, the outcome of this call stays what it is; only its caller can end it earlier.
    const hasOther = await this.#replace(call, outcome, isRepeatable(call)).catch(() => false);
    if (isEndedByCaller(call)) throw call.signal?.reason;
    return hasOther && isRepeatable(call);
  }

  /** Bearer or certificate. `mayWait`: the call can be sent again later. */
  async #replace(call: Call, outcome: Outcome, mayWait: boolean): Promise<boolean> {
    if (outcome.response?.status === 401 && (await this.#replaceToken(call))) return true;
    if (call.hasOtherCertificate || certificateRefusal(outcome) === undefined) return false;
    return (call.hasOtherCertificate = await this.#reload(call, outcome, mayWait));
  }

  async #replaceToken(call: Call): Promise<boolean> {
    if (call.triedToken) return false;
    call.triedToken = true;
    return (await this.#authenticator.replace(call.getCredentials(), waitOf(call))) !== undefined;
  }

  /**
   * Reads the identity again. If a certificate that has worked is refused, all calls wait for the new one. A change that may
   * have been carried out (`mayWait` is false) fails at once.
   */
  async #reload(call: Call, outcome: Outcome, mayWait: boolean): Promise<boolean> {
    const { certificate } = call;
    const isSure = certificateRefusal(outcome) === 'refused';
    const hasWorked =
      isSure && certificate !== undefined && certificate.fingerprint256 === this.#acceptedCertificate;
    const reloaded = this.#client.identity.reloadAfterRefusal(certificate, hasWorked, isBareEnd(outcome));
    if (!hasWorked) return this.#waitFor(reloaded, call, call.leftMs);
    const found = reloaded.finally(() => {
      if (this.#newCertificate === found) this.#newCertificate = this.#acceptedCertificate = undefined;
    });
    this.#newCertificate ??= found;
    return mayWait && this.#waitFor(found, call, call.leftMs);
  }

  /** Waits for another certificate. Resolves with false if there is none, or none in time. */
  async #waitFor(certificate: Promise<boolean>, call: Call, timeoutMs: number): Promise<boolean> {
    const { closed } = this.#client.calls;
    const limit = { clock: systemClock, timeoutMs, expired: outOfTime, signals: [call.signal, closed] };
    return within(limit, () => certificate).catch((error: unknown) => {
      if (error instanceof ExchangeFault) return false;
      throw error;
    });
  }

  #mayRetry({ retries, maxRetries = this.#client.options.http.retries }: Call): boolean {
    return retries < maxRetries;
  }

  #retry(call: Call, { response, fault }: Outcome): Decision {
    const isRetryable = fault ? isRetryableFault(call, fault) : isRetryableAnswer(call, response);
    if (!isRetryable || !this.#mayRetry(call)) return END;
    const leftMs = call.leftMs - MIN_ATTEMPT_MS;
    const afterMs = this.#pause(call, response, leftMs);
    if (afterMs > leftMs) return END;
    const taken = this.#budget.take(fault?.kind === 'timeout');
    if (taken === undefined) return END;
    call.budgetTaken = taken;
    call.retries += 1;
    return { kind: 'retry', afterMs };
  }

  #pause({ retries }: Call, response: ExchangeResponse | undefined, leftMs: number): number {
    const random = this.#client.io.random();
    const seconds = parseRetryAfter(response?.headers, Date.now());
    return seconds === undefined
      ? retryDelay(retries, random)
      : askedDelay(seconds * 1000, retries, random, leftMs);
  }

  #conclude(call: Call, { response, fault }: Outcome): ExchangeResponse {
    // Whatever the fault looks like, the shutdown closed the connection.
    if (fault && this.#client.calls.closed.aborted) throw faultToError(asClosed(fault), call, this.#client);
    if (fault) throw faultToError(withKnownLimit(fault, call), call, this.#client);
    if (isSuccess(response.status)) {
      this.#budget.giveBack(call.budgetTaken);
      this.#acceptedCertificate = call.certificate?.fingerprint256;
      // Not every server refuses the certificate: later calls need not wait.
      this.#newCertificate = undefined;
    }
    call.response = response;
    return response;
  }
}

/** How long a call may wait for a token. */
function waitOf({ signal, leftMs: timeoutMs }: Call): WaitOptions {
  return { signal, timeoutMs };
}

/** By its signal; not because an Observable of it was unsubscribed. */
function isEndedByCaller({ signal }: Call): boolean {
  return signal?.aborted === true && !(signal.reason instanceof CallCancelled);
}

/** The last attempt has the rest of the call's time, but its caller knows the time of the whole call. */
function withKnownLimit(fault: ExchangeFault, { timeoutMs, endsAt }: Call): ExchangeFault {
  const isLast = fault.kind === 'timeout' && fault.reason === undefined && performance.now() > endsAt - 5;
  return isLast ? new ExchangeFault({ ...fault, limitMs: timeoutMs }) : fault;
}

/** For a call of which nothing was sent, or had an effect. `reusedSocket`, because no connection is at fault. */
function outOfTime(): ExchangeFault {
  return new ExchangeFault({ kind: 'timeout', phase: 'connecting', reusedSocket: true });
}

function asClosed({ phase, reusedSocket, refusedInHandshake }: ExchangeFault): ExchangeFault {
  return new ExchangeFault({ kind: 'closed', phase, reusedSocket, refusedInHandshake });
}
