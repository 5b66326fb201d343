import { isLoopback } from '../config/address.js';
import { variablePrefix } from '../config/module-name.js';
import { DEFAULT_HEADERS } from '../testing/module-options.js';
import { type RecordedRequest } from '../testing/request-log.js';
import { listensOnAll } from '../testing/server-names.js';
import { type CertificateRefusal, type SimulatorAddress } from '../testing/simulator.options.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { type SimulatorFiles } from './simulator-files.js';
import { ADDRESSES } from './simulator-options.js';

/** By address: the variable that takes it, without its prefix, and what is to be sent there. */
const USES: Readonly<Record<SimulatorAddress, readonly [suffix: string, takes: string]>> = {
  baseUrl: ['BASE_URL', 'a client certificate and the app token, or a bearer'],
  oauthBaseUrl: ['OAUTH_BASE_URL', 'a bearer'],
  sandboxUrl: ['SANDBOX_URL', 'the app token, or a bearer'],
  sandboxMtlsUrl: ['SANDBOX_MTLS_URL', 'a client certificate and the app token, or a bearer'],
  authUrl: ['AUTH_URL', 'POST /oauth2/token'],
  sandboxAuthUrl: ['SANDBOX_AUTH_URL', 'POST /oauth2/token'],
};

/** What there is, and how to begin. `kept`: a line about certificates and credentials; `routes`: those of --routes. */
export function describeSimulator(
  simulator: ServiceSimulator,
  files: SimulatorFiles,
  { name, kept, routes }: { name?: string; kept: string; routes: readonly string[] },
): string {
  const { urls, appToken } = simulator;
  const { appTokenHeader = DEFAULT_HEADERS.appTokenHeader } = simulator.moduleOptions();
  const table = ADDRESSES.map((address) => {
    const [suffix, takes] = USES[address];
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
    'The simulated service listens. Ctrl+C ends it.',
    '',
    ...table,
    ...routes.map((route) => `  Also answers ${printable(route)}`),
    '',
    `Certificates and variables: ${files.folder}`,
    `  ${kept}`,
    '',
    name === undefined
      ? 'Try it:'
      : `Try it, with ServiceModule.forRoot({ name: '${name}' }) in the application:`,
    ...[curl, doctor, call, start].map((command) => `  ${command.map(shellQuoted).join(' ')}`),
    '',
    'Requests:',
    '',
  ].join('\n');
}

/** One line, without the query: that may hold what is nobody's business. */
export function describeRequest(
  { receivedAt, method, path, status, face, error }: RecordedRequest,
  milliseconds: number,
): string {
  const [pathname = ''] = path.split('?');
  const answered = status === undefined ? 'no answer' : String(status);
  const reason = error === undefined ? '' : `: ${printable(error)}`;
  return `${time(receivedAt)} ${method} ${printable(pathname)} ${answered} ${Math.round(milliseconds)} ms (${face})${reason}\n`;
}

/** A warning about who can reach it, and by which name. */
export function describeReach(host: string | undefined, names: readonly string[]): string {
  if (host === undefined || host === '::1' || isLoopback(host)) return '';
  const isNamed = names.length > 0 || !listensOnAll(host);
  const hint = isNamed ? '' : ' Others need a name in .env and the certificate: add --san <name>.';
  return `Warning: it listens on ${host}, where every host of the network can call it. It is for tests, in networks that you trust.${hint}\n`;
}

export function describeRefusal({ face, alert, certificateSubject }: CertificateRefusal): string {
  const whose =
    certificateSubject === undefined ? 'no client certificate' : `"${printable(certificateSubject)}"`;
  return `${time(Date.now())} TLS connection refused: ${alert}, ${whose} (${face})\n`;
}

function time(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}

/** A client may send what a terminal would take for a command. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?');
}

function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
