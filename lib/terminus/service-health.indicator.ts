import { type FactoryProvider, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { ServiceHealthCheck, type ServiceHealthOptions } from '../engine/health.js';
import { getServiceToken } from '../service-token.js';
import { SafeLogger } from '../telemetry/telemetry.js';

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
export class ServiceHealthIndicator {
  readonly #indicators: HealthIndicatorService;
  readonly #health: ServiceHealthCheck;
  readonly #logger = new SafeLogger(ServiceHealthIndicator.name);

  /** @internal */
  constructor(indicators: HealthIndicatorService, health: ServiceHealthCheck) {
    this.#indicators = indicators;
    this.#health = health;
  }

  /**
   * The provider of a named module's indicator. Inject it with `@InjectService(ServiceHealthIndicator, name)`.
   * @example providers: [ServiceHealthIndicator, ServiceHealthIndicator.forModule('ksa')]
   */
  static forModule(name: string): FactoryProvider<ServiceHealthIndicator> {
    return {
      provide: getServiceToken(ServiceHealthIndicator, name),
      inject: [HealthIndicatorService, getServiceToken(ServiceHealthCheck, name)],
      useFactory: (indicators: HealthIndicatorService, health: ServiceHealthCheck) =>
        new ServiceHealthIndicator(indicators, health),
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
    options?: ServiceHealthOptions,
  ): Promise<HealthIndicatorResult<Key>> {
    const { status, ...details } = await this.#health.check(options, this.#logger);
    const session = this.#indicators.check(key);
    return status === 'up' ? session.up(details) : session.down(details);
  }
}
