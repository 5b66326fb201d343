import { type Agent } from 'node:http';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { keepProcessRunning, systemClock } from '../config/clock.js';
import { type CertificateSummary } from '../errors/index.js';
import {
  certificateRefusal,
  type ReloadableIdentity,
  reloadIfRefused,
} from '../exchange/certificate-refusal.js';
import {
  CallCancelled,
  type Exchange,
  ExchangeFault,
  type ExchangeResponse,
  type Outcome,
  outcomeOf,
} from '../exchange/exchange.types.js';
import { parseRetryAfter } from '../exchange/retry-after.js';
import { retryDelay, sleep } from '../exchange/timing.js';
import { type CallUrl } from './allowed-urls.js';
import { isCutOff } from './api-answer.js';
import { setCredentials, type Call, type Credentials } from './call.js';
import { type CallObservation } from './call-observer.js';
import { faultToError } from './fault-to-error.js';
import {
  cannotHaveActed,
  isRefusedBefore,
  isRetryableFault,
  isRetryableStatus,
  isSafe,
  type RetryBudget,
} from './retry-policy.js';

/** The credentials as a running call needs them. */
export interface CallCredentials {
  /**
   * Other headers for a replay after a 401; undefined where a replay would not help. `refused`: the headers of the
   * call that got the 401.
   */
  renewedHeaders(
    refused: Credentials,
    wait: { signal?: AbortSignal; timeoutMs: number },
  ): Promise<Credentials | undefined>;
}

export interface CallRunnerParts {
  exchange: Exchange;
  agentFor: (url: CallUrl) => Agent;
  credentials: CallCredentials;
  identity: ReloadableIdentity;
  budget: RetryBudget;
  http: ResolvedOptions['http'];
  describeOption: ResolvedOptions['describeOption'];
  random: () => number;
  /** Aborted at the end of a shutdown, just before the connections are closed. */
  closed: AbortSignal;
}

/** With less time left than this, an attempt would only be a burden to the service. */
const LEAST_ATTEMPT_MS = 10;

/** A server that restarts closes all idle connections at once; another may be picked up before the client knows. */
const MOST_LOST_RACES = 3;

/** When a call ends without an answer. */
export interface CallLimits {
  /** The caller's own. */
  signal?: AbortSignal;
  /** On the monotonic clock. */
  endsAt: number;
}

const isGood = ({ response }: Outcome): boolean => response !== undefined && response.status < 400;

interface Progress {
  call: Call;
  /** The caller's own. */
  signal?: AbortSignal;
  /** On the monotonic clock. */
  endsAt: number;
  retries: number;
  taken?: number;
  replayed: boolean;
  reloaded: boolean;
  /** Times a kept-alive connection turned out to be closed already. */
  raced: number;
  /** The certificate of the attempt under way. */
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

  async run(
    call: Call,
    { signal, endsAt }: CallLimits,
    observation: CallObservation,
  ): Promise<ExchangeResponse> {
    const progress: Progress = {
      call,
      signal,
      endsAt,
      retries: 0,
      replayed: false,
      reloaded: false,
      raced: 0,
    };
    for (;;) {
      const outcome = await this.#attempt(progress);
      if (isGood(outcome)) return this.#conclude(progress, outcome);
      if (this.#parts.closed.aborted) return this.#conclude(progress, outcome);
      const again = this.#lostRace(progress, outcome) || (await this.#renewCredentials(progress, outcome));
      const waitMs = again ? 0 : this.#retryWait(progress, outcome);
      if (waitMs === undefined) return this.#conclude(progress, outcome);
      observation.again(outcome.fault?.kind ?? String(outcome.response?.status));
      if (waitMs > 0) await this.#wait(waitMs, signal);
    }
  }

  async #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const release = keepProcessRunning();
    await sleep(systemClock, ms, signal, this.#parts.closed).finally(release);
  }

  async #attempt(progress: Progress): Promise<Outcome> {
    const { exchange, agentFor, http, identity } = this.#parts;
    const { call, signal, endsAt } = progress;
    progress.certificate = identity.certificate;
    const outcome = await outcomeOf(
      exchange({
        url: call.url,
        method: call.method,
        headers: call.headers,
        body: call.body,
        agent: agentFor(call.url),
        timeoutMs: endsAt - performance.now(),
        maxResponseBytes: http.maxResponseBytes,
        signal,
      }),
    );
    return outcome.response && isCutOff(outcome.response, call) ? { fault: cut(outcome.response) } : outcome;
  }

  /**
   * The server closed an idle connection while the request was on its way: not its fault, so no retry is counted and
   * no time lost. Only for what may be sent twice, as the request may have got there before.
   */
  #lostRace(progress: Progress, { fault }: Outcome): boolean {
    const { call } = progress;
    if (!fault?.reusedSocket || fault.kind !== 'reset' || fault.phase !== 'sent') return false;
    if (!isSafe(call.method) || progress.raced >= MOST_LOST_RACES) return false;
    progress.raced += 1;
    return true;
  }

  async #renewCredentials(progress: Progress, outcome: Outcome): Promise<boolean> {
    const { call, signal } = progress;
    const { response, fault } = outcome;
    const mayRepeat = isSafe(call.method) || (fault ? cannotHaveActed(fault) : isRefusedBefore(response));
    if (mayRepeat) return this.#renew(progress, outcome);
    // For the next call. Whatever comes of it, this one's outcome stays what it is; only the caller can end it earlier.
    await this.#renew(progress, outcome).catch(() => undefined);
    if (signal?.aborted && !(signal.reason instanceof CallCancelled)) throw signal.reason;
    return false;
  }

  /** True where there are other credentials now. */
  async #renew(progress: Progress, outcome: Outcome): Promise<boolean> {
    const { call, signal, endsAt } = progress;
    if (outcome.response?.status === 401 && !progress.replayed) {
      progress.replayed = true;
      const timeoutMs = endsAt - performance.now();
      const headers = await this.#parts.credentials.renewedHeaders(call.headers, { signal, timeoutMs });
      if (headers) {
        setCredentials(call, headers);
        return true;
      }
    }
    if (progress.reloaded || certificateRefusal(outcome) === undefined) return false;
    progress.reloaded = await this.#reload(progress, outcome);
    return progress.reloaded;
  }

  /** Reads the identity again, for as long as the call may take. */
  async #reload({ call, signal, endsAt, certificate }: Progress, outcome: Outcome): Promise<boolean> {
    const { identity, closed, describeOption } = this.#parts;
    const over = new AbortController();
    const release = keepProcessRunning();
    const deadline = sleep(systemClock, endsAt - performance.now(), signal, closed, over.signal).then(() => {
      throw faultToError(outOfTime(), call, describeOption);
    });
    try {
      return await Promise.race([reloadIfRefused(outcome, identity, certificate, over.signal), deadline]);
    } finally {
      over.abort();
      release();
    }
  }

  /** Milliseconds until the next attempt; undefined where there is to be none. */
  #retryWait(progress: Progress, { response, fault }: Outcome): number | undefined {
    const { call, endsAt } = progress;
    const retryable = fault
      ? isRetryableFault(call.method, fault)
      : isRetryableStatus(call.method, response.status);
    if (!retryable || progress.retries >= this.#parts.http.retries) return undefined;
    const waitMs = retryAfterMs(response) ?? retryDelay(progress.retries, this.#parts.random());
    if (waitMs + LEAST_ATTEMPT_MS > endsAt - performance.now()) return undefined;
    const taken = this.#parts.budget.take(fault?.kind === 'timeout');
    if (taken === undefined) return undefined;
    progress.taken = taken;
    progress.retries += 1;
    return waitMs;
  }

  #conclude({ call, taken, certificate }: Progress, { response, fault }: Outcome): ExchangeResponse {
    const { budget, closed, describeOption } = this.#parts;
    // Its connection was closed under it.
    if (fault && closed.aborted) throw faultToError(asClosed(fault), call, describeOption);
    if (fault) throw faultToError(fault, call, describeOption, certificate);
    if (response.status < 400) budget.giveBack(taken);
    return response;
  }
}

function retryAfterMs(response: ExchangeResponse | undefined): number | undefined {
  const seconds = parseRetryAfter(response?.headers['retry-after'], Date.now());
  return seconds === undefined ? undefined : seconds * 1000;
}

function asClosed({ phase, reusedSocket, refusedInHandshake }: ExchangeFault): ExchangeFault {
  return new ExchangeFault({
    kind: 'closed',
    phase,
    reusedSocket,
    certificateRefused: false,
    refusedInHandshake,
  });
}

/** The answer ended with its connection, and not where it should. */
function cut({ reusedSocket }: ExchangeResponse): ExchangeFault {
  return new ExchangeFault({ kind: 'reset', phase: 'answering', reusedSocket, certificateRefused: false });
}

/** The time ran out between two attempts, the first of which did nothing. */
function outOfTime(): ExchangeFault {
  return new ExchangeFault({
    kind: 'timeout',
    phase: 'connecting',
    reusedSocket: false,
    certificateRefused: false,
  });
}
