import { type ResolvedOptions } from '../config/resolved-options.js';
import { moduleLabel, nameFault, variablePrefix } from '../config/variables.js';
import {
  describeFault,
  ServiceCertificateError,
  ServiceConfigurationError,
  type ConfigurationFault,
} from '../errors/index.js';
import { type Log } from '../telemetry/log.js';
import { type ClientIdentity } from '../tls/index.js';
import { type GivenOptions } from './given-options.js';
import { type HostConfig } from './host-config.js';
import { type ModuleName } from './module-names.js';
import { readConfiguration } from './read-configuration.js';

/** Options and client identity of a module, both checked. */
export interface LoadedConfiguration {
  options: ResolvedOptions;
  identity: ClientIdentity;
}

/**
 * Merges the host's options, the `service` namespace and the variables, key by key and in this order. Then checks
 * everything.
 *
 * @throws ServiceConfigurationError with all faults of options, files and certificates
 */
export async function loadConfiguration(
  given: GivenOptions,
  { name }: ModuleName,
  config: HostConfig,
  log: Log,
): Promise<LoadedConfiguration> {
  const refused = name === undefined ? undefined : nameFault(name);
  if (refused) throw new ServiceConfigurationError([{ option: 'name', message: refused }]);
  const sources = {
    name,
    given: given.value,
    namespace: namespaceOf(name, config),
    readVariable: (variable: string) => config.get(variable),
    variablesSet: Object.keys(process.env).filter((variable) => process.env[variable]),
  };
  const read = await readConfiguration(sources, (level, message) => log[level](message));
  const { merged, options, identity, faults, certificateFaults, warnings, misspelt } = read;
  for (const [variable, meant] of misspelt) {
    log.warn(`${variable} is set but not used. If you mean ${meant}, correct its name.`);
  }
  for (const warning of warnings) log.warn(describeFault(warning));
  if (faults.length + certificateFaults.length === 0 && options && identity) {
    if (options.addresses.deprecated) {
      log.log(
        `Calls go to ${options.describeOption('urls.oauthBaseUrl')}, which will be deprecated; urls.baseUrl will replace it.`,
      );
    }
    return { options, identity };
  }
  await identity?.close();
  if (faults.length === 0) {
    throw new ServiceCertificateError(certificateFaults, { certificate: read.certificate });
  }
  const nothingSet = Object.keys(merged).length === 0 && misspelt.size === 0;
  throw new ServiceConfigurationError(
    [...faults, ...certificateFaults],
    heading(name, { nothingSet, noConfigModule: !config.imported && faults.some(isMissing) }),
  );
}

const NO_VARIABLES_HINT =
  ".env.example of the package shows what to set, npx nestjs-service doctor checks it, and tests need none of it with stubService (the package's docs/testing.md)";

/** Anything but an object is not our namespace: `get` may also find a variable that is called `service`. */
function namespaceOf(name: string | undefined, config: HostConfig): object | undefined {
  const found = name === undefined ? config.get('service') : undefined;
  return typeof found === 'object' && found !== null ? found : undefined;
}

/** The first line of the error. Names the usual causes where many options are missing. */
function heading(
  name: string | undefined,
  { nothingSet, noConfigModule }: { nothingSet: boolean; noConfigModule: boolean },
): string {
  const problem = nothingSet
    ? `${moduleLabel(name)} found no ${variablePrefix(name)}* variable`
    : `The configuration of ${moduleLabel(name)} is not usable`;
  const cause = noConfigModule
    ? 'The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())'
    : nothingSet && 'Check that .env is in the working directory, where ConfigModule.forRoot() reads it';
  return [problem, cause, nothingSet && NO_VARIABLES_HINT].filter(Boolean).join('. ');
}

function isMissing({ message }: ConfigurationFault): boolean {
  return message.startsWith('is missing');
}
