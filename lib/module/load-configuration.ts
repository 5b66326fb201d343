import { OPTIONS, type ServiceModuleOptions, valueOf } from '../config/options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { moduleLabel, namespaceName, variablePrefix } from '../config/module-name.js';
import { describeFault, ServiceCertificateError, ServiceConfigurationError } from '../errors/index.js';
import { createService, type Service, systemIo, type World } from '../engine/create-service.js';
import { type ServiceIo, warnOnce } from '../exchange/io.js';
import { SafeLogger } from '../telemetry/log.js';
import { GUIDES } from '../version.js';
import { type ClientIdentity } from '../tls/client-identity.js';
import { type HostConfig } from './host-config.js';
import { explainEnvFile } from './env-file.js';
import { readConfiguration } from './read-configuration.js';

/** Shared by the clients of one ServiceClients. */
export type Shared = Pick<World, 'warned' | 'refusedSecrets'>;

/** Makes a client. Without `config`, only the given options count, and no variable is read or named. */
export async function openService(
  given: ServiceModuleOptions,
  name: string | undefined,
  config?: HostConfig,
  shared?: Shared,
): Promise<Service> {
  const log = new SafeLogger(moduleLabel(name));
  const { options, identity } = await loadConfiguration(given, name, config, { log, ...shared });
  return createService(options, identity, { ...systemIo(log), ...shared });
}

/**
 * Merges the host's options, the `service` namespace (`service-<name>` for a named module) and the variables, key by key
 * and in this order. Then checks everything.
 *
 * @throws ServiceConfigurationError with all faults of options, files and certificates
 */
export async function loadConfiguration(
  given: ServiceModuleOptions,
  name: string | undefined,
  config: HostConfig | undefined,
  io: Pick<ServiceIo, 'log' | 'warned'>,
): Promise<{ options: ResolvedOptions; identity: ClientIdentity }> {
  const namespaceKey = namespaceName(name);
  const namespace = namespaceOf(config?.get(namespaceKey));
  const sources = {
    name,
    given,
    namespace,
    readVariable: config?.get,
    variablesSet: config ? Object.keys(process.env).filter((variable) => process.env[variable]) : [],
  };
  const { options, identity, warnings, misspelt, unused, ...read } = await readConfiguration(sources, io.log);
  for (const [variable, remedy] of unused) io.log.warn(`${variable} is set, and nothing reads it. ${remedy}`);
  for (const warning of warnings) warnOnce(io, describeFault(warning));
  if (read.faults.length + read.certificateFaults.length === 0 && options && identity) {
    if (options.addresses.baseOption === 'urls.oauthBaseUrl') {
      io.log.log(
        `Calls go to ${options.describeOption('urls.oauthBaseUrl')}, which will be deprecated; urls.baseUrl will replace it.`,
      );
    }
    return { options, identity };
  }
  const { faults, certificateFaults } = read;
  if (faults.length === 0) {
    throw new ServiceCertificateError(certificateFaults, { certificate: read.certificate });
  }
  const lacks = config !== undefined && faults.some(({ isMissing }) => isMissing);
  const noVariable = lacks && !read.variableSet && misspelt.size === 0 && namespace === undefined;
  const isInNamespace = faults.some(({ key, option }) => key && valueOf(namespace, option) !== undefined);
  const usedNamespace = isInNamespace && namespaceKey;
  const envFile = lacks ? await explainEnvFile(name, config, noVariable) : undefined;
  const heading = describeProblem(name, noVariable, usedNamespace, envFile);
  throw new ServiceConfigurationError([...faults, ...certificateFaults], heading);
}

const WHAT_TO_SET = `${GUIDES}/getting-started.md#the-five-modes shows what to set, and npx nestjs-service doctor checks it`;

/** Ignores a host's namespace or variable of this name for another purpose: it has none of our options. */
function namespaceOf(found: unknown): object | undefined {
  const isOurs = OPTIONS.some(({ option }) => valueOf(found, option.split('.')[0]) !== undefined);
  return isOurs ? (found as object) : undefined;
}

/** The first line of the error. Names the usual causes if many options are missing. */
function describeProblem(
  name: string | undefined,
  noVariable: boolean,
  namespace: string | false,
  envFile: string | undefined,
): string {
  const token = `getServiceOptionsToken(${name === undefined ? '' : `'${name}'`})`;
  const inTests = `a test needs none with stubService(builder), or with overrideProvider(${token}).useValue(options): ${GUIDES}/testing.md#overrideprovider`;
  const said = [
    noVariable
      ? `${moduleLabel(name)} found no ${variablePrefix(name)}* variable; ${inTests}`
      : `The configuration of ${moduleLabel(name)} is not usable`,
    namespace &&
      `It reads the namespace '${namespace}' (registerAs); if yours has another purpose, give it another name`,
    envFile,
    noVariable && WHAT_TO_SET,
  ];
  return said.filter(Boolean).join('. ');
}
