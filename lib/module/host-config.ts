import { Inject, Optional, type FactoryProvider, type Provider, type ValueProvider } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { systemClock, within } from '../time/time.js';
import { cleanText, ServiceConfigurationError } from '../errors/index.js';
import { ignoreErrors } from '../telemetry/telemetry.js';
import { type ServiceModuleOptions } from '../config/options.js';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { parseEnv } from 'node:util';
import { variablesOf } from '../config/variables.js';

/** The application's configuration: reads variables and namespaces by name. */
export interface HostConfig {
  /**
   * The application's ConfigService, even if its ConfigModule is neither global nor imported by ours. Absent if the
   * application imports no ConfigModule: then only variables of the process are read.
   */
  configService?: ConfigService;
  get: (key: string) => unknown;
  /** The names of the errors that `ConfigService.get()` threw, by variable. */
  thrown?: ReadonlyMap<string, string>;
}

export const HOST_CONFIG = Symbol('nestjs-service:host-config');

/**
 * Created inside a ConfigModule. Its dependencies make Nest create it only after that ConfigModule has loaded
 * everything.
 */
class LoadedConfig {
  constructor(
    @Inject(ConfigService) readonly config: ConfigService,
    // These two providers of @nestjs/config store the loaded values where ConfigService reads them.
    @Optional() @Inject('CONFIGURATION_LOADER') _loaded: unknown,
    @Optional() @Inject('VALIDATED_ENV_LOADER') _validated: unknown,
  ) {}
}

/**
 * Waits until every ConfigModule of the application has loaded. They are looked up in Nest's container, because Nest would
 * inject only a ConfigModule that is global or imported by ours. All ConfigModules share one store.
 *
 * @param injected used if it is the application's, because it may be a subclass. A test's mock of it is not read.
 * @throws ServiceConfigurationError if a ConfigModule does not load in time; any error of a `load` function
 */
export async function readHostConfig(
  modules: ModulesContainer,
  injected?: ConfigService,
): Promise<HostConfig> {
  const loads = [...modules.values()]
    .filter(({ metatype }) => metatype === ConfigModule)
    .map(({ providers }) => (providers.get(ModuleRef)?.instance as ModuleRef).create(LoadedConfig));
  const loaded = await withStartTimeout(
    Promise.all(loads),
    'ConfigModule',
    'has not finished loading',
    'Check its load functions: one of them does not settle, or waits for something that needs ServiceModule.',
  );
  const own = injected && isOfApplication(modules, injected) ? injected : undefined;
  const configService = [own, loaded[0]?.config].find((each) => each && canRead(each));
  return { configService, ...readOnce(configService) };
}

/**
 * Reads each name once. A ConfigService of the application may throw for names that it does not know, as mocks in tests do. The
 * variable of the process is then used.
 */
function readOnce(configService: ConfigService | undefined): Pick<HostConfig, 'get' | 'thrown'> {
  const found = new Map<string, unknown>();
  const thrown = new Map<string, string>();
  const read = (key: string): unknown => {
    try {
      if (configService) return configService.get<unknown>(key);
    } catch (error) {
      thrown.set(key, cleanText(String((Object(error) as Partial<Error>).name), [], 64));
    }
    return process.env[key];
  };
  const get = (key: string): unknown => {
    if (!found.has(key)) found.set(key, read(key));
    return found.get(key);
  };
  return { get, thrown };
}

/**
 * Whether a ConfigService is the application's, and not a mock of `useMocker()`. Nest also mocks an optional
 * ConfigService that our module could not inject, and provides its mocks in InternalCoreModule.
 */
function isOfApplication(modules: ModulesContainer, injected: ConfigService): boolean {
  return [...modules.values()].some(
    ({ metatype, providers }) =>
      metatype.name !== 'InternalCoreModule' && providers.get(ConfigService)?.instance === injected,
  );
}

/** False for a test's mock of ConfigService that has no `get`, or that returns a value for every name. */
function canRead(service: ConfigService): boolean {
  const value = ignoreErrors(() => service.get<unknown>('SERVICE_'));
  return typeof service.get === 'function' && (value ?? undefined) === undefined;
}

/** Seconds that the start waits for functions of the application, which may read a slow vault. */
const START_TIMEOUT_S = 60;

/**
 * Waits for the result of a function of the application, at most 60 s. The timer also keeps the process running: if the
 * function waits for something that keeps no handle open, Node would end the process during the start, without a message.
 *
 * @throws ServiceConfigurationError after 60 s, with a message of what has not finished (`undone`) and what to check
 */
async function withStartTimeout<T>(
  work: Promise<T>,
  option: string,
  undone: string,
  remedy: string,
): Promise<T> {
  const message = `${undone} within ${START_TIMEOUT_S} s. ${remedy}`;
  const expired = () => ServiceConfigurationError.of(option, message);
  return within({ clock: systemClock, timeoutMs: START_TIMEOUT_S * 1000, expired }, () => work);
}

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
      ({ configService }: HostConfig, ...injected: unknown[]): GivenOptions =>
      async () => {
        const args = dependencies.map(({ token, optional }, index) => {
          if (token !== ConfigService) return injected[index];
          const config = configService ?? injected[index];
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

/**
 * Explains why variables are missing, for the error at start-up. Undefined if neither .env nor ConfigModule is the cause.
 * @param noVariable true if no variable of this module is set
 */
export async function explainEnvFile(
  name: string | undefined,
  { configService, get }: HostConfig,
  noVariable: boolean,
): Promise<string | undefined> {
  const text = await readFile('.env', 'utf8').catch(() => undefined);
  const assigned = Object.entries(parseEnvFile(text ?? ''));
  const inFile = assigned.flatMap(([variable, value]) => (value ? variable : []));
  const ours = variablesOf(name);
  const oursInFile = inFile.filter((variable) => ours.includes(variable));
  if (configService === undefined) {
    // If the process has the variables of .env, the application reads the file by itself, without ConfigModule.
    const expected = oursInFile.length > 0 ? oursInFile : inFile;
    const isRead = expected.length > 0 && expected.every((variable) => process.env[variable] !== undefined);
    return isRead
      ? undefined
      : 'The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())';
  }
  const isHidden = (variable: string): boolean => get(variable) === undefined;
  // ConfigService falls back to the variables of the process, unless its option skipProcessEnv is set.
  const skipped = ours.filter((variable) => process.env[variable] && isHidden(variable));
  if (skipped.length > 0) return `${firstAndCount(skipped)} is set, and ${SKIPPED}`;
  const hidden = oursInFile.filter(isHidden);
  if (hidden.length > 0) return `.env has ${firstAndCount(hidden)}, and ${FILTERED}`;
  if (!noVariable) return undefined;
  return text === undefined ? NO_FILE : NO_VALUE;
}

const SKIPPED =
  'ConfigModule does not give it: its option skipProcessEnv hides all variables of the process, including those that it has ' +
  'read from .env. Remove this option, or add serviceConfig to `load` of ConfigModule';
const FILTERED =
  'ConfigModule does not give it. Check its options: the schema or the function `validate` may return only the variables that it ' +
  'knows (z.object, stripUnknown of Joi), envFilePath may name another file, or ignoreEnvFile may be set. Add the variables to the ' +
  'schema, let the schema pass unknown variables (z.looseObject), or let ConfigModule read .env';
const NO_FILE =
  'Check that .env, or the file that envFilePath names, is in the working directory, where ConfigModule.forRoot() reads it';
const NO_VALUE =
  '.env in the working directory has no value for any of them: fill it in, or check the file that envFilePath names';

function firstAndCount([first, ...others]: string[]): string {
  return others.length === 0 ? first : `${first} (and ${others.length} more)`;
}

/**
 * Parses a .env file with the dotenv of @nestjs/config, as ConfigModule does. Node's parser differs for colons, byte
 * order marks and missing closing quotes. It is used only if dotenv is not found, for example in an application that is
 * bundled into one file.
 */
export function parseEnvFile(text: string): Record<string, string> {
  let parse = parseEnv as (text: string) => Record<string, string>;
  try {
    const config = createRequire(import.meta.url).resolve('@nestjs/config');
    ({ parse } = createRequire(config)('dotenv') as { parse: typeof parse });
  } catch {
    // Keep Node's parser.
  }
  return parse(text);
}
