import { type FactoryProvider, type Provider, type ValueProvider } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { type ServiceModuleOptions } from '../config/options.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { HOST_CONFIG, type HostConfig } from './host-config.js';

/** The host's options as they came, behind a private field: a provider that is printed shows no key. */
export class GivenOptions {
  readonly #options: ServiceModuleOptions;

  constructor(options: unknown) {
    if (typeof options !== 'object' || options === null || Array.isArray(options)) {
      const what = options === null ? 'null' : Array.isArray(options) ? 'an array' : typeof options;
      throw new ServiceConfigurationError([
        {
          option: 'forRootAsync',
          message: `the options factory returned ${what}; return an object, {} to take everything from the environment.`,
        },
      ]);
    }
    this.#options = options;
  }

  get value(): ServiceModuleOptions {
    return this.#options;
  }
}

/**
 * The provider of the options, with what it provides hidden in {@link GivenOptions}. A factory is called when
 * everything is loaded that it may ask a ConfigService for. It can inject ConfigService from a ConfigModule that is
 * imported beside ServiceModule too, which Nest alone would not allow.
 */
export function hideOptions(provider: Provider, optionsToken: unknown): Provider {
  if (typeof provider !== 'object' || provider.provide !== optionsToken) return provider;
  if ('useValue' in provider) {
    const { useValue } = provider as ValueProvider<unknown>;
    return { ...provider, useValue: new GivenOptions(useValue) };
  }
  const { useFactory, inject = [] } = provider as FactoryProvider<unknown>;
  return {
    ...provider,
    inject: [
      HOST_CONFIG,
      ...inject.map((token) => (token === ConfigService ? { token, optional: true } : token)),
    ],
    useFactory: async (config: HostConfig, ...args: unknown[]) => {
      const given = args.map((arg, index) =>
        inject[index] === ConfigService ? (arg ?? serviceOf(config)) : arg,
      );
      return new GivenOptions(await callFactory(() => useFactory(...given)));
    },
  };
}

function serviceOf({ service }: HostConfig): ConfigService {
  if (service) return service;
  const message =
    'injects ConfigService, and the application does not import ConfigModule (import ConfigModule.forRoot()).';
  throw new ServiceConfigurationError([{ option: 'forRootAsync', message }]);
}

/**
 * A provider of the host's, without its value in the module's definition: Nest may serialise that to compare modules,
 * and a value may hold sockets, cycles or megabytes.
 */
export function hideValue(provider: Provider): Provider {
  if (typeof provider !== 'object' || !('useValue' in provider)) return provider;
  const { useValue, ...rest } = provider as ValueProvider<unknown>;
  return { ...rest, useFactory: () => useValue };
}

/** What a factory throws is the host's own; only Nest's complaint about a missing method is put into words. */
async function callFactory(factory: () => unknown): Promise<unknown> {
  try {
    return await factory();
  } catch (error) {
    if (!(error instanceof TypeError && error.message.includes('factoryClassMethodKey'))) throw error;
    const message =
      'the class of useClass or useExisting has no createServiceOptions() (see ServiceOptionsFactory).';
    throw new ServiceConfigurationError([{ option: 'forRootAsync', message }]);
  }
}
