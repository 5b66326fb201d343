import { Module, type DynamicModule } from '@nestjs/common';
import { nameFault } from './config/variables.js';
import { ServiceConfigurationError } from './errors/index.js';
import {
  ConfigurableModuleClass,
  type ASYNC_OPTIONS_TYPE,
  type OPTIONS_TYPE,
  bareImportProviders,
  serviceProviders,
} from './module/providers.js';

/**
 * Provides an authenticated client of the service: ServiceAuthService, ServiceHttpService, CustomersService, BanksService,
 * LinkSdkService and WebhooksService.
 */
@Module({ providers: [...bareImportProviders, ...serviceProviders] })
export class ServiceModule extends ConfigurableModuleClass {
  /**
   * Creates a client with its own tokens and connections. An option that you leave out is read from ConfigModule, wherever
   * the application imports it: from the namespace `service` (`service-<name>` for a named module), then from the SERVICE_*
   * variables. Without ConfigModule, it is read from the variables of the process.
   *
   * The application does not start if options are not usable. One ServiceConfigurationError lists all faults. If all of
   * them are about certificates, it is a ServiceCertificateError.
   * @example imports: [ConfigModule.forRoot(), ServiceModule.forRoot({ isGlobal: true })]
   * @throws ServiceConfigurationError if `options` is not an object, or if the module cannot have this `name`
   */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    checkOptions(options, 'forRoot');
    return super.forRoot(options);
  }

  /**
   * Like {@link forRoot}, with options from a factory: `useFactory`, `useClass` or `useExisting`, with `imports` and
   * `inject`. The factory is called once, after every ConfigModule has loaded. `inject` may contain ConfigService, even if
   * its ConfigModule is not global. The class of `useClass` needs a ConfigModule that is global or in `imports`.
   *
   * The start fails with any error of the factory, and with a ServiceConfigurationError if the factory takes longer than
   * 60 s or is request-scoped (REQUEST, Scope.REQUEST).
   * @throws ServiceConfigurationError if there is no factory, or if the module cannot have this `name`
   */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    checkOptions(options, 'forRootAsync');
    const factory = options.useFactory ?? options.useClass ?? options.useExisting;
    if (typeof factory !== 'function' && (options.useExisting ?? undefined) === undefined) {
      const message = 'needs a function as useFactory, or a class as useClass or useExisting.';
      throw ServiceConfigurationError.of('forRootAsync', message);
    }
    return super.forRootAsync(options);
  }
}

function checkOptions(options: unknown, method: string): void {
  if (typeof options !== 'object' || options === null) {
    throw ServiceConfigurationError.of(method, 'takes an object of options.');
  }
  const { name } = options as { name?: string };
  const fault = name === undefined ? undefined : nameFault(name);
  if (fault) throw ServiceConfigurationError.of('name', fault);
}
