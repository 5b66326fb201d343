import { type FactoryProvider, type Provider, type ValueProvider } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { type ServiceModuleOptions } from '../config/options.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { HOST_CONFIG, withStartTimeout, type HostConfig } from './host-config.js';

/**
 * Returns the application's options, from forRoot() or from the factory of forRootAsync(). A function, so that printing the
 * provider shows no secret.
 */
export type GivenOptions = () => Promise<unknown>;

/**
 * Gets the application's options.
 * @param given {@link GivenOptions}, or the options with which a test has overridden the provider
 */
export async function getGivenOptions(given: unknown): Promise<ServiceModuleOptions> {
  const options = typeof given === 'function' ? await (given as GivenOptions)() : given;
  if (typeof options === 'object' && options !== null) return options;
  throw factoryError(
    'the options factory returned no object. To read every option from its variable, return {}.',
  );
}

/**
 * Replaces Nest's provider of the options by one with another token, whose value is {@link GivenOptions}.
 *
 * A factory is called after every ConfigModule has loaded. It can inject the ConfigService of any ConfigModule, even if
 * that module is neither global nor imported by ours.
 */
export function hideOptions(provider: Provider, token: unknown, provide: string): Provider {
  if (typeof provider !== 'object' || provider.provide !== token) return provider;
  if ('useValue' in provider) {
    const { useValue } = provider as ValueProvider<unknown>;
    return { provide, useValue: () => Promise.resolve(useValue) };
  }
  const { useFactory, inject = [] } = provider as FactoryProvider<unknown>;
  const dependencies = inject.map((dependency) =>
    typeof dependency === 'object' && 'optional' in dependency
      ? dependency
      : { token: dependency, optional: false },
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
        return withStartTimeout(
          Promise.resolve<unknown>(useFactory(...args)),
          'forRootAsync',
          'the options factory has not finished',
          'Check what it waits for, for example a vault that does not answer.',
        );
      },
  };
}

/**
 * Replaces a value in a provider of the application by a factory. Nest may serialise module definitions to compare
 * them, and a value may contain sockets, circular references or megabytes.
 */
export function hideValue(provider: Provider): Provider {
  if (typeof provider !== 'object' || !('useValue' in provider)) return provider;
  const { useValue, ...rest } = provider as ValueProvider<unknown>;
  return { ...rest, useFactory: () => useValue };
}

function factoryError(message: string): ServiceConfigurationError {
  return ServiceConfigurationError.of('forRootAsync', message);
}
