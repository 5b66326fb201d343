import { systemClock } from '../config/clock.js';
import { mergeOptions } from '../config/merge-options.js';
import { misspeltVariables } from '../config/misspelling.js';
import { type ServiceModuleOptions } from '../config/options.js';
import { resolveOptions, type Resolution } from '../config/resolve-options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { readVariables } from '../config/variables.js';
import { type CertificateSummary, type ConfigurationFault } from '../errors/index.js';
import { type Log } from '../telemetry/log.js';
import { ClientIdentity } from '../tls/client-identity.js';

/** Where the options of a module come from, the first first. */
interface ConfigurationSources {
  /** The module's name, `undefined` for the unnamed one. */
  name?: string;
  given: ServiceModuleOptions;
  namespace?: object;
  readVariable: (variable: string) => unknown;
  /** The names of all variables that are set. */
  variablesSet: readonly string[];
}

/** Options and client identity of a module, and all that is wrong with them. */
interface ReadConfiguration {
  merged: ServiceModuleOptions;
  /** Both are there where there are no faults. An identity may also be there beside faults: it is the caller's to close. */
  options?: ResolvedOptions;
  identity?: ClientIdentity;
  /** Of options and of files with secrets; those of certificates and keys. */
  faults: ConfigurationFault[];
  certificateFaults: ConfigurationFault[];
  warnings: ConfigurationFault[];
  /** Variables that nothing reads, with the one that is likely meant. */
  misspelt: ReadonlyMap<string, string>;
  /** The application certificate where one could be read, faults or not. */
  certificate?: CertificateSummary;
}

/** Reads and checks everything, files and certificates too. Reports all faults, and throws none. */
export async function readConfiguration(
  { name, given, namespace, readVariable, variablesSet }: ConfigurationSources,
  log: Log,
): Promise<ReadConfiguration> {
  const variables = readVariables(readVariable, name);
  const merged = mergeOptions(given, namespace, variables.options);
  const resolution = await resolveOptions(merged, name);
  const misspelt = misspeltVariables(variablesSet, name);
  const { identity, ...opened } = await ClientIdentity.open({
    tls: resolution.tls,
    maxSockets: resolution.options?.http.maxSockets ?? 1,
    proxy: resolution.options?.http.proxy,
    connectTimeoutMs: resolution.options?.http.connectTimeout,
    offerToTokenEndpoint: resolution.options?.oauth?.mtls ?? false,
    clock: systemClock,
    log,
  });
  const faults = [
    ...variables.faults,
    ...otherThan(variables.faults, resolution.faults).map((fault) => withMisspelling(fault, misspelt)),
  ];
  const certificateFaults = [
    ...otherThan(resolution.faults, opened.faults),
    ...missingCertificate(resolution, identity),
  ];
  const { options, warnings } = resolution;
  const { certificate } = opened;
  return { merged, options, identity, faults, certificateFaults, warnings, misspelt, certificate };
}

/** The faults of options that have no reported fault yet. */
function otherThan(
  reported: readonly ConfigurationFault[],
  faults: readonly ConfigurationFault[],
): ConfigurationFault[] {
  return faults.filter(({ option }) => !reported.some((fault) => fault.option === option));
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
