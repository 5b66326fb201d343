import { Module, type DynamicModule } from '@nestjs/common';
import { ServiceConfigurationError } from './errors/index.js';
import { ConfigurableModuleClass, type ASYNC_OPTIONS_TYPE, type OPTIONS_TYPE } from './module/definition.js';
import { serviceProviders } from './module/providers.js';

/**
 * The authenticated client of the service: provides ServiceAuthService, ServiceHttpService, CustomersService,
 * BanksService and LinkSdkService.
 */
@Module({ providers: serviceProviders })
export class ServiceModule extends ConfigurableModuleClass {
  /**
   * A client of one service. Options left out are filled from the `service` namespace and the SERVICE_* variables of
   * ConfigModule, wherever the application imports it and also where it loads asynchronously; without ConfigModule,
   * from the variables of the process. Each call makes a client of its own, with its own tokens and connections.
   *
   * The application does not start, with all faults in one ServiceConfigurationError (a ServiceCertificateError where
   * only certificates are at fault), where the options are not usable, or where two modules would read one
   * variable for different options.
   * @example imports: [ConfigModule.forRoot(), ServiceModule.forRoot()]
   * @throws ServiceConfigurationError where `options` is no object or `name` cannot be part of a variable's name
   */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    checkOptions(options, 'forRoot');
    return super.forRoot(options);
  }

  /**
   * The same with options from a factory: `useFactory`, `useClass` or `useExisting`, with `imports` and `inject`. It is
   * called once, when all of ConfigModule is loaded. `inject` may name the ConfigService of any ConfigModule that the
   * application imports; the class of `useClass` needs one that is global or in `imports`.
   *
   * The application does not start where the factory throws (with what it throws), where it has not finished after
   * 60 s, and where the options depend on a request (REQUEST, Scope.REQUEST): both ServiceConfigurationError.
   * @throws ServiceConfigurationError where there is no factory, or `name` cannot be part of a variable's name
   */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    checkOptions(options, 'forRootAsync');
    const factory = options.useFactory ?? options.useClass ?? options.useExisting;
    if (typeof factory !== 'function' && (options.useExisting ?? undefined) === undefined) {
      throw new ServiceConfigurationError([
        {
          option: 'forRootAsync',
          message: 'needs a function as useFactory, or a class as useClass or useExisting.',
        },
      ]);
    }
    return super.forRootAsync(options);
  }
}

function checkOptions(options: unknown, method: string): void {
  if (typeof options !== 'object' || options === null) {
    throw new ServiceConfigurationError([{ option: method, message: 'takes an object of options.' }]);
  }
  const { name } = options as { name?: string };
  if (name === undefined || /^[A-Za-z][\w-]*$/.test(name)) return;
  throw new ServiceConfigurationError([
    { option: 'name', message: 'must begin with a letter and hold letters, digits, - and _ only.' },
  ]);
}
