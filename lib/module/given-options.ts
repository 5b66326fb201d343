import { type FactoryProvider, type Provider, type ValueProvider } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { type ServiceModuleOptions } from '../config/options.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { HOST_CONFIG, inStartTime, type HostConfig } from './host-config.js';

/**
 * The host's options, behind a function, so that printing the provider shows no secret. It calls the host's factory, if
 * there is one.
 */
export type GivenOptions = () => Promise<unknown>;

/** @param given {@link GivenOptions}, or the options that a test has put in their place */
export async function givenOptions(given: unknown): Promise<ServiceModuleOptions> {
  const options = typeof given === 'function' ? await (given as GivenOptions)() : given;
  if (typeof options === 'object' && options !== null) return options;
  throw factoryError(
    'the options factory returned no object; return {} to take everything from the environment.',
  );
}

/**
 * The provider of the options, by another token, with {@link GivenOptions} as its value. A factory is called after every
 * ConfigModule has loaded. It can inject the ConfigService of any of them, also of one that Nest would not let this
 * module inject.
 */
export function hideOptions(provider: Provider, token: unknown, provide: string): Provider {
  if (typeof provider !== 'object' || provider.provide !== token) return provider;
  if ('useValue' in provider) {
    const { useValue } = provider as ValueProvider<unknown>;
    return { provide, useValue: () => Promise.resolve(useValue) };
  }
  const { useFactory, inject = [] } = provider as FactoryProvider<unknown>;
  const dependencies = inject.map((asked) =>
    typeof asked === 'object' && 'optional' in asked ? asked : { token: asked, optional: false },
  );
  return {
    provide,
    inject: [
      HOST_CONFIG,
      ...dependencies.map(({ token }, index) =>
        token === ConfigService ? { token, optional: true } : inject[index],
      ),
    ],
    useFactory:
      ({ service }: HostConfig, ...injected: unknown[]): GivenOptions =>
      async () => {
        const args = dependencies.map(({ token, optional }, index) => {
          if (token !== ConfigService) return injected[index];
          const config = service ?? injected[index];
          if (config ?? optional) return config;
          throw factoryError(
            'injects ConfigService, but the application does not import ConfigModule (import ConfigModule.forRoot()).',
          );
        });
        return inStartTime(
          Promise.resolve<unknown>(useFactory(...args)),
          'forRootAsync',
          'the options factory has not finished',
          'Check what it waits for, for example a vault that does not answer.',
        );
      },
  };
}

/**
 * Replaces the value of a host's provider by a factory. Nest may serialise the definitions of modules to compare them,
 * and a value may have sockets, circular references or megabytes.
 */
export function hideValue(provider: Provider): Provider {
  if (typeof provider !== 'object' || !('useValue' in provider)) return provider;
  const { useValue, ...rest } = provider as ValueProvider<unknown>;
  return { ...rest, useFactory: () => useValue };
}

function factoryError(message: string): ServiceConfigurationError {
  return ServiceConfigurationError.of('forRootAsync', message);
}
