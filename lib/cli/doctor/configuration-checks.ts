import axios from 'axios';
import { type X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import { entryOf, OPTIONS, valueOf } from '../../config/options.js';
import { ENVIRONMENT, NONE } from '../../config/proxy.js';
import { isPlainPath } from '../../config/read-file.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { isFile } from '../../config/secret.js';
import { variablePrefix } from '../../config/module-name.js';
import { variableOf, variablesOf } from '../../config/variables.js';
import { GUIDES, VERSION } from '../../version.js';
import { type ConfigurationFault } from '../../errors/index.js';
import { formatDate } from '../../time/clock.js';
import { daysLeft, describeCertificate, isEnding, summarize } from '../../tls/certificate-summary.js';
import { type LoadedIdentity } from '../../tls/material/check-identity.js';
import { isNeverSent } from '../../tls/material/key-type.js';
import { type Configuration } from '../../engine/read-configuration.js';
import { THE_ENVIRONMENT, type Variables } from '../env-file.js';
import { DEFAULT_DIR } from '../simulator-options.js';
import { capital, type Check, failed, type Finding, ok, warning } from './check.js';
import { list, nameOf } from './judge.js';

/** A configuration that was read and checked, as a person has it before them. `options` only if there are no faults. */
type ConfigurationReading = Configuration &
  Variables & { name?: string; certificates?: LoadedIdentity; now: number };

/** What there is to say of each variable, without a connection. Values that are no secret are shown. */
export function* checkConfiguration(reading: ConfigurationReading): Generator<Check> {
  const { name, merged, faults, options, sources } = reading;
  yield { name: 'versions', ...describeVersions() };
  if (Object.keys(merged).length === 0) {
    const message = `There is no ${variablePrefix(name)}* variable in ${sources}.`;
    yield { name: 'variables', ...failed(message, whereToFindVariables(name)) };
    return;
  }
  yield* unexpandedRows(reading);
  if (options) yield { name: 'mode', ...describeMode(options) };
  for (const { option } of OPTIONS) {
    const own = faults.filter((fault) => fault.option === option);
    if (own.length > 0) yield* own.map((fault) => fromFault(fault, reading));
    else if (valueOf(merged, option) !== undefined)
      yield { name: rowName(reading, option), ...describe(reading, option) };
    else yield* unsetRows(reading, option);
  }
  const known = new Set(OPTIONS.map(({ option }) => option));
  yield* faults.filter(({ option }) => !known.has(option)).map((fault) => fromFault(fault, reading));
}

/** dotenv-expand replaces what follows a $, also in single quotes, but only in values of a file. */
function unexpandedRows({ name, get, sourceOf }: ConfigurationReading): Check[] {
  const found = variablesOf(name).filter(
    (variable) => sourceOf(variable) !== THE_ENVIRONMENT && get(variable)?.includes('$'),
  );
  if (found.length === 0) return [];
  const message = `${found.join(', ')}: has a $. The doctor does not expand variables. If ConfigModule does (expandVariables), the application gets another value: a $ that is meant needs a backslash before it.`;
  return [{ name: 'variables', ...ok(message) }];
}

/** What a report of a fault needs first. */
function describeVersions(): Finding {
  const { version: nest } = createRequire(import.meta.url)('@nestjs/core/package.json') as {
    version: string;
  };
  return ok(
    `Node ${process.versions.node}, NestJS ${nest}, axios ${axios.VERSION}, nestjs-service ${VERSION}.`,
  );
}

function whereToFindVariables(name: string | undefined): string {
  const simulated = `Without an account: npx nestjs-service simulator writes ${DEFAULT_DIR}/.env, and the doctor and the application then take --env-file ${DEFAULT_DIR}/.env.`;
  return `Run this in the folder of the application, or name its file: --env-file <path>. ${GUIDES}/getting-started.md#the-five-modes shows which variables each mode needs.${name === undefined ? ` ${simulated}` : ''}`;
}

function fromFault({ option, variable, message }: ConfigurationFault, reading: ConfigurationReading): Check {
  const name = variable ?? option;
  const source = variable && reading.sourceOf(variable);
  const remedy = source
    ? `Correct ${variable.endsWith('_FILE') ? `the file, or ${variable}` : variable} in ${source}.`
    : `Set ${name}${variable && entryOf(option)?.kind === 'secret' && !variable.endsWith('_FILE') ? ` or ${variable}_FILE` : ''}, in ${reading.sources}.`;
  return { name, ...failed(capital(message), remedy) };
}

/** Warnings about an option that is not set. */
function unsetRows(reading: ConfigurationReading, option: string): Check[] {
  const name = rowName(reading, option);
  const found = reading.warnings.filter((each) => each.option === option).map(({ message }) => message);
  if (option === 'tls.chain' && reading.certificates?.lacksChain) found.push(noChain(reading));
  const remedy = `Set ${name}${entryOf(option)?.kind === 'secret' ? ` or ${name}_FILE` : ''}, in ${reading.sources}.`;
  return found.map((message) => ({ name, ...warning(capital(message), remedy) }));
}

function noChain(reading: ConfigurationReading): string {
  const publicRoots = `tls.publicRoots (${rowName(reading, 'tls.publicRoots')})`;
  return `Is not set: the service is verified against Node's public roots. In production, a client certificate needs the chain (specification, 5.2.4), or ${publicRoots}.`;
}

function rowName({ merged, name }: ConfigurationReading, option: string): string {
  return variableOf(option, name, valueOf(merged, option)) ?? option;
}

function describeMode({ environment, authentication, addresses, oauth }: ResolvedOptions): Finding {
  const tokens = oauth && addresses.tokenUrl ? `tokens come from ${addresses.tokenUrl}` : 'no OAuth tokens';
  return ok(`${environment}, ${authentication}: calls go to ${addresses.baseUrl}; ${tokens}.`);
}

/** An option that is set, and has no fault. */
function describe(reading: ConfigurationReading, option: string): Finding {
  const { merged, warnings, options } = reading;
  const variable = rowName(reading, option);
  const source = reading.sourceOf(variable);
  const found = warnings.find((fault) => fault.option === option);
  if (found) return warning(capital(found.message), `Check ${variable}${source ? ` in ${source}` : ''}.`);
  const pem = describePem(reading, option);
  if (pem) return pem;
  const value = valueOf(merged, option);
  const kind = entryOf(option)?.kind;
  // A proxy's URL may have a password.
  const isWord = option === 'http.proxy' && (value === ENVIRONMENT || value === NONE);
  const isPlain =
    isWord || (kind !== 'secret' && kind !== 'text' && (options !== undefined || kind !== 'address'));
  const shown = isPlain ? String(value) : isFile(value) ? describeFile(value.file) : 'set; not shown here';
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
    const others = list(sent.slice(1), nameOf);
    const after = others && ` After it stand ${others}.`;
    const message = `${describeCertificate(certificate)}, issued by "${certificate.issuer}", with a key of the type ${keyType}, valid to ${formatDate(certificate.validTo)}, ${left} days left.${after}`;
    if (isNeverSent(keyType)) {
      return warning(
        `${message} TLS 1.3 has no signature for such a key: a server that speaks TLS 1.3 gets no certificate.`,
        `Generate an RSA key or one on P-256 with its certificate in the developer portal, and put them into ${rowName(reading, option)} and ${rowName(reading, 'tls.privateKey')}.`,
      );
    }
    const ending = sent.map(summarize).find((each) => isEnding(each, now));
    if (ending) {
      return warning(
        `${message} ${describeCertificate(ending)} ends on ${formatDate(ending.validTo)}.`,
        `Generate a new certificate in the developer portal, and put it and its key into ${rowName(reading, option)}.`,
      );
    }
    return ok(message);
  }
  if (option === 'tls.privateKey') return ok('The key of this certificate; not shown here.');
  if (option === 'tls.chain' && chain.length > 0) return describeChain(chain, now);
  return undefined;
}

function describeChain(chain: readonly X509Certificate[], now: number): Finding {
  const message = `The only trust anchor of the API: ${list(chain, (each) => `${nameOf(each)} to ${formatDate(each.validTo)}`)}.`;
  const ending = chain.filter((each) => isEnding(summarize(each), now));
  if (ending.length === 0) return ok(message);
  const more = ending.length > 1 ? ` So it is with ${ending.length - 1} more.` : '';
  return warning(
    `${message} ${nameOf(ending[0])} has expired or will soon.${more}`,
    'Download the chain anew from the developer portal.',
  );
}
