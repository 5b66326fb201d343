import axios from 'axios';
import { type X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import { entryOf, OPTIONS, valueOf } from '../../config/options.js';
import { ENVIRONMENT, NONE } from '../../config/address.js';
import { isPlainPath, isFile } from '../../config/secret.js';
import { type ResolvedOptions } from '../../config/resolve-options.js';
import { variablePrefix } from '../../config/names.js';
import { variableOf, variablesOf } from '../../config/variables.js';
import { GUIDES, VERSION } from '../../version.js';
import { type ConfigurationFault } from '../../errors/index.js';
import { formatDate } from '../../time/time.js';
import {
  daysLeft,
  describeCertificate,
  isDueForRenewal,
  summarize,
  isUnsupportedInTls13,
} from '../../tls/certificate-summary.js';
import { type LoadedIdentity } from '../../tls/material/check-identity.js';
import { type Configuration } from '../../engine/read-configuration.js';
import { THE_ENVIRONMENT, type Variables } from '../env-file.js';
import { DEFAULT_DIR } from '../simulator-options.js';
import { capitalize, type Check, failed, type Finding, ok, warning } from './check.js';
import { listCertificates, quoteSubject } from './judge.js';

/** A configuration with the sources of its variables. `options` and `certificates` are present only without faults. */
type ConfigurationReading = Configuration &
  Variables & { name?: string; certificates?: LoadedIdentity; now: number };

/** Checks each variable, without a connection. Values that are not secret are shown. */
export function* checkConfiguration(reading: ConfigurationReading): Generator<Check> {
  const { name, merged, faults, options, sources } = reading;
  yield { name: 'versions', ...describeVersions() };
  if (Object.keys(merged).length === 0) {
    const message = `No ${variablePrefix(name)}* variable is set in ${sources}.`;
    yield { name: 'variables', ...failed(message, describeHowToSetVariables(name)) };
    return;
  }
  yield* checkExpansion(reading);
  if (options) yield { name: 'mode', ...describeMode(options) };
  for (const { option } of OPTIONS) {
    const own = faults.filter((fault) => fault.option === option);
    if (own.length > 0) yield* own.map((fault) => describeConfigurationFault(fault, reading));
    else if (valueOf(merged, option) !== undefined)
      yield { name: rowName(reading, option), ...describeSetOption(reading, option) };
    else yield* describeUnsetOption(reading, option);
  }
  const known = new Set(OPTIONS.map(({ option }) => option));
  yield* faults
    .filter(({ option }) => !known.has(option))
    .map((fault) => describeConfigurationFault(fault, reading));
}

/**
 * With `expandVariables`, ConfigModule expands `$NAME` in the values of env files, even in single quotes. A client secret
 * with a $ then arrives changed.
 */
function checkExpansion({ name, get, sourceOf }: ConfigurationReading): Check[] {
  const found = variablesOf(name).filter(
    (variable) => sourceOf(variable) !== THE_ENVIRONMENT && get(variable)?.includes('$'),
  );
  if (found.length === 0) return [];
  const message = `${found.join(', ')}: the value contains a $. The doctor does not expand variables. If ConfigModule does (expandVariables), the application gets another value: write \\$ for a literal $.`;
  return [{ name: 'variables', ...ok(message) }];
}

/** Every bug report needs these versions. */
function describeVersions(): Finding {
  const { version: nest } = createRequire(import.meta.url)('@nestjs/core/package.json') as {
    version: string;
  };
  return ok(
    `Node ${process.versions.node}, NestJS ${nest}, axios ${axios.VERSION}, nestjs-service ${VERSION}.`,
  );
}

function describeHowToSetVariables(name: string | undefined): string {
  const simulated = `Without an account, run npx nestjs-service simulator: it writes ${DEFAULT_DIR}/.env. Then start the doctor and the application with --env-file ${DEFAULT_DIR}/.env.`;
  return `Run the doctor in the folder of the application, or name the env file: --env-file <path>. ${GUIDES}/getting-started.md#the-five-modes lists the variables that each mode needs.${name === undefined ? ` ${simulated}` : ''}`;
}

function describeConfigurationFault(
  { option, variable, message }: ConfigurationFault,
  reading: ConfigurationReading,
): Check {
  const name = variable ?? option;
  const source = variable && reading.sourceOf(variable);
  const remedy = source
    ? `Correct ${variable.endsWith('_FILE') ? `the file, or ${variable}` : variable} in ${source}.`
    : `Set ${name}${variable && entryOf(option)?.kind === 'secret' && !variable.endsWith('_FILE') ? ` or ${variable}_FILE` : ''}, in ${reading.sources}.`;
  return { name, ...failed(capitalize(message), remedy) };
}

/** Returns the warnings about an option that is not set. */
function describeUnsetOption(reading: ConfigurationReading, option: string): Check[] {
  const name = rowName(reading, option);
  const found = reading.warnings.filter((each) => each.option === option).map(({ message }) => message);
  if (option === 'tls.chain' && reading.certificates?.lacksChain) found.push(describeMissingChain(reading));
  const remedy = `Set ${name}${entryOf(option)?.kind === 'secret' ? ` or ${name}_FILE` : ''}, in ${reading.sources}.`;
  return found.map((message) => ({ name, ...warning(capitalize(message), remedy) }));
}

function describeMissingChain(reading: ConfigurationReading): string {
  const publicRoots = `tls.publicRoots (${rowName(reading, 'tls.publicRoots')})`;
  return `Is not set, so the service's certificate is verified against Node's public roots. In production, a client certificate requires the chain (specification, 5.2.4) or ${publicRoots}.`;
}

function rowName({ merged, name }: ConfigurationReading, option: string): string {
  return variableOf(option, name, valueOf(merged, option)) ?? option;
}

function describeMode({ environment, authentication, addresses, oauth }: ResolvedOptions): Finding {
  const tokens =
    oauth && addresses.tokenUrl ? `tokens come from ${addresses.tokenUrl}` : 'OAuth is not configured';
  return ok(`${environment}, ${authentication}: calls go to ${addresses.baseUrl}; ${tokens}.`);
}

/** Describes an option that is set and valid. */
function describeSetOption(reading: ConfigurationReading, option: string): Finding {
  const { merged, warnings, options } = reading;
  const variable = rowName(reading, option);
  const source = reading.sourceOf(variable);
  const found = warnings.find((fault) => fault.option === option);
  if (found) return warning(capitalize(found.message), `Check ${variable}${source ? ` in ${source}` : ''}.`);
  const pem = describePem(reading, option);
  if (pem) return pem;
  const value = valueOf(merged, option);
  const kind = entryOf(option)?.kind;
  // The URL of a proxy may contain a password, so only these two words are shown.
  const isWord = option === 'http.proxy' && (value === ENVIRONMENT || value === NONE);
  const isPlain =
    isWord || (kind !== 'secret' && kind !== 'text' && (options !== undefined || kind !== 'address'));
  // An address that is not valid may contain a password.
  const hidden = kind === 'address' ? 'set; shown once all options are valid' : 'set; not shown here';
  const shown = isPlain ? String(value) : isFile(value) ? describeFile(value.file) : hidden;
  return ok(`${shown}${source ? ` (${source})` : ''}`);
}

function describeFile(path: string): string {
  return isPlainPath(path) ? `the file ${path}` : 'a file; its path is not shown here';
}

function describePem(reading: ConfigurationReading, option: string): Finding | undefined {
  if (!reading.certificates) return undefined;
  const { now, certificates } = reading;
  const { certificate, keyType, sent, chain } = certificates;
  if (option === 'tls.certificate' && certificate) {
    const left = daysLeft(certificate, now);
    const others = listCertificates(sent.slice(1), quoteSubject);
    const after = others && ` Sent after it: ${others}.`;
    const message = `${describeCertificate(certificate)}, issued by "${certificate.issuer}", key type ${keyType}, valid to ${formatDate(certificate.validTo)}, ${left} days left.${after}`;
    if (isUnsupportedInTls13(keyType)) {
      return warning(
        `${message} TLS 1.3 has no signature algorithm for a key of this type, so a server that uses TLS 1.3 does not get the certificate.`,
        `Generate a new certificate with an RSA or P-256 key in the developer portal, and put them into ${rowName(reading, option)} and ${rowName(reading, 'tls.privateKey')}.`,
      );
    }
    const ending = sent.map(summarize).find((each) => isDueForRenewal(each, now));
    if (ending) {
      return warning(
        `${message} ${describeCertificate(ending)} expires on ${formatDate(ending.validTo)}.`,
        `Generate a new certificate in the developer portal, and put it and its key into ${rowName(reading, option)} and ${rowName(reading, 'tls.privateKey')}.`,
      );
    }
    return ok(message);
  }
  if (option === 'tls.privateKey') return ok('The key fits the certificate; not shown here.');
  if (option === 'tls.chain' && chain.length > 0) return describeTrustAnchors(chain, now);
  return undefined;
}

function describeTrustAnchors(chain: readonly X509Certificate[], now: number): Finding {
  const message = `The API's certificate is verified against these only: ${listCertificates(chain, (each) => `${quoteSubject(each)} (valid to ${formatDate(each.validTo)})`)}.`;
  const ending = chain.filter((each) => isDueForRenewal(summarize(each), now));
  if (ending.length === 0) return ok(message);
  const more = ending.length > 1 ? `, and so have ${ending.length - 1} more` : '';
  return warning(
    `${message} ${quoteSubject(ending[0])} has expired or expires soon${more}.`,
    'Download the current chain from the developer portal.',
  );
}
