import { OPTIONS, type ServiceModuleOptions, valueOf } from '../config/options.js';
import { moduleLabel, namespaceName, variablePrefix } from '../config/module-name.js';
import { createConfiguredClient, type StartableClient, systemIo } from '../engine/create-client.js';
import { readConfiguration } from '../engine/read-configuration.js';
import { SafeLogger } from '../telemetry/log.js';
import { GUIDES } from '../version.js';
import { type HostConfig } from './host-config.js';
import { explainEnvFile } from './env-file.js';

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
