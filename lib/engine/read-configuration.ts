import { mergeOptions, type ServiceModuleOptions } from '../config/options.js';
import { resolveOptions } from '../config/resolve-options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { readVariables, variableFaultsOf } from '../config/variables.js';
import { type ConfigurationFault } from '../errors/index.js';
import { type Log } from '../exchange/io.js';
import { systemClock } from '../time/clock.js';
import { ClientIdentity } from '../tls/client-identity.js';

/** Where a client's options come from, in their order. */
interface ConfigurationSources {
  /** The module's name, `undefined` for the unnamed one. */
  name?: string;
  given: ServiceModuleOptions;
  namespace?: object;
  /** Absent if no option can come from a variable. */
  readVariable?: (variable: string) => unknown;
}

/** What was read, with all faults. `options` and `identity` are usable if there are none. */
export type Configuration = Awaited<ReturnType<typeof readConfiguration>>;

/**
 * Merges the sources key by key, and checks everything, files and certificates too. Does not throw. There may be an identity
 * in spite of faults: it has no connection and no timer yet.
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
    (readVariable ?? givenFaults) !== undefined,
  );
  const { identity, certificate, ...opened } = await ClientIdentity.open({
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
  const faults = [...others, ...otherThan(resolved.faults, opened.faults)];
  if (options && identity) faults.push(...missingCertificate(options, identity));
  const isOnlyCertificates = others.length === 0;
  const hasVariable = Object.keys(variables.options).length > 0;
  return { merged, options, identity, certificate, faults, isOnlyCertificates, warnings, hasVariable };
}

/** The faults of options without a reported fault. */
function otherThan(
  reported: readonly ConfigurationFault[],
  faults: readonly ConfigurationFault[],
): ConfigurationFault[] {
  return faults.filter(({ option }) => !reported.some((fault) => fault.option === option));
}

/** The fault if a `tls` function returns no certificate, but one is needed. */
function missingCertificate(options: ResolvedOptions, { certificate }: ClientIdentity): ConfigurationFault[] {
  const { certificateFor } = options.addresses;
  if (!certificateFor || certificate) return [];
  const message = `is missing: ${certificateFor === 'mtls' ? "'mtls'" : certificateFor} needs it, and the tls function returned none.`;
  return [{ option: 'tls.certificate', message }];
}
