import { systemClock } from '../time/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type CertificateSummary } from '../errors/index.js';
import { partOf } from '../exchange/call-limits.js';
import { type ReloadableIdentity } from '../exchange/certificate-refusal.js';
import {
  CallCancelled,
  type Exchange,
  ExchangeFault,
  type ExchangeRequest,
  type ExchangeResponse,
  type Outcome,
  outcomeOf,
} from '../exchange/exchange.types.js';
import { parseRetryAfter } from '../exchange/retry-after.js';
import { askedDelay, retryDelay } from '../time/back-off.js';
import { sleep } from '../time/timers.js';
import { type Identity } from '../tls/client-identity.js';
import { isTruncated } from './answer-body.js';
import { type Call, type CallLimits } from './call.js';
import { type CallObservation } from './call-observer.js';
import { CredentialRenewal, type CredentialRenewalParts } from './credential-renewal.js';
import { faultToError } from './fault-to-error.js';
import {
  isClosedIdleConnection,
  isRepeatable,
  isRetryableFault,
  isRetryableStatus,
  mayHaveActed,
  type RetryBudget,
} from './retry-policy.js';

export interface CallRunnerParts extends CredentialRenewalParts {
  exchange: Exchange;
  identity: ReloadableIdentity & Pick<Identity, 'agentFor' | 'hasChain'>;
  budget: RetryBudget;
  http: Pick<ResolvedOptions['http'], 'retries' | 'attemptTimeout' | 'connectTimeout' | 'maxResponseBytes'> &
    Pick<ResolvedOptions['http'], 'proxyFor' | 'ignoredProxyFor'>;
  random: () => number;
}

/** With less time left than this, an attempt cannot succeed and only loads the service. */
const MIN_ATTEMPT_MS = 10;

/** A server that restarts closes all idle connections at once: another may be used before the client knows. */
const MAX_CLOSED_CONNECTIONS = 3;

type ExchangeLimits = Pick<ExchangeRequest, 'timeoutMs' | 'attemptTimeoutMs' | 'connectTimeoutMs'>;

interface Progress extends CallLimits {
  call: Call;
  /** From the first failure on. */
  renewal?: CredentialRenewal;
  retries: number;
  /** What the last retry took from the budget. */
  budgetTaken?: number;
  /** How often a kept-alive connection was closed already. */
  closedConnections: number;
  /** The certificate of the current attempt. */
  certificate?: CertificateSummary;
}

/**
 * One call from first attempt to last: retries within deadline and budget where that is safe, one replay with other
 * credentials after a 401, one with another certificate after ours was refused. The only place that decides on any.
 */
export class CallRunner {
  readonly #parts: CallRunnerParts;

  constructor(parts: CallRunnerParts) {
    this.#parts = parts;
  }

  async run(call: Call, limits: CallLimits, observation: CallObservation): Promise<ExchangeResponse> {
    const { closed } = this.#parts;
    const { signal, startedAt, endsAt } = limits;
    const progress: Progress = { call, signal, startedAt, endsAt, retries: 0, closedConnections: 0 };
    for (;;) {
      observation.attempts += 1;
      const outcome = await this.#attempt(progress);
      const isSuccess = outcome.response !== undefined && outcome.response.status < 400;
      const isOver = closed.aborted || isSuccess;
      const waitMs = isOver ? undefined : await this.#waitBeforeNext(progress, outcome);
      if (waitMs === undefined) return this.#conclude(progress, outcome);
      call.inDoubt = mayHaveActed(call, outcome);
      observation.again(outcome);
      try {
        if (waitMs > 0) await sleep(systemClock, waitMs, signal, closed);
      } catch (error) {
        const isOfCaller = error !== closed.reason && !(error instanceof CallCancelled);
        if (!call.inDoubt || isOfCaller) throw error;
        // The error of this attempt says that the call may have been carried out.
        return this.#conclude(progress, outcome);
      }
    }
  }

  async #attempt(progress: Progress): Promise<Outcome> {
    const { exchange, http, identity } = this.#parts;
    const { call, signal } = progress;
    progress.certificate = identity.certificate;
    const outcome = await outcomeOf(
      exchange({
        url: call.url,
        method: call.method,
        headers: call.headers,
        body: call.body,
        agent: identity.agentFor(call.url),
        ...this.#limitsOf(progress),
        maxResponseBytes: http.maxResponseBytes,
        signal,
      }),
    );
    return outcome.response && isTruncated(outcome.response, call)
      ? { fault: truncated(outcome.response) }
      : outcome;
  }

  /** A call that cannot be repeated once it was sent has all the time from then on. */
  #limitsOf({ call, retries, endsAt }: Progress): ExchangeLimits {
    const { http } = this.#parts;
    const timeoutMs = endsAt - performance.now();
    if (retries >= http.retries) return { timeoutMs, connectTimeoutMs: http.connectTimeout };
    const partMs = http.attemptTimeout ?? partOf(timeoutMs);
    return {
      timeoutMs,
      attemptTimeoutMs: isRepeatable(call) ? partMs : undefined,
      connectTimeoutMs: Math.min(http.connectTimeout, partMs),
    };
  }

  /** Milliseconds until the next attempt; undefined where there is to be none. */
  async #waitBeforeNext(progress: Progress, outcome: Outcome): Promise<number | undefined> {
    const { call, certificate } = progress;
    // Not the server's fault, so it counts as no retry.
    if (isClosedIdleConnection(call, outcome.fault) && progress.closedConnections < MAX_CLOSED_CONNECTIONS) {
      progress.closedConnections += 1;
      return 0;
    }
    progress.renewal ??= new CredentialRenewal(this.#parts, call, progress);
    const isRenewed = await progress.renewal.renewAfter(outcome, certificate);
    return isRenewed ? 0 : this.#retryWait(progress, outcome);
  }

  #retryWait(progress: Progress, { response, fault }: Outcome): number | undefined {
    const { call, endsAt } = progress;
    const retryable = fault ? isRetryableFault(call, fault) : isRetryableStatus(call, response.status);
    if (!retryable || progress.retries >= this.#parts.http.retries) return undefined;
    const seconds = parseRetryAfter(response?.headers['retry-after'], Date.now());
    const random = this.#parts.random();
    const leftMs = endsAt - performance.now() - MIN_ATTEMPT_MS;
    const waitMs =
      seconds === undefined
        ? retryDelay(progress.retries, random)
        : askedDelay(seconds * 1000, progress.retries, random, leftMs);
    if (waitMs > leftMs) return undefined;
    const taken = this.#parts.budget.take(fault?.kind === 'timeout');
    if (taken === undefined) return undefined;
    progress.budgetTaken = taken;
    progress.retries += 1;
    return waitMs;
  }

  #conclude(progress: Progress, { response, fault }: Outcome): ExchangeResponse {
    const { call, budgetTaken, certificate } = progress;
    const { budget, closed, baseOption, http, identity } = this.#parts;
    // Whatever the fault looks like: the shutdown closed the connection.
    if (fault && closed.aborted) throw faultToError(asClosed(fault), call, baseOption);
    if (fault) {
      const way = { ...http, hasChain: identity.hasChain };
      throw faultToError(withKnownLimit(fault, progress), call, baseOption, certificate, way);
    }
    if (response.status < 400) budget.giveBack(budgetTaken);
    return response;
  }
}

/** The last attempt has what is left of the call: the time that its caller knows is that of all. */
function withKnownLimit(fault: ExchangeFault, { startedAt, endsAt }: Progress): ExchangeFault {
  const isLast = fault.kind === 'timeout' && fault.reason === undefined && performance.now() > endsAt - 5;
  return isLast ? new ExchangeFault({ ...fault, limitMs: endsAt - startedAt }) : fault;
}

function asClosed({ phase, reusedSocket, refusedInHandshake }: ExchangeFault): ExchangeFault {
  return new ExchangeFault({ kind: 'closed', phase, reusedSocket, refusedInHandshake });
}

function truncated({ reusedSocket }: ExchangeResponse): ExchangeFault {
  return new ExchangeFault({ kind: 'reset', phase: 'answering', reusedSocket });
}
