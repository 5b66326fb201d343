import { Inject, Optional } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { keepProcessRunning, systemClock } from '../config/clock.js';
import { ServiceConfigurationError, type ConfigurationFault } from '../errors/index.js';
import { within } from '../exchange/timing.js';
import { privateToken } from '../service-token.js';

/** What the host has configured: variables by their name, namespaces by theirs. */
export interface HostConfig {
  /** False where the application imports no ConfigModule: then only the variables of the process are read. */
  imported: boolean;
  get(key: string): unknown;
  /** Also that of a ConfigModule that our module cannot inject from. */
  service?: ConfigService;
}

/** The token of {@link HostConfig} among the module's own providers. */
export const HOST_CONFIG = privateToken('host-config');

/** Seconds that a start waits for functions of the host: a vault may be slow, but no start may wait for ever. */
export const START_TIMEOUT_S = 60;

const LOADS_TOO_LATE: ConfigurationFault = {
  option: 'ConfigModule',
  message:
    `has not finished loading within ${START_TIMEOUT_S} s. One of its load functions does not come to an end, or ` +
    'waits for something that needs ServiceModule.',
};

/** Created inside a ConfigModule. Nest creates it when all that this ConfigModule loads is there. */
class LoadedConfig {
  constructor(
    @Inject(ConfigService) readonly config: ConfigService,
    // Providers of @nestjs/config that merge what was loaded into what ConfigService reads.
    @Optional() @Inject('CONFIGURATION_LOADER') _loaded: unknown,
    @Optional() @Inject('VALIDATED_ENV_LOADER') _validated: unknown,
  ) {}
}

/**
 * Waits for every ConfigModule of the application, wherever it is imported. All of them fill and read one store. A
 * ConfigModule that is imported beside ServiceModule cannot be injected here; only the container knows it.
 *
 * @param injected the ConfigService that our module can inject; it comes first, as it may be the host's own
 * @throws ServiceConfigurationError where a ConfigModule has not finished in time; what a `load` function throws
 */
export async function readHostConfig(
  modules: ModulesContainer,
  injected?: ConfigService,
): Promise<HostConfig> {
  const loads = [...modules.values()]
    .filter(({ metatype }) => metatype === ConfigModule)
    .map(({ providers }) => (providers.get(ModuleRef)?.instance as ModuleRef).create(LoadedConfig));
  const loaded = await inStartTime(Promise.all(loads), LOADS_TOO_LATE);
  const config = injected ?? loaded[0]?.config;
  return {
    imported: config !== undefined,
    service: config,
    get: (key) => (config ? config.get<unknown>(key) : process.env[key]),
  };
}

/**
 * Waits for what a function of the host returns, and keeps the process running: without that, Node ends a process in
 * which nothing else is going on, in the middle of the start and without a message.
 *
 * @throws ServiceConfigurationError with `tooLate`, after 60 s
 */
export async function inStartTime<T>(work: Promise<T>, tooLate: ConfigurationFault): Promise<T> {
  const expired = () => new ServiceConfigurationError([tooLate]);
  const limit = { clock: systemClock, timeoutMs: START_TIMEOUT_S * 1000, expired };
  return within(limit, () => work).finally(keepProcessRunning());
}
