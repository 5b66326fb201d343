import { Logger } from '@nestjs/common';
import { systemClock } from '../config/clock.js';
import { mergeOptions } from '../config/merge-options.js';
import { misspeltVariables } from '../config/misspelling.js';
import { resolveOptions, type Resolution } from '../config/resolve-options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { moduleLabel, nameFault, readVariables, variablePrefix } from '../config/variables.js';
import {
  describeFault,
  ServiceCertificateError,
  ServiceConfigurationError,
  type ConfigurationFault,
} from '../errors/index.js';
import { ClientIdentity } from '../tls/index.js';
import { type GivenOptions } from './given-options.js';
import { type HostConfig } from './host-config.js';
import { type ModuleName } from './module-names.js';

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
): Promise<LoadedConfiguration> {
  const refused = name === undefined ? undefined : nameFault(name);
  if (refused) throw new ServiceConfigurationError([{ option: 'name', message: refused }]);
  const logger = new Logger(moduleLabel(name));
  const variables = readVariables((variable) => config.get(variable), name);
  const merged = mergeOptions(given.value, namespaceOf(name, config), variables.options);
  const resolution = await resolveOptions(merged, name);
  const misspelt = misspeltVariables(variablesSet(), name);
  for (const [variable, meant] of misspelt) {
    logger.warn(`${variable} is set but not used. If you mean ${meant}, correct its name.`);
  }
  for (const warning of resolution.warnings) logger.warn(describeFault(warning));

  const opened = await ClientIdentity.open({
    tls: resolution.tls,
    maxSockets: resolution.options?.http.maxSockets ?? 1,
    proxy: resolution.options?.http.proxy,
    offerToTokenEndpoint: resolution.options?.oauth?.mtls ?? false,
    clock: systemClock,
    log: (level, message) => logger[level](message),
  });
  const faults = [
    ...variables.faults,
    ...otherThan(variables.faults, resolution.faults).map((fault) => withMisspelling(fault, misspelt)),
  ];
  const certificateFaults = [
    ...otherThan(resolution.faults, opened.faults),
    ...missingCertificate(resolution, opened.identity),
  ];
  const { options } = resolution;
  const { identity } = opened;
  if (faults.length + certificateFaults.length === 0 && options && identity) {
    if (options.addresses.deprecated) {
      logger.log(
        `Calls go to ${options.describeOption('urls.oauthBaseUrl')}, which will be deprecated; urls.baseUrl will replace it.`,
      );
    }
    return { options, identity };
  }
  await identity?.close();
  if (faults.length === 0) {
    throw new ServiceCertificateError(certificateFaults, { certificate: opened.certificate });
  }
  const nothingSet = Object.keys(merged).length === 0 && misspelt.size === 0;
  throw new ServiceConfigurationError(
    [...faults, ...certificateFaults],
    heading(name, { nothingSet, noConfigModule: !config.imported && faults.some(isMissing) }),
  );
}

/** Anything but an object is not our namespace: `get` may also find a variable that is called `service`. */
function namespaceOf(name: string | undefined, config: HostConfig): object | undefined {
  const found = name === undefined ? config.get('service') : undefined;
  return typeof found === 'object' && found !== null ? found : undefined;
}

function variablesSet(): string[] {
  return Object.keys(process.env).filter((variable) => process.env[variable]);
}

/** The faults of options that have no reported fault yet. */
function otherThan(
  reported: readonly ConfigurationFault[],
  faults: readonly ConfigurationFault[],
): ConfigurationFault[] {
  return faults.filter(({ option }) => !reported.some((fault) => fault.option === option));
}

/** The first line of the error. Names the usual causes where many options are missing. */
function heading(
  name: string | undefined,
  { nothingSet, noConfigModule }: { nothingSet: boolean; noConfigModule: boolean },
): string {
  const found = nothingSet
    ? `${moduleLabel(name)} found no ${variablePrefix(name)}* variable`
    : `The configuration of ${moduleLabel(name)} is not usable`;
  if (noConfigModule) {
    return `${found}. The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())`;
  }
  return nothingSet
    ? `${found}. ConfigModule.forRoot() reads .env in the working directory: is it there?`
    : found;
}

function isMissing({ message }: ConfigurationFault): boolean {
  return message.startsWith('is missing');
}

/** Adds to the fault of a missing option that a variable with a similar name is set. */
function withMisspelling(
  fault: ConfigurationFault,
  misspelt: ReadonlyMap<string, string>,
): ConfigurationFault {
  const found = [...misspelt].find(([, meant]) => [fault.variable, `${fault.variable}_FILE`].includes(meant));
  return found ? { ...fault, message: `${fault.message} ${found[0]} is set: a misspelling?` } : fault;
}

/** A `tls` function must return a certificate where one is needed. */
function missingCertificate({ options }: Resolution, identity?: ClientIdentity): ConfigurationFault[] {
  if (!options || !identity || identity.certificate) return [];
  const needed =
    options.authentication === 'mtls' ? "'mtls'" : options.oauth?.mtls ? 'oauth.mtls' : undefined;
  if (needed === undefined) return [];
  const message = `is missing: ${needed} needs it, and the tls function returned none.`;
  return [{ option: 'tls.certificate', message }];
}
