import { type BeforeApplicationShutdown, type FactoryProvider, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { BanksService } from '../banks/banks.service.js';
import { systemClock } from '../time/clock.js';
import { describeError, ServiceError, ServiceRequestError } from '../errors/index.js';
import { checkTimeout, ifText } from '../exchange/call-limits.js';
import { getServiceToken } from '../service-token.js';
import { SafeLogger } from '../telemetry/log.js';
import { certificateDetails, certificateFault } from './certificate-health.js';
import { type CheckOutcome, LimitedCheck } from './limited-check.js';

const TIMEOUT_MS = 3_000;
/** The error's code without OAuth credentials: calls need no token then. */
const NOT_CONFIGURED = 'oauth_not_configured';

/** What `isHealthy()` checks. */
export interface ServiceHealthOptions {
  /** Calls the banks path too, at most once a minute. Default false. */
  ping?: boolean | undefined;
  /** Unhealthy if the client certificate expires in fewer days. Default 0: only once it has expired. */
  minCertificateDays?: number | undefined;
  /** Milliseconds that this check may take. Default 3,000. */
  timeout?: number | undefined;
}

/**
 * The health of one ServiceModule for @nestjs/terminus 11 or 12: the dates of the client certificate, whether a token
 * can be obtained (with OAuth credentials), and with `ping` whether the service answers. A provider like any other;
 * that of a named module is {@link ServiceHealthIndicator.forModule}.
 *
 * Probes may come as often as they like: a token is taken from the cache, and while there is none, the token endpoint
 * gets one request a minute, and so does the banks path; 10 s after one that failed (a secret that was refused is sent again
 * after a minute). In between the last outcome is reported. Anybody may see what it reports.
 *
 * It is for an alarm, not for a readiness probe: an outage of the service would take every instance out of rotation.
 *
 * @example
 * check() {
 *   return this.health.check([() => this.service.isHealthy('service', { minCertificateDays: 7 })]);
 * }
 */
@Injectable()
export class ServiceHealthIndicator implements BeforeApplicationShutdown {
  readonly #indicators: HealthIndicatorService;
  readonly #auth: ServiceAuthService;
  readonly #token: LimitedCheck;
  readonly #ping: LimitedCheck;
  readonly #logger = new SafeLogger(ServiceHealthIndicator.name);
  #isShuttingDown = false;

  /** @internal */
  constructor(indicators: HealthIndicatorService, auth: ServiceAuthService, banks: BanksService) {
    this.#indicators = indicators;
    this.#auth = auth;
    const log = (what: string) => (error: unknown) => {
      this.#logger.warn(`${what}: ${error instanceof ServiceError ? describeError(error) : String(error)}`);
    };
    const logTokenFailure = log('No token could be had');
    this.#token = new LimitedCheck(systemClock, {
      request: (timeout) => auth.getApiToken({ timeout, once: true }),
      onFailure: (error) => isNotConfigured(error) || logTokenFailure(error),
    });
    this.#ping = new LimitedCheck(systemClock, {
      request: (timeout) => banks.list({ timeout }),
      onFailure: log('The banks path did not answer as it should'),
    });
  }

  /**
   * The provider of a named module's indicator, to be injected with `@InjectService(ServiceHealthIndicator, name)`.
   * @example providers: [ServiceHealthIndicator, ServiceHealthIndicator.forModule('ksa')]
   */
  static forModule(name: string): FactoryProvider<ServiceHealthIndicator> {
    return {
      provide: getServiceToken(ServiceHealthIndicator, name),
      inject: [
        HealthIndicatorService,
        getServiceToken(ServiceAuthService, name),
        getServiceToken(BanksService, name),
      ],
      useFactory: (indicators: HealthIndicatorService, auth: ServiceAuthService, banks: BanksService) =>
        new ServiceHealthIndicator(indicators, auth, banks),
    };
  }

  /**
   * `down` if the certificate has expired or expires too soon, no token can be obtained, the ping fails, or the
   * application is shutting down; `message` says which. A new certificate that cannot be used is reported, and no
   * reason for `down` as long as the one in use is good.
   *
   * Throws ServiceRequestError for options that are not valid.
   */
  async isHealthy<const Key extends string>(
    key: Key,
    { ping = false, minCertificateDays = 0, timeout }: ServiceHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const timeoutMs = checkTimeout(timeout) ?? TIMEOUT_MS;
    checkDays(minCertificateDays);
    const session = this.#indicators.check(key);
    if (this.#isShuttingDown) return session.down({ message: 'The application is shutting down.' });
    const status = this.#auth.identityStatus;
    const [token, answer] = await Promise.all([
      this.#tokenOutcome(timeoutMs),
      ping ? this.#ping.outcome(timeoutMs) : undefined,
    ]);
    const reasons = [
      certificateFault(status, minCertificateDays),
      token?.ok === false && `No token can be had (${token.code}).`,
      answer?.ok === false && `The service does not answer as it should (${answer.code}).`,
    ].filter((reason) => typeof reason === 'string');
    const details = {
      ...certificateDetails(status),
      ...(token && { token }),
      ...(answer && { ping: answer }),
    };
    return reasons.length === 0
      ? session.up(details)
      : session.down({ ...details, message: reasons.join(' ') });
  }

  /** Nest's: from now on the service is down. */
  beforeApplicationShutdown(): void {
    this.#isShuttingDown = true;
  }

  async #tokenOutcome(timeoutMs: number): Promise<CheckOutcome | undefined> {
    if (this.#auth.apiTokenStatus) return { ok: true };
    const outcome = await this.#token.outcome(timeoutMs);
    return outcome.code === NOT_CONFIGURED ? undefined : outcome;
  }
}

function isNotConfigured(error: unknown): boolean {
  return error instanceof ServiceError && error.code === NOT_CONFIGURED;
}

function checkDays(days: unknown): void {
  if (typeof days === 'number' && days >= 0) return;
  throw ServiceRequestError.ofCode('minCertificateDays', `must be a number of days from 0${ifText(days)}`);
}
