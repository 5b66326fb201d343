import axios from 'axios';
import { type X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import { ENVIRONMENT, NONE } from '../../config/address.js';
import { variablePrefix } from '../../config/names.js';
import { valueOf } from '../../config/option.js';
import { entryOf, OPTIONS } from '../../config/options.js';
import { isFile, isPlainPath } from '../../config/secret.js';
import { variableOf, variablesOf } from '../../config/variables.js';
import { type Configuration } from '../../engine/read-configuration.js';
import { isUnsupportedInTls13 } from '../../exchange/response.js';
import { formatDate } from '../../time/time.js';
import { daysLeft, describeCertificate, isDueForRenewal, summarize } from '../../tls/certificate-summary.js';
import { type LoadedIdentity } from '../../tls/material/check-identity.js';
import { GUIDES, VERSION } from '../../version.js';
import { DEFAULT_DIR } from '../command.js';
import { THE_ENVIRONMENT, type Variables } from '../host-configuration.js';
import { listCertificates, quoteSubject } from './handshake.js';
import { type Check, failed, type Finding, ok, type Reporter, warning } from './report.js';

/** A configuration with the sources of its variables. */
type Reading = Configuration & Variables & { name?: string };

/** Checks each variable, without a connection. Values that are not secret are shown. */
export function checkConfiguration(reading: Reading, reporter: Reporter): void {
  const { name, merged, faults, options, get, sourceOf, sources } = reading;
  reporter.add('versions', describeVersions());
  if (Object.keys(merged).length === 0) {
    const message = `No ${variablePrefix(name)}* variable is set in ${sources}.`;
    return reporter.add('variables', failed(message, describeHowToSetVariables(name)));
  }
  // With `expandVariables`, ConfigModule expands `$NAME` in the values of env files, even in single quotes. A client secret
  // with a $ then arrives changed.
  const expanded = variablesOf(name).filter(
    (variable) => sourceOf(variable) !== THE_ENVIRONMENT && get(variable)?.includes('$'),
  );
  if (expanded.length > 0) {
    const message = `${expanded.join(', ')}: the value contains a $. The doctor does not expand variables. If ConfigModule does (expandVariables), the application gets another value: write \\$ for a literal $.`;
    reporter.add('variables', ok(message));
  }
  // Windows has no such user.
  if (process.geteuid?.() === 0 && OPTIONS.some(({ option }) => isFile(valueOf(merged, option)))) {
    const message =
      'The doctor runs as root, who may read every file. If the application runs as another user, run the doctor as that user too.';
    reporter.add('user', ok(message));
  }
  if (options && faults.length === 0) {
    const { environment, authentication, addresses, oauth } = options;
    const { baseUrl, tokenUrl } = addresses;
    const tokens = oauth && tokenUrl ? `tokens come from ${tokenUrl}` : 'OAuth is not configured';
    const message = `${environment}, ${authentication}: calls go to ${baseUrl}; ${tokens}.`;
    reporter.add('mode', ok(message));
  }
  // A fault may be about a name that is no option.
  for (const option of new Set([...OPTIONS, ...faults].map((each) => each.option)))
    for (const { name, ...finding } of checkOption(reading, option)) reporter.add(name, finding);
}

/** Every bug report needs these versions. */
function describeVersions(): Finding {
  const nest = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };
  const versions = [`Node ${process.versions.node}`, `NestJS ${nest.version}`, `axios ${axios.VERSION}`];
  return ok(`${versions.join(', ')}, nestjs-service ${VERSION}.`);
}

function describeHowToSetVariables(name: string | undefined): string {
  const simulated = `Without an account, run npx nestjs-service simulator: it writes ${DEFAULT_DIR}/.env. Then start the doctor and the application with --env-file ${DEFAULT_DIR}/.env.`;
  return `Run the doctor in the folder of the application, or name the env file: --env-file <path>. ${GUIDES}/modes.md#the-five-modes lists the variables that each mode needs.${name === undefined ? ` ${simulated}` : ''}`;
}

/** The rows of an option: its faults, its warnings, or its value. None if it is not set, and need not be. */
function checkOption(reading: Reading, option: string): Check[] {
  const { merged, name, faults, warnings, identity, sources, sourceOf } = reading;
  const isOfOption = (fault: { option: string }) => fault.option === option;
  const value = valueOf(merged, option);
  const variable = variableOf(option, name, value) ?? option;
  const set = (name: string) =>
    `Set ${name}${entryOf(option)?.kind === 'secret' ? ` or ${name}_FILE` : ''}, in ${sources}.`;
  const own = faults.filter(isOfOption).map(({ variable = option, message }) => {
    const source = sourceOf(variable);
    const place = variable.endsWith('_FILE') ? `the file, or ${variable}` : variable;
    const remedy = source ? `Correct ${place} in ${source}.` : set(variable);
    return { name: variable, ...failed(capitalize(message), remedy) };
  });
  if (own.length > 0) return own;
  const certificates = faults.length === 0 ? identity?.loaded : undefined;
  if (value !== undefined) {
    const finding =
      (certificates && describePem(reading, option, certificates)) ??
      ok(`${describeValue(reading, option)} (${sourceOf(variable)})`);
    return [{ name: variable, ...finding }];
  }
  const messages = warnings.filter(isOfOption).map(({ message }) => message);
  if (option === 'tls.chain' && certificates?.lacksChain) {
    const publicRoots = `tls.publicRoots (${variableOf('tls.publicRoots', name)})`;
    messages.push(
      `Is not set, so the service's certificate is verified against Node's public roots. In production, a client certificate requires the chain (specification, 5.2.4) or ${publicRoots}.`,
    );
  }
  return messages.map((message) => ({ name: variable, ...warning(capitalize(message), set(variable)) }));
}

/** Capitalizes the first word, but not a host or option name: `api.service.example refused ...` stays as it is. */
function capitalize(text: string): string {
  return text.replace(/^[a-z](?=[a-z]* )/, (first) => first.toUpperCase());
}

/** Shows a value unless it may contain a secret. */
function describeValue({ merged, faults }: Reading, option: string): string {
  const value = valueOf(merged, option);
  const kind = entryOf(option)?.kind;
  if (isFile(value))
    return isPlainPath(value.file) ? `the file ${value.file}` : 'a file; its path is not shown here';
  // The URL of a proxy may contain a password, so only these two words are shown.
  const isWord = option === 'http.proxy' && (value === ENVIRONMENT || value === NONE);
  // An address that is not valid may contain a password.
  if (kind === 'address' && faults.length > 0 && !isWord) return 'set; shown once all options are valid';
  return isWord || (kind !== 'secret' && kind !== 'text') ? String(value) : 'set; not shown here';
}

function describePem(
  { merged, name }: Reading,
  option: string,
  identity: LoadedIdentity,
): Finding | undefined {
  const { certificate, keyType, sent, chain } = identity;
  if (option === 'tls.privateKey') return ok('The key fits the certificate; not shown here.');
  if (option === 'tls.chain' && chain.length > 0) return describeChain(chain);
  if (option !== 'tls.certificate' || !certificate) return undefined;
  const now = Date.now();
  const others = listCertificates(sent.slice(1), quoteSubject);
  const after = others && ` Sent after it: ${others}.`;
  const message = `${describeCertificate(certificate)}, issued by "${certificate.issuer}", key type ${keyType}, valid to ${formatDate(certificate.validTo)}, ${daysLeft(certificate, now)} days left.${after}`;
  const places = ['tls.certificate', 'tls.privateKey'].map((each) =>
    variableOf(each, name, valueOf(merged, each)),
  );
  if (isUnsupportedInTls13(keyType)) {
    return warning(
      `${message} TLS 1.3 has no signature algorithm for a key of this type, so a server that uses TLS 1.3 does not get the certificate.`,
      `Generate a new certificate with an RSA or P-256 key in the developer portal, and put them into ${places.join(' and ')}.`,
    );
  }
  const ending = sent.map(summarize).find((each) => isDueForRenewal(each, now));
  if (!ending) return ok(message);
  return warning(
    `${message} ${describeCertificate(ending)} expires on ${formatDate(ending.validTo)}.`,
    `Generate a new certificate in the developer portal, and put it and its key into ${places.join(' and ')}.`,
  );
}

function describeChain(chain: readonly X509Certificate[]): Finding {
  const message = `The API's certificate is verified against these only: ${listCertificates(chain, (each) => `${quoteSubject(each)} (valid to ${formatDate(each.validTo)})`)}.`;
  const ending = chain.filter((each) => isDueForRenewal(summarize(each), Date.now()));
  if (ending.length === 0) return ok(message);
  const more = ending.length > 1 ? `, and so have ${ending.length - 1} more` : '';
  return warning(
    `${message} ${quoteSubject(ending[0])} has expired or expires soon${more}.`,
    'Download the current chain from the developer portal.',
  );
}
