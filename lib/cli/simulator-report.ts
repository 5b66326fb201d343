import { isLoopback } from '../config/address.js';
import { variablePrefix } from '../config/names.js';
import { containsSecret, NOT_SHOWN } from '../errors/clean-text.js';
import { DEFAULT_BRAND } from '../testing/module-options.js';
import { type RecordedRequest } from '../testing/request-log.js';
import { listensOnAll } from '../testing/simulated-service.js';
import { type CertificateRefusal, type SimulatorAddress } from '../testing/simulator.options.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { escapeControls } from './command.js';
import { type SimulatorFiles } from './simulator-files.js';
import { ADDRESSES } from './simulator-options.js';

/** The variable of each address, without its prefix, and what authenticates a call to it. */
const ADDRESS_ROWS: Readonly<Record<SimulatorAddress, readonly [suffix: string, takes: string]>> = {
  baseUrl: ['BASE_URL', 'a client certificate and the app token, or a bearer'],
  oauthBaseUrl: ['OAUTH_BASE_URL', 'a bearer (not set in .env)'],
  sandboxUrl: ['SANDBOX_URL', 'the app token, or a bearer'],
  sandboxMtlsUrl: ['SANDBOX_MTLS_URL', 'a client certificate and the app token, or a bearer'],
  authUrl: ['AUTH_URL', 'POST /oauth2/token'],
  sandboxAuthUrl: ['SANDBOX_AUTH_URL', 'POST /oauth2/token'],
};

/**
 * Lists the addresses and files of the simulator, and commands to try.
 *
 * @param options.stateLine says whether the certificates and credentials are new
 * @param options.routes the routes of --routes
 */
export function describeSimulator(
  simulator: ServiceSimulator,
  files: SimulatorFiles,
  { name, stateLine, routes }: { name?: string; stateLine: string; routes: readonly string[] },
): string {
  const { urls, appToken } = simulator;
  const { appTokenHeader = DEFAULT_BRAND.appTokenHeader } = simulator.moduleOptions();
  const table = ADDRESSES.map((address) => {
    const [suffix, takes] = ADDRESS_ROWS[address];
    const prefix = variablePrefix(name);
    return `  ${prefix}${suffix.padEnd(16)}  ${urls[address]}  ${takes}`;
  });
  const curl = [
    'curl',
    ...['--cacert', files.chain, '--cert', files.certificate, '--key', files.privateKey],
    ...['-H', `${appTokenHeader}: ${appToken}`, `${urls.baseUrl}/banks/v1`],
  ];
  const configured = [...(name === undefined ? [] : ['--name', name]), '--env-file', files.env];
  const doctor = ['npx', 'nestjs-service', 'doctor', ...configured];
  const call = ['npx', 'nestjs-service', 'call', 'GET', '/banks/v1', ...configured];
  const start = ['npx', 'nest', 'start', '--env-file', files.env];
  return [
    'The simulated service is running. Ctrl+C stops it.',
    '',
    ...table,
    ...routes.map((route) => `  Also answers ${printable(route)}`),
    '',
    `Certificates and variables: ${files.folder}`,
    `  ${stateLine}`,
    '',
    name === undefined
      ? 'Try it:'
      : `Try it, with ServiceModule.forRoot({ name: '${name}' }) in the application:`,
    ...[curl, doctor, call, start].map((command) => `  ${command.map(quoteForShell).join(' ')}`),
    '',
    'Requests:',
    '',
  ].join('\n');
}

/** One line for each request, without its query, which may contain personal data. */
export function describeRequest(
  { receivedAt, method, path, status, face, error }: RecordedRequest,
  milliseconds: number,
): string {
  const [pathname = ''] = path.split('?');
  const answered = status === undefined ? 'no answer' : String(status);
  const reason = error === undefined ? '' : `: ${printable(error)}`;
  return `${formatTime(receivedAt)} ${method} ${printable(pathname)} ${answered} ${Math.round(milliseconds)} ms (${face})${reason}\n`;
}

/** The part of a credential that is shown. */
const SCHEME = /^(Bearer|Basic) +/i;
/** Stands in the place of a credential. */
const CUT = '[cut]';
/** The values of these fields, in a form and in JSON. */
const SECRET_FIELDS =
  /(?<=\b(?:client_secret|client_assertion)=)[^&]*|(?<="(?:client_secret|client_assertion)"\s*:\s*")(?:\\.|[^"\\])*/g;
const MAX_SHOWN = 10_000;

/**
 * What arrived, for `--verbose`: path with query, client certificate, headers and body. Credentials are cut, also in places where they
 * do not belong, such as a token in the body.
 */
export function describeContent(request: RecordedRequest, appTokenHeader: string): string {
  const { method, path, headers, body, certificateSubject } = request;
  const credentials = ['authorization', 'proxy-authorization', 'cookie', appTokenHeader.toLowerCase()];
  const secrets = credentials.map((name) => (headers[name] ?? '').replace(SCHEME, ''));
  const cut = (text: string) =>
    containsSecret(text, secrets) ? NOT_SHOWN : text.replace(SECRET_FIELDS, CUT).slice(0, MAX_SHOWN);
  const lines = Object.entries(headers).map(([name, value]) => {
    const shown = credentials.includes(name) ? (SCHEME.exec(value)?.[0] ?? '') + CUT : cut(value);
    return `${name}: ${shown}`;
  });
  const certificate = certificateSubject === undefined ? [] : [`client certificate: ${certificateSubject}`];
  const rest = body.length > MAX_SHOWN ? `[the first ${MAX_SHOWN} of ${body.length} characters]` : '';
  const content = body === '' ? [] : ['', ...cut(body).split('\n'), rest];
  const shown = [`${method} ${cut(path)}`, ...certificate, ...lines, ...content];
  return `${shown.map((line) => `  ${escapeControls(line)}`.trimEnd()).join('\n')}\n`;
}

/** Warns if other hosts can reach the simulator. Empty if it listens on loopback. */
export function describeReach(host: string | undefined, names: readonly string[]): string {
  if (host === undefined || host === '::1' || isLoopback(host)) return '';
  const isNamed = names.length > 0 || !listensOnAll(host);
  const hint = isNamed
    ? ''
    : ' The address in .env is that of this machine only. For clients on other hosts add --san <name>.';
  return `Warning: the simulator listens on ${host}, so every host of the network can call it. Use it only for tests, in a network that you trust.${hint}\n`;
}

export function describeRefusal({ face, alert, certificateSubject }: CertificateRefusal): string {
  const whose =
    certificateSubject === undefined ? 'no client certificate' : `"${printable(certificateSubject)}"`;
  return `${formatTime(Date.now())} TLS connection refused: ${alert}, ${whose} (${face})\n`;
}

function formatTime(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}

/** A client may send escape sequences, which a terminal would obey. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?');
}

function quoteForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
