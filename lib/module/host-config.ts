import { Inject, Optional } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { ServiceConfigurationError } from '../errors/index.js';
import { privateToken } from '../service-token.js';

/** What the host has configured: variables by their name, namespaces by theirs. */
export interface HostConfig {
  /** False where the application imports no ConfigModule: then only the process's own variables are read. */
  imported: boolean;
  get(key: string): unknown;
  /** Also where it stands in a ConfigModule that our module cannot inject from. */
  service?: ConfigService;
}

/** The token of {@link HostConfig} among a module's own parts. */
export const HOST_CONFIG = privateToken('host-config');

/** Milliseconds for all `load` functions of the host: a vault may be slow, but must not hang the start in silence. */
const LOAD_TIMEOUT_MS = 60_000;

/** Injected inside a ConfigModule, all of this is there only when what that module loads is there. */
class LoadedConfig {
  constructor(
    @Inject(ConfigService) readonly config: ConfigService,
    // Providers of @nestjs/config that merge what was loaded into what ConfigService reads.
    @Optional() @Inject('CONFIGURATION_LOADER') _loaded: unknown,
    @Optional() @Inject('VALIDATED_ENV_LOADER') _validated: unknown,
  ) {}
}

/**
 * Waits for every ConfigModule of the application, wherever it is imported, and returns what they know together: all
 * of them read and fill one store. A ConfigModule that stands beside ours in a host's `imports` is not injectable
 * here; only the container knows it.
 *
 * @param injected the ConfigService that our module can inject; it comes first, as a host may have put its own there
 * @throws ServiceConfigurationError where a ConfigModule has not finished in time; what a `load` function throws
 */
export async function readHostConfig(
  modules: ModulesContainer,
  injected?: ConfigService,
  timeoutMs = LOAD_TIMEOUT_MS,
): Promise<HostConfig> {
  const loads = [...modules.values()]
    .filter(({ metatype }) => metatype === ConfigModule)
    .map(({ providers }) => (providers.get(ModuleRef)?.instance as ModuleRef).create(LoadedConfig));
  const loaded = await inTime(Promise.all(loads), timeoutMs);
  const config = injected ?? loaded[0]?.config;
  return {
    imported: config !== undefined,
    service: config,
    get: (key) => (config ? config.get<unknown>(key) : process.env[key]),
  };
}

/** Its timer holds the process: nothing else may, and a start that ends in the middle would say nothing. */
async function inTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(tooLate(timeoutMs)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function tooLate(timeoutMs: number): ServiceConfigurationError {
  const message =
    `has not finished loading within ${timeoutMs / 1000} s. One of its load functions does not come to an end, ` +
    'or waits for something that needs ServiceModule.';
  return new ServiceConfigurationError([{ option: 'ConfigModule', message }]);
}
