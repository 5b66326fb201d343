import { Logger } from '@nestjs/common';
import { systemClock } from '../config/clock.js';
import { mergeOptions } from '../config/merge-options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { resolveOptions, type Resolution } from '../config/resolve-options.js';
import {
  misspeltVariables,
  moduleLabel,
  nameFault,
  readVariables,
  variablePrefix,
} from '../config/variables.js';
import {
  ServiceCertificateError,
  ServiceConfigurationError,
  type ConfigurationFault,
} from '../errors/index.js';
import { type GivenOptions } from './given-options.js';
import { type HostConfig } from './host-config.js';
import { type ModuleName } from './module-names.js';
import { ClientIdentity } from '../tls/index.js';

/** What a module stands on: options and identity, both checked. */
export interface LoadedConfiguration {
  options: ResolvedOptions;
  identity: ClientIdentity;
}

/**
 * Explicit options, then the `service` namespace, then the variables, key by key; then everything is checked and every
 * fault of options, files and certificates thrown at once.
 */
export async function loadConfiguration(
  given: GivenOptions,
  { name }: ModuleName,
  config: HostConfig,
): Promise<LoadedConfiguration> {
  const refused = name === undefined ? undefined : nameFault(name);
  if (refused) throw new ServiceConfigurationError([{ option: 'name', message: refused }]);
  const variables = readVariables((variable) => config.get(variable), name);
  const loaded = name === undefined ? config.get('service') : undefined;
  const fallback = typeof loaded === 'object' && loaded !== null ? loaded : undefined;
  const merged = mergeOptions(given.value, fallback, variables.options);
  const resolution = await resolveOptions(merged, name);
  const logger = new Logger(moduleLabel(name));
  const set = Object.keys(process.env).filter((variable) => process.env[variable]);
  const misspelt = misspeltVariables(set, name);
  for (const [variable, meant] of misspelt) {
    logger.warn(`${variable} is set, and nothing reads it. If ${meant} is meant, correct its name.`);
  }
  for (const { option, variable, message } of resolution.warnings) {
    logger.warn(`${option}${variable ? ` (${variable})` : ''}: ${message}`);
  }
  const opened = await ClientIdentity.open({
    tls: resolution.tls,
    maxSockets: resolution.options?.http.maxSockets ?? 1,
    proxy: resolution.options?.http.proxy,
    offerToTokenEndpoint: resolution.options?.oauth?.mtls ?? false,
    clock: systemClock,
    log: (level, message) => logger[level](message),
  });
  // What is malformed as an option was reported as one.
  const reported = new Set(resolution.faults.map(({ option }) => option));
  const unusable = opened.faults.filter(({ option }) => !reported.has(option));
  const certificates = [...unusable, ...missingCertificate(resolution, opened.identity)];
  const ambiguous = new Set(variables.faults.map(({ option }) => option));
  const options = [...variables.faults, ...resolution.faults.filter(({ option }) => !ambiguous.has(option))];
  if (options.length + certificates.length > 0 || !resolution.options || !opened.identity) {
    await opened.identity?.close();
    if (options.length === 0) {
      throw new ServiceCertificateError(certificates, { certificate: opened.certificate });
    }
    const nothingSet = Object.keys(merged).length === 0 && misspelt.size === 0;
    throw new ServiceConfigurationError(
      [...options.map((fault) => withMisspelling(fault, misspelt)), ...certificates],
      heading(name, config.imported, nothingSet),
    );
  }
  if (resolution.options.addresses.deprecated) {
    logger.log(
      'Calls go to urls.oauthBaseUrl, which is to be deprecated (specification 9.2); baseUrl will take its place.',
    );
  }
  return { options: resolution.options, identity: opened.identity };
}

/** The usual causes behind a configuration of which much is missing. */
function heading(name: string | undefined, configImported: boolean, nothingSet: boolean): string {
  const found = nothingSet
    ? `${moduleLabel(name)} found no ${variablePrefix(name)}* variable of its own`
    : `The configuration of ${moduleLabel(name)} is not usable`;
  if (!configImported) {
    return `${found}; the application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())`;
  }
  return nothingSet
    ? `${found} (is the .env that ConfigModule.forRoot() reads in the working directory?)`
    : found;
}

/** Says of what is missing that it may be there under another name. */
function withMisspelling(
  fault: ConfigurationFault,
  misspelt: ReadonlyMap<string, string>,
): ConfigurationFault {
  const found = [...misspelt].find(([, meant]) => [fault.variable, `${fault.variable}_FILE`].includes(meant));
  return found ? { ...fault, message: `${fault.message} ${found[0]} is set: is it meant?` } : fault;
}

/** What a `tls` function returns is known only now. */
function missingCertificate({ options }: Resolution, identity?: ClientIdentity): ConfigurationFault[] {
  if (!options || !identity || identity.certificate) return [];
  const needed =
    options.authentication === 'mtls' ? "'mtls'" : options.oauth?.mtls ? 'oauth.mtls' : undefined;
  if (needed === undefined) return [];
  return [
    {
      option: 'tls.certificate',
      message: `is missing: ${needed} needs it, and the tls function returned none.`,
    },
  ];
}
