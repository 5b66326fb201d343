import { Module, type DynamicModule } from '@nestjs/common';
import { nameFault } from './config/variables.js';
import { ServiceConfigurationError } from './errors/index.js';
import { ConfigurableModuleClass, type ASYNC_OPTIONS_TYPE, type OPTIONS_TYPE } from './module/definition.js';
import { bareImportProviders, serviceProviders } from './module/providers.js';

/**
 * The authenticated client of the service: provides ServiceAuthService, ServiceHttpService, CustomersService,
 * BanksService and LinkSdkService.
 */
@Module({ providers: [...bareImportProviders, ...serviceProviders] })
export class ServiceModule extends ConfigurableModuleClass {
  /**
   * A client of one service, with its own tokens and connections. An option that is left out is read from the `service`
   * namespace (`service-<name>` for a named module) or the SERVICE_* variables of ConfigModule, wherever the application
   * imports it; without ConfigModule, from the variables of the process.
   *
   * The application does not start if options are not usable, or if the module without a name reads variables of this name
   * too. One ServiceConfigurationError has all faults; a ServiceCertificateError, if all are about certificates.
   * @example imports: [ConfigModule.forRoot(), ServiceModule.forRoot({ isGlobal: true })]
   * @throws ServiceConfigurationError if `options` is not an object or `name` cannot be a module's
   */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    checkOptions(options, 'forRoot');
    return super.forRoot(options);
  }

  /**
   * The same with options from a factory: `useFactory`, `useClass` or `useExisting`, with `imports` and `inject`. It is
   * called once, after every ConfigModule has loaded. `inject` may have the ConfigService of any of them; the class of
   * `useClass` needs one that is global or in `imports`.
   *
   * The start fails with any error of the factory, and with a ServiceConfigurationError if it has not finished after 60 s or
   * depends on a request (REQUEST, Scope.REQUEST).
   * @throws ServiceConfigurationError if there is no factory, or `name` cannot be a module's
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
