import { Inject, Optional } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { systemClock } from '../time/clock.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { within } from '../time/timers.js';

/** The host's configuration: variables and namespaces by their names. */
export interface HostConfig {
  /**
   * The host's ConfigService, even if Nest would not let our module inject it. Absent if the application imports no
   * ConfigModule: only the variables of the process are read then.
   */
  service?: ConfigService;
  get: (key: string) => unknown;
}

export const HOST_CONFIG = Symbol('nestjs-service:host-config');

/** Created inside a ConfigModule. Nest creates it after this ConfigModule has loaded everything. */
class LoadedConfig {
  constructor(
    @Inject(ConfigService) readonly config: ConfigService,
    // These providers of @nestjs/config put the loaded values where ConfigService reads them.
    @Optional() @Inject('CONFIGURATION_LOADER') _loaded: unknown,
    @Optional() @Inject('VALIDATED_ENV_LOADER') _validated: unknown,
  ) {}
}

/**
 * Waits for every ConfigModule of the application. They are found in Nest's container, because Nest injects only a
 * ConfigModule that is global or imported by this module. They all write to one store and read from it.
 *
 * @param injected preferred, because it may be a class of the host. A mock that a test puts in its place is not read.
 * @throws ServiceConfigurationError if a ConfigModule has not finished in time; any error of a `load` function
 */
export async function readHostConfig(
  modules: ModulesContainer,
  injected?: ConfigService,
): Promise<HostConfig> {
  const loads = [...modules.values()]
    .filter(({ metatype }) => metatype === ConfigModule)
    .map(({ providers }) => (providers.get(ModuleRef)?.instance as ModuleRef).create(LoadedConfig));
  const loaded = await inStartTime(
    Promise.all(loads),
    'ConfigModule',
    'has not finished loading',
    'One of its load functions does not end, or waits for something that needs ServiceModule.',
  );
  const own = injected && isOfApplication(modules, injected) ? injected : undefined;
  const service = [own, loaded[0]?.config].find((each) => each && canRead(each));
  return { service, get: (key) => (service ? service.get<unknown>(key) : process.env[key]) };
}

/**
 * False for a mock of `useMocker()`: Nest also mocks an optional ConfigService that our module may not inject, and
 * provides its mocks in a core module of its own.
 */
function isOfApplication(modules: ModulesContainer, injected: ConfigService): boolean {
  return [...modules.values()].some(
    ({ metatype, providers }) =>
      metatype.name !== 'InternalCoreModule' && providers.get(ConfigService)?.instance === injected,
  );
}

/** False for a mock that a test gave to `overrideProvider(ConfigService)`, if it has no `get` or a value for every name. */
function canRead(service: ConfigService): boolean {
  return typeof service.get === 'function' && (service.get<unknown>('SERVICE_') ?? undefined) === undefined;
}

/** Seconds that a start waits for functions of the host, which may ask a slow vault. */
const START_TIMEOUT_S = 60;

/**
 * Waits for the result of a host's function, and keeps the process running. Otherwise Node could end the process in the
 * middle of the start without a message.
 *
 * @throws ServiceConfigurationError after 60 s, with what is not done and what to check
 */
export async function inStartTime<T>(
  work: Promise<T>,
  option: string,
  undone: string,
  remedy: string,
): Promise<T> {
  const message = `${undone} within ${START_TIMEOUT_S} s. ${remedy}`;
  const expired = () => ServiceConfigurationError.of(option, message);
  return within({ clock: systemClock, timeoutMs: START_TIMEOUT_S * 1000, expired }, () => work);
}
