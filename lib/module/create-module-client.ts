import { OPTIONS, type ServiceModuleOptions, valueOf } from '../config/options.js';
import { moduleLabel, namespaceName, variablePrefix } from '../config/module-name.js';
import { type StartableClient, systemIo } from '../engine/create-client.js';
import { createConfiguredClient } from '../engine/create-client.js';
import { readConfiguration } from '../engine/read-configuration.js';
import { SafeLogger } from '../telemetry/log.js';
import { GUIDES } from '../version.js';
import { type HostConfig } from './host-config.js';
import { explainEnvFile } from './env-file.js';

/**
 * Makes a module's client of the host's options, the `service` namespace (`service-<name>` for a named module) and the
 * variables, key by key and in this order.
 * @throws as {@link createConfiguredClient}
 */
export async function createModuleClient(
  given: ServiceModuleOptions,
  name: string | undefined,
  config: HostConfig,
): Promise<StartableClient> {
  const log = new SafeLogger(moduleLabel(name));
  const namespace = namespaceOf(config.get(namespaceName(name)));
  const read = await readConfiguration({ name, given, namespace, readVariable: config.get }, log);
  const lacks = read.faults.some(({ isMissing }) => isMissing);
  const noVariable = lacks && !read.hasVariable && namespace === undefined;
  const heading = [
    noVariable
      ? `${moduleLabel(name)} found no ${variablePrefix(name)}* variable; ${inTests(name)}`
      : `The configuration of ${moduleLabel(name)} is not usable`,
    namespace &&
      `It reads the namespace '${namespaceName(name)}' (registerAs) too; if yours has another purpose, give it another name`,
    lacks && (await explainEnvFile(name, config, noVariable)),
    noVariable &&
      `${GUIDES}/getting-started.md#the-five-modes shows what to set, and npx nestjs-service doctor${name === undefined ? '' : ` --name ${name}`} checks it`,
  ];
  return createConfiguredClient(read, systemIo(log), heading.filter(Boolean).join('. '));
}

/** Ignores a host's namespace or variable of this name for another purpose: it has none of our options. */
function namespaceOf(found: unknown): object | undefined {
  const isOurs = OPTIONS.some(({ option }) => valueOf(found, option.split('.')[0]) !== undefined);
  return isOurs ? (found as object) : undefined;
}

function inTests(name: string | undefined): string {
  const token = `getServiceOptionsToken(${name === undefined ? '' : `'${name}'`})`;
  return `a test needs none with stubService(builder), or with overrideProvider(${token}).useValue(options): ${GUIDES}/testing.md#overrideprovider`;
}
