import { OPTIONS, type ServiceModuleOptions, valueOf } from '../config/options.js';
import { moduleLabel, namespaceName, variablePrefix } from '../config/names.js';
import { createConfiguredClient, type StartableClient, systemIo } from '../engine/create-client.js';
import { readConfiguration } from '../engine/read-configuration.js';
import { SafeLogger } from '../telemetry/log.js';
import { GUIDES } from '../version.js';
import { type HostConfig, getGivenOptions, HOST_CONFIG, readHostConfig } from './host-config.js';
import { explainEnvFile } from './env-file.js';
import { type Provider } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { ServiceConfigurationError } from '../errors/index.js';
import { MODULE_NAME, OPTIONS_TOKEN, CLIENT, type ModuleName } from './definition.js';

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
      `${GUIDES}/getting-started.md#the-five-modes shows what to set, and npx nestjs-service doctor${name === undefined ? '' : ` --name ${name}`} checks it`,
  ];
  return createConfiguredClient(read, systemIo(log), heading.filter(Boolean).join('. '));
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
      // Not onModuleInit(): if another module's onModuleInit() fails, Nest calls no hook that would close the client.
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
