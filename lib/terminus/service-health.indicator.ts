import { type BeforeApplicationShutdown, type FactoryProvider, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { BanksService } from '../banks/banks.service.js';
import { systemClock } from '../time/time.js';
import { describeError, ServiceError, ServiceRequestError } from '../errors/index.js';
import { checkTimeout, hintIfString } from '../config/http.options.js';
import { getServiceToken } from '../service-token.js';
import { SafeLogger } from '../telemetry/telemetry.js';
import { certificateDetails, certificateFault } from './certificate-health.js';
import { CachedCheck, type CheckOutcome } from './cached-check.js';

const TIMEOUT_MS = 3_000;
/** The error code of a client without OAuth credentials, whose calls need no token. */
const NOT_CONFIGURED = 'oauth_not_configured';

/** What `isHealthy()` checks. */
export interface ServiceHealthOptions {
  /** Also lists the banks, at most once a minute. Default: false. */
  ping?: boolean | undefined;
  /** `down` if the client certificate expires in fewer days than this. Default: 0, so only after it has expired. */
  minCertificateDays?: number | undefined;
  /** Milliseconds that this check may take. Default: 3,000. */
  timeout?: number | undefined;
}

/**
 * A health indicator of one ServiceModule, for @nestjs/terminus 11 or 12. It checks that the client certificate has not
 * expired, that a token can be obtained (with OAuth credentials), and with `ping` that the service responds. Add it to the
 * providers of your module; for a named module add {@link ServiceHealthIndicator.forModule}.
 *
 * It can be probed as often as you like, because outcomes are cached:
 *
 * - A valid token in the cache needs no request. Without one, the token endpoint gets at most one request a minute.
 * - The banks path (`ping`) gets at most one request a minute.
 * - After a failure, the next request is made 10 s later; after a refused client secret, a minute later.
 *
 * The result contains nothing secret, so the health endpoint may be public.
 *
 * Use it for an alarm and not for a readiness probe: an outage of the service would take every instance of your
 * application out of rotation.
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
  readonly #tokenCheck: CachedCheck;
  readonly #pingCheck: CachedCheck;
  readonly #logger = new SafeLogger(ServiceHealthIndicator.name);
  #isShuttingDown = false;

  /** @internal */
  constructor(indicators: HealthIndicatorService, auth: ServiceAuthService, banks: BanksService) {
    this.#indicators = indicators;
    this.#auth = auth;
    const log = (what: string) => (error: unknown) => {
      this.#logger.warn(`${what}: ${error instanceof ServiceError ? describeError(error) : String(error)}`);
    };
    const logTokenFailure = log('The health check could not obtain a token');
    this.#tokenCheck = new CachedCheck(systemClock, {
      request: (timeout) => auth.getApiToken({ timeout, once: true }),
      onFailure: (error, code) => code === NOT_CONFIGURED || logTokenFailure(error),
    });
    this.#pingCheck = new CachedCheck(systemClock, {
      request: (timeout) => banks.list({ timeout }),
      onFailure: log('The health check could not list the banks'),
    });
  }

  /**
   * The provider of a named module's indicator. Inject it with `@InjectService(ServiceHealthIndicator, name)`.
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
   * Returns `down`, with the reason in `message`, if
   *
   * - the client certificate has expired, or expires within `minCertificateDays`;
   * - no token can be obtained;
   * - the ping fails;
   * - the application is shutting down.
   *
   * If a new certificate could not be loaded, the details contain `lastReloadFault`. The result stays `up` as long as the
   * certificate in use is valid.
   *
   * @throws ServiceRequestError for invalid options
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
      this.#checkToken(timeoutMs),
      ping ? this.#pingCheck.getOutcome(timeoutMs) : undefined,
    ]);
    const reasons = [
      certificateFault(status, minCertificateDays),
      token?.ok === false && `No token can be obtained (${token.code}).`,
      answer?.ok === false && `Listing the banks fails (${answer.code}).`,
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

  /** Called by Nest when the application shuts down. From then on the indicator reports `down`. */
  beforeApplicationShutdown(): void {
    this.#isShuttingDown = true;
  }

  async #checkToken(timeoutMs: number): Promise<CheckOutcome | undefined> {
    if (this.#auth.apiTokenStatus) return { ok: true };
    const outcome = await this.#tokenCheck.getOutcome(timeoutMs);
    return outcome.code === NOT_CONFIGURED ? undefined : outcome;
  }
}

function checkDays(days: unknown): void {
  if (typeof days === 'number' && days >= 0) return;
  throw ServiceRequestError.ofMisuse(
    'minCertificateDays',
    `must be a number of days from 0${hintIfString(days)}`,
  );
}
