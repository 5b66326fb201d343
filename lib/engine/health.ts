import { checkTimeout, hintIfString } from '../config/http.options.js';
import { describeError, ServiceApiError, ServiceError, ServiceRequestError } from '../errors/index.js';
import { type Log } from '../telemetry/telemetry.js';
import { type Clock, within } from '../time/time.js';
import { type IdentityStatus } from '../tls/identity-source.js';
import { type ServiceLifecycle, type ServiceParts } from './lifecycle.js';

/** Several observers may probe once a second. The service gets one request a minute for all of them. */
const SUCCESS_TTL_MS = 60_000;
/** A failure may be over a moment later, and it is reported as `down` until the next request: so it is cached for less. */
const FAILURE_TTL_MS = 10_000;
/** The request has a time limit of its own. With the limit of the probe that starts it, a short probe would fail for all. */
const REQUEST_TIMEOUT_MS = 10_000;
const TIMEOUT_MS = 3_000;

/** What a health check checks. */
export interface ServiceHealthOptions {
  /** Also lists the banks, at most once a minute. Default: false. */
  ping?: boolean | undefined;
  /** `down` if the client certificate expires in fewer days than this. Default: 0, so only after it has expired. */
  minCertificateDays?: number | undefined;
  /** Milliseconds that this check may take. Default: 3,000. */
  timeout?: number | undefined;
}

/** The outcome of a request for a health check, without secrets. */
export interface HealthCheckOutcome {
  ok: boolean;
  /** When the request was made: ISO 8601, UTC. Absent if no request was needed. */
  checkedAt?: string;
  /** If not ok: the error's code, and the HTTP status if there was one, for example `api_error 503`. */
  code?: string;
}

/** What a health check has found. It contains no secret, subject, path or error message, because health endpoints are often public. */
export interface ServiceHealth {
  status: 'up' | 'down';
  /** Why the status is `down`. */
  message?: string;
  /** Absent without a client certificate. `lastReloadFault`: the options whose new certificate could not be loaded. */
  certificate?: {
    validTo: string;
    daysLeft: number | undefined;
    lastReloadFault?: { at: string; options: string[] };
  };
  /** Whether a token can be obtained. Absent without OAuth credentials. */
  token?: HealthCheckOutcome;
  /** Whether the service responds. Absent without the option `ping`. */
  ping?: HealthCheckOutcome;
}

/** A check that makes a request. Its outcome is cached: for a minute if it succeeded, for 10 s if it failed. */
export class CachedCheck {
  readonly #clock: Clock;
  readonly #request: (timeoutMs: number) => Promise<unknown>;
  /** Says in a log line what has failed. */
  readonly #failure: string;
  #outcome?: Promise<HealthCheckOutcome>;
  /** When the cached outcome expires, in monotonic milliseconds. */
  #expiresAt = -Infinity;
  #lastLogged?: { code: string; until: number };

  constructor(clock: Clock, failure: string, request: (timeoutMs: number) => Promise<unknown>) {
    this.#clock = clock;
    this.#failure = failure;
    this.#request = request;
  }

  /**
   * Returns the cached outcome or makes the request. Never rejects. If the request takes longer than the caller's time
   * limit, this caller gets `connection_timeout`, and the request goes on for the others.
   */
  async getOutcome(timeoutMs: number, log: Log): Promise<HealthCheckOutcome> {
    const now = this.#clock.monotonic();
    if (!this.#outcome || now >= this.#expiresAt) {
      this.#expiresAt = now + SUCCESS_TTL_MS;
      this.#outcome = this.#makeRequest(log);
    }
    const outcome = this.#outcome;
    const limit = { clock: this.#clock, timeoutMs, expired: () => new Error('no outcome in time') };
    return within(limit, () => outcome).catch(() => ({ ok: false, code: 'connection_timeout' }));
  }

  async #makeRequest(log: Log): Promise<HealthCheckOutcome> {
    const checkedAt = new Date(this.#clock.now()).toISOString();
    try {
      await this.#request(REQUEST_TIMEOUT_MS);
      return { ok: true, checkedAt };
    } catch (error) {
      const code = outcomeCode(error);
      this.#expiresAt = this.#clock.monotonic() + FAILURE_TTL_MS;
      this.#logFailure(log, code, error);
      return { ok: false, checkedAt, code };
    }
  }

  /** Logs the same failure at most once a minute, so that probes do not fill the log. */
  #logFailure(log: Log, code: string, error: unknown): void {
    const now = this.#clock.monotonic();
    if (this.#lastLogged?.code === code && now < this.#lastLogged.until) return;
    this.#lastLogged = { code, until: now + SUCCESS_TTL_MS };
    log.warn(`${this.#failure}: ${error instanceof ServiceError ? describeError(error) : String(error)}`);
  }
}

function outcomeCode(error: unknown): string {
  if (error instanceof ServiceApiError) return `${error.code} ${error.status}`;
  return error instanceof ServiceError ? error.code : 'unknown';
}

/**
 * The health check of a client. Each client has one, for `ServiceClient.health()` and for the indicator of
 * nestjs-service/terminus, so that all who probe it share the cached outcomes.
 */
export class ServiceHealthCheck {
  readonly #parts: ServiceParts;
  readonly #lifecycle: ServiceLifecycle;
  readonly #token: CachedCheck;
  readonly #ping: CachedCheck;

  constructor(parts: ServiceParts, lifecycle: ServiceLifecycle) {
    const { auth, banks, io, options } = parts;
    this.#parts = parts;
    this.#lifecycle = lifecycle;
    const getToken = (timeout: number) => auth.getApiToken({ timeout, once: true });
    this.#token = new CachedCheck(io.clock, 'The health check could not obtain a token', getToken);
    this.#ping = new CachedCheck(io.clock, 'The health check could not list the banks', async (timeout) => {
      // The call would make up to three requests for its token.
      if (options.authentication === 'oauth' && !auth.apiTokenStatus) await getToken(timeout);
      await banks.list({ timeout, retries: 0 });
    });
  }

  /**
   * @param log where a failure is logged. Default: the log of the client
   * @throws ServiceRequestError for invalid options
   */
  async check(
    { ping = false, minCertificateDays = 0, timeout }: ServiceHealthOptions = {},
    log: Log = this.#parts.io.log,
  ): Promise<ServiceHealth> {
    const timeoutMs = checkTimeout(timeout) ?? TIMEOUT_MS;
    checkDays(minCertificateDays);
    const { auth, tokens } = this.#parts;
    if (this.#lifecycle.isShuttingDown)
      return { status: 'down', message: 'The application is shutting down.' };
    const identity = auth.identityStatus;
    const [token, answer] = await Promise.all<HealthCheckOutcome | undefined>([
      tokens && (auth.apiTokenStatus ? { ok: true } : this.#token.getOutcome(timeoutMs, log)),
      ping ? this.#ping.getOutcome(timeoutMs, log) : undefined,
    ]);
    const reasons = [
      certificateFault(identity, minCertificateDays),
      token?.ok === false && `No token can be obtained (${token.code}).`,
      answer?.ok === false && `Listing the banks fails (${answer.code}).`,
    ].filter((reason) => typeof reason === 'string');
    return {
      status: reasons.length === 0 ? 'up' : 'down',
      ...certificateDetails(identity),
      ...(token && { token }),
      ...(answer && { ping: answer }),
      ...(reasons.length > 0 && { message: reasons.join(' ') }),
    };
  }
}

/** Says why the health check fails because of the client certificate or its chain; undefined if it does not. */
function certificateFault({ healthy, daysLeft }: IdentityStatus, minDays: number): string | undefined {
  const certificate = 'The client certificate, or a chain certificate that is sent with it,';
  const isEarly = daysLeft !== undefined && daysLeft >= 0;
  if (!healthy) return `${certificate} ${isEarly ? 'is not valid yet' : 'has expired'}.`;
  if (daysLeft === undefined || daysLeft >= minDays) return undefined;
  return `${certificate} expires in ${daysLeft} days. The health check requires ${minDays} (minCertificateDays).`;
}

function certificateDetails(identity: IdentityStatus): Pick<ServiceHealth, 'certificate'> {
  const { certificate, daysLeft, lastReloadFault } = identity;
  if (!certificate) return {};
  const fault = lastReloadFault && {
    at: lastReloadFault.at.toISOString(),
    options: [...new Set(lastReloadFault.faults.map(({ option }) => option))],
  };
  const dates = { validTo: certificate.validTo.toISOString(), daysLeft };
  return { certificate: { ...dates, ...(fault && { lastReloadFault: fault }) } };
}

function checkDays(days: unknown): void {
  if (typeof days === 'number' && days >= 0) return;
  throw ServiceRequestError.ofMisuse(
    'minCertificateDays',
    `must be a number of days from 0${hintIfString(days)}`,
  );
}
