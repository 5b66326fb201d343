import { mergeOptions, type ServiceModuleOptions } from '../config/options.js';
import { resolveOptions, type ResolvedOptions } from '../config/resolve-options.js';
import { readVariables, variableFaultsOf } from '../config/variables.js';
import { type ConfigurationFault } from '../errors/index.js';
import { type Log } from '../telemetry/telemetry.js';
import { systemClock } from '../time/time.js';
import { ClientIdentity } from '../tls/client-identity.js';

/** Where a client's options come from, in order of precedence. */
interface ConfigurationSources {
  /** The name of the ServiceModule or client, if it has one. */
  name?: string;
  given: ServiceModuleOptions;
  namespace?: object;
  /** Reads an environment variable. Absent for `createServiceClient()`, which reads none. */
  readVariable?: (variable: string) => unknown;
}

/** The checked configuration, with all faults. `options` and `identity` are usable only if there are none. */
export type Configuration = Awaited<ReturnType<typeof readConfiguration>>;

/**
 * Merges the sources key by key and checks every option, including the files and certificates that the options name. Faults
 * are returned, not thrown. The identity may be present despite faults. It needs no close(), because it opens no connection
 * and sets no timer before its first use.
 */
export async function readConfiguration(
  { name, given, namespace, readVariable }: ConfigurationSources,
  log: Log,
) {
  const givenFaults = variableFaultsOf(given);
  const variables = readVariable
    ? readVariables(readVariable, name)
    : { options: {}, faults: givenFaults ?? [] };
  const merged = mergeOptions(given, namespace, variables.options);
  const { options, tls, warnings, ...resolved } = await resolveOptions(
    merged,
    name,
    readVariable ? { name } : givenFaults !== undefined && {},
  );
  const { identity, certificate, notValidNow, ...opened } = await ClientIdentity.open({
    tls,
    maxSockets: options?.http.maxSockets ?? 1,
    proxyFor: options?.http.proxyFor,
    connectTimeoutMs: options?.http.connectTimeout,
    idleTimeoutMs: options?.http.idleTimeout,
    offerToTokenEndpoint: options?.oauth?.mtls ?? false,
    clock: systemClock,
    log,
  });
  const others = [...variables.faults, ...otherThan(variables.faults, resolved.faults)];
  // GitHub Actions sets an empty text for a secret that does not exist, and env-cmd for a PEM over several lines.
  const isSetButEmpty = ({ isMissing, variable }: ConfigurationFault): boolean =>
    isMissing === true && variable !== undefined && readVariable?.(variable) === '';
  const faults = [...others, ...otherThan(resolved.faults, opened.faults)].map((fault) =>
    isSetButEmpty(fault) ? { ...fault, message: `${fault.message} The variable is set, but empty.` } : fault,
  );
  if (options && identity) faults.push(...missingCertificate(options, identity));
  const isOnlyCertificates = others.length === 0;
  const isAnyVariableSet = Object.keys(variables.options).length > 0;
  const flags = { isOnlyCertificates, isAnyVariableSet };
  return { merged, options, identity, certificate, faults, notValidNow, warnings, ...flags };
}

/** The faults of those options that have none among the reported faults. */
function otherThan(
  reported: readonly ConfigurationFault[],
  faults: readonly ConfigurationFault[],
): ConfigurationFault[] {
  return faults.filter(({ option }) => !reported.some((fault) => fault.option === option));
}

/** A certificate is needed, but the `tls` function, which runs only now, returned none. */
function missingCertificate(options: ResolvedOptions, { certificate }: ClientIdentity): ConfigurationFault[] {
  const { certificateFor } = options.addresses;
  if (!certificateFor || certificate) return [];
  const message = `is missing: ${certificateFor === 'mtls' ? "'mtls'" : certificateFor} needs it, and the tls function returned none.`;
  return [{ option: 'tls.certificate', message }];
}
