import { systemClock } from '../time/clock.js';
import { misspeltVariables, unusedVariables } from '../config/misspelling.js';
import { namespaceName } from '../config/module-name.js';
import { mergeOptions, type ServiceModuleOptions, valueOf } from '../config/options.js';
import { resolveOptions } from '../config/resolve-options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { readVariables } from '../config/variables.js';
import { type ConfigurationFault } from '../errors/index.js';
import { type Log } from '../exchange/io.js';
import { ClientIdentity } from '../tls/client-identity.js';
import { axiosFaults } from './axios-version.js';

/** The sources of a module's options, in their order. */
interface ConfigurationSources {
  /** The module's name, `undefined` for the unnamed one. */
  name?: string;
  given: ServiceModuleOptions;
  namespace?: object;
  /** Absent if no option can come from a variable. */
  readVariable?: (variable: string) => unknown;
  /** The names of all variables that are set, and of those in env files, if known. */
  variablesSet: readonly string[];
  variablesInFiles?: readonly string[];
}

/**
 * Reads and checks everything, files and certificates too. Reports all faults, and does not throw. There may be an identity
 * in spite of faults: it has no connection and no timer yet.
 */
export async function readConfiguration(
  { name, given, namespace, readVariable, variablesSet, variablesInFiles }: ConfigurationSources,
  log: Log,
) {
  const variables = readVariables(readVariable ?? (() => undefined), name);
  const merged = mergeOptions(given, namespace, variables.options);
  const variableSet = Object.keys(variables.options).length > 0;
  const { options, tls, warnings, ...resolved } = await resolveOptions(
    merged,
    name,
    readVariable !== undefined,
    namespaceKeys(given, namespace, name, variableSet),
  );
  const misspelt: ReadonlyMap<string, string> = misspeltVariables(variablesSet, name);
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
  const others = otherThan(variables.faults, resolved.faults);
  const faults = [
    ...axiosFaults(),
    ...variables.faults,
    ...others.map((fault) => withMisspelling(fault, misspelt)),
  ];
  const certificateFaults = otherThan(resolved.faults, opened.faults);
  if (options && identity) certificateFaults.push(...missingCertificate(options, identity));
  return {
    merged,
    options,
    identity,
    certificate,
    faults,
    certificateFaults,
    warnings,
    misspelt,
    unused: unusedVariables(variablesSet, misspelt, name, variablesInFiles),
    variableSet,
  };
}

/** The key of an option in the namespace, if it is set there; or would be, because the application sets no variable. */
function namespaceKeys(
  given: ServiceModuleOptions,
  namespace: object | undefined,
  name: string | undefined,
  variableSet: boolean,
) {
  return (option: string): string | undefined => {
    if (namespace === undefined || valueOf(given, option) !== undefined) return undefined;
    const isThere = valueOf(namespace, option) !== undefined;
    return isThere || !variableSet ? `${namespaceName(name)}.${option}` : undefined;
  };
}

/** The faults of options without a reported fault. */
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
  if (!fault.isMissing) return fault;
  const found = [...misspelt].find(([, meant]) => [fault.variable, `${fault.variable}_FILE`].includes(meant));
  return found ? { ...fault, message: `${fault.message} ${found[0]} is set: a misspelling?` } : fault;
}

/** The fault if a `tls` function returns no certificate, but one is needed. */
function missingCertificate(options: ResolvedOptions, { certificate }: ClientIdentity): ConfigurationFault[] {
  const { certificateFor } = options.addresses;
  if (!certificateFor || certificate) return [];
  const message = `is missing: ${certificateFor === 'mtls' ? "'mtls'" : certificateFor} needs it, and the tls function returned none.`;
  return [{ option: 'tls.certificate', message }];
}
