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
   * Options left out are filled from the `service` namespace and the SERVICE_* variables of ConfigModule. Everything
   * wrong with them is thrown at bootstrap, in one ServiceConfigurationError.
   */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    checkOptions(options, 'forRoot');
    return super.forRoot(options);
  }

  /** The same with options from a factory: `useFactory`, `useClass` or `useExisting`, with `imports` and `inject`. */
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
