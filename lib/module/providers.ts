import { ConfigurableModuleBuilder, type Provider, type Type } from '@nestjs/common';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { valueOf } from '../config/option.js';
import { type ServiceModuleOptions, OPTIONS } from '../config/options.js';
import {
  type StartableClient,
  RESOURCE_CLASSES,
  createConfiguredClient,
  systemIo,
} from '../engine/create-client.js';
import { ServiceHealthCheck } from '../engine/health.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { getServiceOptionsToken, getServiceToken } from '../service-token.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';
import {
  hideOptions,
  hideValue,
  type HostConfig,
  getGivenOptions,
  HOST_CONFIG,
  readHostConfig,
  explainEnvFile,
} from './host-config.js';
import { moduleLabel, namespaceName, variablePrefix } from '../config/names.js';
import { readConfiguration } from '../engine/read-configuration.js';
import { SafeLogger } from '../telemetry/telemetry.js';
import { GUIDES } from '../version.js';
import { ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { ServiceConfigurationError } from '../errors/index.js';

/** Options of the Nest module itself. */
export interface ServiceModuleExtras {
  /** Makes the services injectable in every module without an import. Default false. */
  isGlobal?: boolean | undefined;
  /**
   * Distinguishes several ServiceModules in one application. The module named `ksa` reads SERVICE_KSA_* instead of
   * SERVICE_*, and you inject its services with `@InjectService(BanksService, 'ksa')`.
   */
  name?: string | undefined;
  /** Providers that the options factory can inject. */
  extraProviders?: Provider[] | undefined;
}

/** The value of the provider {@link MODULE_NAME}. */
export interface ModuleName {
  name?: string;
}

export const MODULE_NAME = Symbol('nestjs-service:name');

/** The token under which Nest provides the options. For us it is only an alias of {@link getServiceOptionsToken}. */
const OPTIONS_TOKEN = Symbol('nestjs-service:options');

/** The injection token of a module's client. */
export const CLIENT = Symbol('nestjs-service:service');

/** The classes that an application can inject, with their keys in the client. */
const INJECTABLE = new Map<Type, keyof StartableClient>([
  [ServiceAuthService as Type, 'auth'],
  [ServiceHttpService as Type, 'http'],
  [LinkSdkService as Type, 'sdk'],
  [WebhooksService as Type, 'webhooks'],
  [ServiceHealthCheck, 'healthCheck'],
  ...Object.entries(RESOURCE_CLASSES).map(([name, type]) => [type, name] as [Type, keyof StartableClient]),
]);

const builder = new ConfigurableModuleBuilder<ServiceModuleOptions>({
  moduleName: 'Service',
  optionsInjectionToken: OPTIONS_TOKEN,
  // Each forRoot() makes a separate module. Otherwise Nest's 'deep-hash' algorithm would take two modules for the same one,
  // because hideOptions() hides from it the options in which they differ.
  alwaysTransient: true,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createServiceOptions')
  .setExtras<ServiceModuleExtras>(
    { isGlobal: false, name: undefined, extraProviders: [] },
    (definition, extras) => ({
      ...definition,
      global: extras.isGlobal,
      providers: [
        ...(definition.providers ?? []).map((provider) =>
          hideOptions(provider, OPTIONS_TOKEN, getServiceOptionsToken(extras.name)),
        ),
        { provide: OPTIONS_TOKEN, useExisting: getServiceOptionsToken(extras.name) },
        ...(extras.extraProviders ?? []).map(hideValue),
        { provide: MODULE_NAME, useValue: { name: extras.name } satisfies ModuleName },
        ...[...INJECTABLE].map(([type, key]) => ({
          provide: getServiceToken(type, extras.name),
          inject: [CLIENT],
          useFactory: (client: StartableClient) => client[key],
        })),
      ],
      // A named module exports only named tokens, so that no two modules export the same class.
      exports: [...INJECTABLE.keys()].map((type) => getServiceToken(type, extras.name)),
    }),
  );

export const { ConfigurableModuleClass, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } = builder.build();

/**
 * Creates the client of a ServiceModule. Each option comes from the first of these that sets it: the options in code, the
 * namespace `service` (`service-<name>` for a named module), the environment variables.
 * @throws as {@link createConfiguredClient}
 */
export async function createModuleClient(
  given: ServiceModuleOptions,
  name: string | undefined,
  config: HostConfig,
): Promise<StartableClient> {
  const log = new SafeLogger(moduleLabel(name));
  const namespace = ownNamespace(config.get(namespaceName(name)));
  const read = await readConfiguration({ name, given, namespace, readVariable: config.get }, log);
  const lacks = read.faults.some(({ isMissing }) => isMissing);
  const noVariable = lacks && !read.isAnyVariableSet && namespace === undefined;
  const heading = [
    noVariable
      ? `${moduleLabel(name)} found no ${variablePrefix(name)}* variable. ${explainTests(name)}`
      : `The configuration of ${moduleLabel(name)} is not usable`,
    namespace &&
      `It also reads the namespace '${namespaceName(name)}' (registerAs). If yours is meant for something else, rename it`,
    lacks && (await explainEnvFile(name, config, noVariable)),
    noVariable &&
      `${GUIDES}/modes.md#the-five-modes shows what to set, and npx nestjs-service doctor${name === undefined ? '' : ` --name ${name}`} checks it`,
  ];
  const faults = read.faults.map((fault) => {
    const error = fault.isMissing && config.thrown?.get(fault.variable ?? '');
    return error
      ? { ...fault, message: `${fault.message} ConfigService.get() threw an error (${error}).` }
      : fault;
  });
  return createConfiguredClient({ ...read, faults }, systemIo(log), heading.filter(Boolean).join('. '));
}

/**
 * Ignores a namespace or a variable of this name that has none of our options: the application uses it for something
 * else.
 */
function ownNamespace(found: unknown): object | undefined {
  const isOurs = OPTIONS.some(({ option }) => valueOf(found, option.split('.')[0]) !== undefined);
  return isOurs ? (found as object) : undefined;
}

function explainTests(name: string | undefined): string {
  const token = `getServiceOptionsToken(${name === undefined ? '' : `'${name}'`})`;
  return `In a test, use stubService(builder), or overrideProvider(${token}).useValue(options), which need no variable: ${GUIDES}/testing.md#overrideprovider`;
}

/**
 * The client of a ServiceModule, and the lifecycle hooks that start and close it. Their tokens are private: an application
 * injects the services by the tokens in definition.ts, so it cannot get the client of another module by accident.
 */
export const serviceProviders: Provider[] = [
  {
    provide: HOST_CONFIG,
    inject: [ModulesContainer, { token: ConfigService, optional: true }],
    useFactory: readHostConfig,
  },
  {
    provide: CLIENT,
    inject: [OPTIONS_TOKEN, MODULE_NAME, HOST_CONFIG],
    useFactory: async (given: unknown, { name }: ModuleName, config: HostConfig) =>
      createModuleClient(await getGivenOptions(given), name, config),
  },
  {
    provide: Symbol('nestjs-service:hooks'),
    inject: [CLIENT],
    // The lifecycle hooks with which Nest starts and closes the client.
    useFactory: (client: StartableClient) => ({
      onModuleInit: () => client.expectStart(),
      // Not in onModuleInit(): if another module's onModuleInit() fails, Nest calls no hook that would close the client.
      onApplicationBootstrap: () => client.start(),
      beforeApplicationShutdown: () => client.beginShutdown(),
      onApplicationShutdown: () => client.close(),
    }),
  },
];

/**
 * Fails the start with `imports: [ServiceModule]`, which Nest's own message about a missing provider suggests. These
 * providers belong to the class. forRoot() and forRootAsync() add theirs later, and Nest uses the last provider of a
 * token.
 */
export const bareImportProviders: Provider[] = [MODULE_NAME, OPTIONS_TOKEN].map((provide) => ({
  provide,
  useFactory: () => {
    const message =
      'contains the class ServiceModule itself, which has no options. Import ServiceModule.forRoot() once: either with ' +
      '{ isGlobal: true }, so that other modules import nothing, or in one module that exports ServiceModule and that the others import.';
    throw ServiceConfigurationError.of('imports', message);
  },
}));
