import { Logger } from '@nestjs/common';
import { systemClock } from '../config/clock.js';
import { mergeOptions } from '../config/merge-options.js';
import { moduleLabel } from '../config/module-label.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { resolveOptions, type Resolution } from '../config/resolve-options.js';
import { readVariables } from '../config/variables.js';
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
  const variables = readVariables((variable) => config.get(variable), name);
  const loaded = name === undefined ? config.get('service') : undefined;
  const fallback = typeof loaded === 'object' && loaded !== null ? loaded : undefined;
  const merged = mergeOptions(given.value, fallback, variables.options);
  const resolution = await resolveOptions(merged, name);
  const logger = new Logger(moduleLabel(name));
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
    const nothingSet = Object.keys(variables.options).length === 0 && Object.keys(given.value).length === 0;
    throw faultsError(options, certificates, opened.certificate, heading(config.imported, nothingSet));
  }
  if (resolution.options.addresses.deprecated) {
    logger.log(
      'Calls go to urls.oauthBaseUrl, which is to be deprecated (specification 9.2); baseUrl will take its place.',
    );
  }
  return { options: resolution.options, identity: opened.identity };
}

/** The usual causes behind a configuration of which much is missing. */
function heading(configImported: boolean, nothingSet: boolean): string | undefined {
  const found = nothingSet ? 'ServiceModule found no SERVICE_* variable at all' : undefined;
  if (!configImported) {
    return (
      `${found ?? 'The configuration of ServiceModule is not usable'}; the application does not import ConfigModule, ` +
      'so .env files are not read (import ConfigModule.forRoot())'
    );
  }
  return found && `${found} (is the .env that ConfigModule.forRoot() reads in the working directory?)`;
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

function faultsError(
  options: ConfigurationFault[],
  certificates: ConfigurationFault[],
  certificate: ServiceCertificateError['certificate'],
  heading: string | undefined,
): ServiceConfigurationError {
  return options.length === 0
    ? new ServiceCertificateError(certificates, { certificate })
    : new ServiceConfigurationError([...options, ...certificates], heading);
}
