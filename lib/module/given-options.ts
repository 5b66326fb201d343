import {
  type FactoryProvider,
  type OptionalFactoryDependency,
  type Provider,
  type ValueProvider,
} from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { type ServiceModuleOptions } from '../config/options.js';
import { ServiceConfigurationError, type ConfigurationFault } from '../errors/index.js';
import { HOST_CONFIG, inStartTime, START_TIMEOUT_S, type HostConfig } from './host-config.js';

const FACTORY_TOO_LATE: ConfigurationFault = {
  option: 'forRootAsync',
  message:
    `the options factory has not finished within ${START_TIMEOUT_S} s. It waits for something that does not come, ` +
    'for example a vault that does not answer.',
};

/** The host's options, in a private field: a provider that is printed shows no key. */
export class GivenOptions {
  readonly #options: ServiceModuleOptions;

  constructor(options: unknown) {
    if (typeof options !== 'object' || options === null || Array.isArray(options)) {
      const what = options === null ? 'null' : Array.isArray(options) ? 'an array' : typeof options;
      throw factoryError(
        `the options factory returned ${what}; return an object, {} to take everything from the environment.`,
      );
    }
    this.#options = options;
  }

  get value(): ServiceModuleOptions {
    return this.#options;
  }
}

/**
 * The provider of the options, with what it provides hidden in {@link GivenOptions}. A factory is called when all of
 * ConfigModule is loaded. It can also inject ConfigService from a ConfigModule that is imported beside ServiceModule,
 * which Nest alone would not allow.
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
      ...inject.map((asked) => (isConfigService(asked) ? { token: ConfigService, optional: true } : asked)),
    ],
    useFactory: async (config: HostConfig, ...args: unknown[]) => {
      const given = args.map((arg, index) =>
        isConfigService(inject[index]) ? (arg ?? serviceOf(config, inject[index])) : arg,
      );
      const result = callFactory(() => useFactory(...given));
      return new GivenOptions(await inStartTime(result, FACTORY_TOO_LATE));
    },
  };
}

type Injected = NonNullable<FactoryProvider['inject']>[number];

function isConfigService(asked: Injected | undefined): boolean {
  return asked === ConfigService || (isOptionalToken(asked) && asked.token === ConfigService);
}

function isOptionalToken(asked: Injected | undefined): asked is OptionalFactoryDependency {
  return typeof asked === 'object' && 'optional' in asked;
}

function serviceOf({ service }: HostConfig, asked: Injected | undefined): ConfigService | undefined {
  if (service || (isOptionalToken(asked) && asked.optional)) return service;
  throw factoryError(
    'injects ConfigService, but the application does not import ConfigModule (import ConfigModule.forRoot()).',
  );
}

/**
 * A provider of the host's, without its value in the module's definition: Nest may serialise that to compare modules,
 * and a value may hold sockets, circular references or megabytes.
 */
export function hideValue(provider: Provider): Provider {
  if (typeof provider !== 'object' || !('useValue' in provider)) return provider;
  const { useValue, ...rest } = provider as ValueProvider<unknown>;
  return { ...rest, useFactory: () => useValue };
}

/** An error that the host's factory throws is passed on; only Nest's error about a missing method gets plain words. */
async function callFactory(factory: () => unknown): Promise<unknown> {
  try {
    return await factory();
  } catch (error) {
    if (!(error instanceof TypeError && error.message.includes('factoryClassMethodKey'))) throw error;
    throw factoryError(
      'the class of useClass or useExisting has no createServiceOptions() (see ServiceOptionsFactory).',
    );
  }
}

function factoryError(message: string): ServiceConfigurationError {
  return new ServiceConfigurationError([{ option: 'forRootAsync', message }]);
}
