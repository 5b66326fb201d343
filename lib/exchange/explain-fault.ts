import {
  type AddressOption,
  CLIENT_CLOSED,
  explain,
  type ConnectionErrorKind,
  type Explanation,
} from '../errors/index.js';
import { HANDSHAKE_FAILURE } from './classify.js';
import { CONNECT_TIMEOUT, type ExchangeFaultDetails } from './exchange.types.js';

/** The destination of an exchange, and how that is configured. */
export interface FaultPlace extends AddressOption {
  url: Pick<URL, 'href' | 'protocol' | 'hostname' | 'port'>;
  server: 'api' | 'token';
  /** `tls.chain` is set. */
  hasChain?: boolean;
  /** How it is reached. The URL of a proxy may have a password. */
  http?: {
    proxyFor?: (address: string) => { reveal(): string } | undefined;
    /** The variable with a proxy for the address, which is ignored because `http.proxy` is left out. */
    ignoredProxyFor?: (address: string) => string | undefined;
  };
}

export type ExplainedFault = Pick<ExchangeFaultDetails, 'kind'> &
  Partial<ExchangeFaultDetails> & {
    /** The server's certificate, as the doctor has seen it. */
    shown?: string;
    /** Node's public roots would verify the server. */
    isPublic?: boolean;
  };

/**
 * The meaning of a fault. `{host}`, `{port}`, `{address}` (its option), `{proxy}`, `{tried}`, `{now}`, `{limit}`, `{late}`, `{trust}`,
 * `{shown}`, `{doctor}` and options are filled in.
 */
interface Row {
  kind?: ConnectionErrorKind;
  reason?: RegExp;
  server?: FaultPlace['server'];
  protocol?: 'http:' | 'https:';
  /** There was no connection yet. */
  isConnecting?: true;
  isProxied?: true;
  lacksChain?: true;
  isPublic?: true;
  /** Several addresses of the name were tried. */
  hasAddresses?: true;
  isCertificateRefused?: true;
  /** The process stood still. */
  isLate?: true;
  /** Follows the place in the message. The reason comes at `{reason}`, else at the end. */
  what: string;
  hint?: string;
}

const CLOCK = "Compare this machine's clock with the real time first.";
const TELL = `Check {address}. If it is right, tell the service's operator.`;
const ALLOW =
  'Ask who runs the network to allow connections to {host}, port {port}. Check host and port of {address} too.';
const SILENT =
  'The server took none, or did not answer the TLS handshake in time: mostly a firewall that drops packets without a word, or a server that is down or overloaded.';
/** `http:` is for loopback alone. */
const SIDECAR = 'Look whether the sidecar at {address} runs, and into its log.';
const PROXY_SILENT =
  'Check host and port of {http.proxy}, and whether it is an http: or an https: proxy. If they are right, ask who runs the proxy whether it reaches {host}, port {port}.';
/** A network that has a proxy often lets nothing else out. */
const PAST_THE_PROXY =
  '{variable} is set, but ignored: to go through that proxy, set {http.proxy} to environment.';
/** A time limit that is seen later than this was not late because of other work. */
const STANDSTILL_MS = 1_000;
const DOCTOR = ' npx nestjs-service doctor shows the certificates.';
const UNSIGNED: Row = {
  kind: 'tls',
  reason: /^(UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_|CRL_|INVALID_CA)/,
  what: "the server's certificate is not signed by what it is verified against: {trust}{shown}",
};
const GET_CHAIN =
  'Download the whole chain of this environment from the developer portal (authentication section, "certificate chain"), and put it into {tls.chain}';
const OTHER_SERVER = `If that changes nothing, something between may answer in the service's place, for example a proxy that opens TLS, which has to leave {host} alone: check {address} too.{doctor}`;
const ROOTS = "Node's public roots";
const CHAIN = "tls.chain, the service's public chain";
const ENDED_BY_FAILURE = {
  reason: new RegExp(`^${HANDSHAKE_FAILURE}$`),
  what: 'the server ended the TLS handshake: handshake_failure{reason}. It may demand a client certificate, of a kind it takes.',
} as const;

/** The first that fits counts. */
const ROWS: readonly Row[] = [
  {
    reason: /^(ERR_PROXY_)?E[MN]FILE$/,
    what: 'too many files and connections are open{reason}. No connection could be made.',
    hint: 'Raise the limit of open files (ulimit -n), or look for what leaves files or connections open.',
  },
  {
    reason: /^ERR_PROXY_TUNNEL_ENDED$/,
    what: 'the proxy ended the idle connection; nothing of this call had gone through it',
    hint: 'Send the call again.',
  },
  {
    reason: /^ERR_PROXY_TUNNEL_407$/,
    what: 'the proxy refuses the user and password, or wants them',
    hint: 'Check {http.proxy}: http://user:password@host:port, with reserved characters percent-encoded.',
  },
  {
    reason: /^ERR_PROXY_TUNNEL_4/,
    what: 'the proxy{proxy} does not allow connections to {host}',
    hint: `Ask who runs the proxy to allow {host}. Check {http.proxy} and {address}.`,
  },
  {
    reason: /^ERR_PROXY_TUNNEL_/,
    what: 'the proxy{proxy} cannot reach {host}',
    hint: `Check {address}. If it is right, ask who runs the proxy.`,
  },
  {
    reason: /^ERR_PROXY_ECONNREFUSED$/,
    what: 'the connection to the proxy{proxy} was refused{reason}. Nothing listens there, or a firewall rejects connections.',
    hint: 'Check host and port of {http.proxy}.',
  },
  {
    reason: /^ERR_PROXY_TIMEOUT$/,
    what: 'the proxy{proxy} did not open a tunnel to {host} in time',
    hint: PROXY_SILENT,
  },
  {
    kind: 'proxy',
    what: 'the proxy{proxy} cannot be reached, or opens no tunnel to {host}',
    hint: 'Check {http.proxy}: its host and port, and whether it is an http: or an https: proxy.',
  },
  {
    server: 'token',
    isCertificateRefused: true,
    what: 'the server asks for a client certificate and none is offered',
    hint: `Set {oauth.mtls} to true (with {tls.certificate} and {tls.privateKey}); or put an address that does not ask for one into {address}.`,
  },
  { reason: /^ERR_CANCELED$/, what: 'the call was cancelled' },
  { kind: 'closed', what: CLIENT_CLOSED },
  {
    kind: 'dns',
    reason: /^(ENOTFOUND|ENODATA)$/,
    what: 'there is no host with the name {host}',
    hint: `Check the spelling in {address}. If it is right, the name may be known in another network only (a VPN, a cluster's own DNS).`,
  },
  {
    kind: 'dns',
    what: 'the name {host} could not be looked up{reason}. The DNS server did not answer, or answered with a failure.',
    hint: `Check that this machine or container has a network and a DNS server that answers (/etc/resolv.conf), and {address}.`,
  },
  {
    kind: 'timeout',
    isLate: true,
    what: 'no whole answer within {limit}{reason}. This process did not run for {late} meanwhile, so an answer could not be read.',
    hint: 'Find out what held the process: a machine or container that slept or was stopped, too little CPU, or code that blocks the event loop.',
  },
  {
    kind: 'timeout',
    protocol: 'http:',
    isConnecting: true,
    what: 'no connection within {limit}{reason}. What listens there took none, or all connections of http.maxSockets were in use.',
    hint: SIDECAR,
  },
  {
    kind: 'refused',
    what: 'the connection was refused{reason}. Nothing listens there, or a firewall rejects connections.',
    hint: `Check host and port of {address}. If they are right, ask who runs the network whether this machine may connect there.`,
  },
  ...(['reset', 'protocol'] as const).map((kind): Row => ({
    kind,
    protocol: 'http:',
    what: 'the connection ended before the whole answer was there{reason}. The address begins with http:, for a sidecar on this machine.',
    hint: `${SIDECAR} If it is no sidecar but the service itself, write https: there.`,
  })),
  {
    kind: 'reset',
    protocol: 'https:',
    isConnecting: true,
    what: 'the server ended the connection in the TLS handshake, without a reason{reason}. Likely a firewall or load balancer that does not let this machine or host name through; also a server that refuses the client certificate, or that is not for TLS.',
    hint: `Check {address}. If it is right, ask the service's operator whether the address of this machine has to be allowed first, and whether {tls.certificate} is accepted.`,
  },
  {
    kind: 'timeout',
    isConnecting: true,
    isProxied: true,
    what: 'no connection within {limit}{reason}: the proxy{proxy} took none or opened no tunnel in that time, or {host} did not answer the TLS handshake behind it.',
    hint: PROXY_SILENT,
  },
  {
    kind: 'timeout',
    hasAddresses: true,
    what: 'no connection to {host} in time{reason}. It has several addresses; these were tried, one after the other: {tried}.',
    hint: 'Find out which of {tried} this machine can connect to. For the others, ask who runs the network, and who runs the name. If they are only far away, raise {http.connectTimeout}, or, if an attempt has less time than that, the `timeout` of the call, {http.timeout} or {http.attemptTimeout}. Check {address} too.',
  },
  {
    reason: /^HANDSHAKE_TIMEOUT$/,
    what: 'it took the connection and did not answer the TLS handshake in time{reason}. A firewall or load balancer that holds it, or a server that is overloaded; or it is no TLS server and waits for something else.',
    hint: 'Check the port of {address}. If it is right, ask who runs the network or the service.',
  },
  {
    reason: new RegExp(`^${CONNECT_TIMEOUT}$`),
    what: `no connection within {limit}, http.connectTimeout or less if the call has less{reason}: name, TCP, proxy and TLS handshake. ${SILENT}`,
    hint: ALLOW,
  },
  {
    reason: /^ETIMEDOUT$/,
    what: 'no answer to the attempt to connect{reason}. Mostly a firewall that drops packets without a word; or the host is down.',
    hint: ALLOW,
  },
  {
    kind: 'timeout',
    isConnecting: true,
    what: `no connection within {limit}{reason}. ${SILENT} Or all connections of http.maxSockets were in use.`,
    hint: `${ALLOW} If the time limit is short, raise it: {http.timeout}, or the \`timeout\` of the call.`,
  },
  {
    kind: 'timeout',
    server: 'api',
    what: 'no whole answer within {limit}',
    hint: 'If such calls need longer, raise the time limit: the `timeout` of the call, or {http.timeout}; for one attempt {http.attemptTimeout}. Otherwise the service is slow: tell its operator.',
  },
  {
    kind: 'timeout',
    what: 'no whole answer within {limit}',
    hint: "Try again later. If it stays so, tell the service's operator that the endpoint is slow.",
  },
  { kind: 'reset', what: 'the connection ended before the whole answer was there' },
  {
    server: 'token',
    ...ENDED_BY_FAILURE,
    hint: 'For a client certificate, set {oauth.mtls}, and check {tls.certificate}.',
  },
  { ...ENDED_BY_FAILURE, hint: 'Check {tls.certificate} and {address}.' },
  {
    kind: 'tls',
    reason: /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/,
    what: 'the server answers with something that is not TLS, for example plain HTTP',
    hint: `Put the port of HTTPS into {address} (443 if none is named).`,
  },
  {
    kind: 'tls',
    reason: /_(70|PROTOCOL_VERSION)$/,
    what: 'the server wants another version of TLS than 1.2 or 1.3: protocol_version',
    hint: TELL,
  },
  {
    kind: 'tls',
    reason: /_(112|UNRECOGNIZED_NAME)$/,
    what: 'the server knows no host of this name: unrecognized_name',
    hint: TELL,
  },
  { kind: 'tls', reason: /ALERT_/, what: 'the server ended the TLS handshake', hint: TELL },
  {
    reason: /^CERT_HAS_EXPIRED$/,
    what: "the server's certificate has expired{shown}{reason}. This machine's clock says {now}.",
    hint: `${CLOCK} If the clock is right, only the service's operator can renew it: tell them.{doctor}`,
  },
  {
    reason: /^CERT_NOT_YET_VALID$/,
    what: "the server's certificate is not valid yet{shown}{reason}. This machine's clock says {now}.",
    hint: `${CLOCK} A clock that is behind is the usual reason.{doctor}`,
  },
  {
    reason: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    what: "the server's certificate is for another host name{shown}, not for {host}",
    hint: `Put the host name that the service's documentation gives into {address}. If it is right, something else answers at this address, for example a proxy.{doctor}`,
  },
  { reason: /^CERT_REVOKED$/, what: "the server's certificate was revoked", hint: TELL },
  { reason: /^INVALID_PURPOSE$/, what: "the server's certificate is not for servers", hint: TELL },
  {
    reason: /^UNSPECIFIED$/,
    what: "the server's certificate breaks a rule of its chain: a name constraint, a weak key or signature",
    hint: TELL,
  },
  {
    ...UNSIGNED,
    isPublic: true,
    hint: `Check that {address} is the service's own address and not, for example, its website. If it is, the service uses a public certificate: leave {tls.chain} out and set {tls.publicRoots} to true, or put that authority's certificate into it.`,
  },
  {
    ...UNSIGNED,
    lacksChain: true,
    hint: `${GET_CHAIN}, in place of {tls.publicRoots} if that is set. ${OTHER_SERVER}`,
  },
  { ...UNSIGNED, hint: `${GET_CHAIN}. ${OTHER_SERVER}` },
  { kind: 'tls', what: 'the TLS connection failed', hint: TELL },
  {
    kind: 'redirect',
    what: 'it answers with a redirect, which is never followed',
    hint: `Put the address where the token endpoint is into {address}.`,
  },
  {
    kind: 'too_large',
    server: 'api',
    what: 'the answer is larger than http.maxResponseBytes, or maxResponseBytes of the call',
  },
  { kind: 'too_large', what: 'the answer is too large' },
  { kind: 'protocol', what: 'the exchange broke the rules of HTTP' },
];

const UNKNOWN: Row = {
  what: 'the network failed',
  hint: 'Check the network of this machine, and host and port of {address}.',
};

/** Explains a fault: message, and what to do. */
export function explainFault(where: string, fault: ExplainedFault, place: FaultPlace): Explanation {
  const { href, hostname, port, protocol } = place.url;
  const proxy = place.http?.proxyFor?.(href);
  const ignoredProxy = place.http?.ignoredProxyFor?.(href);
  const { what, hint } = ROWS.find((each) => fits(each, fault, place, proxy !== undefined)) ?? UNKNOWN;
  const text = what.includes('{reason}') ? what : `${what}{reason}.`;
  const isPast = ignoredProxy !== undefined && isUnreached(fault);
  const explained = explain(
    text,
    { hint: isPast ? `${hint} ${PAST_THE_PROXY}` : hint },
    {
      variable: ignoredProxy,
      // Its host alone: it may have a password.
      proxy: proxy && ` ${new URL(proxy.reveal()).host}`,
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || (protocol === 'https:' ? '443' : '80'),
      tried: fault.addresses?.join(', '),
      shown: fault.shown,
      // It has seen them.
      doctor: fault.shown === undefined ? DOCTOR : undefined,
      trust: !place.hasChain ? ROOTS : place.server === 'api' ? CHAIN : `${ROOTS} and ${CHAIN}`,
      limit: fault.limitMs === undefined ? 'the time limit' : `${Math.max(0, Math.round(fault.limitMs))} ms`,
      late: `at least ${Math.floor((fault.lateMs ?? 0) / 1000)} s`,
      now: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
      // A code of the system says the same without our prefix.
      reason: fault.reason && ` (${fault.reason.replace(/^ERR_PROXY_(?=E[A-Z]+$)/, '')})`,
    },
    place,
  );
  return { ...explained, message: `${where}: ${explained.message}` };
}

/** Whether nothing of the service has answered. */
function isUnreached({ kind, phase, reusedSocket }: ExplainedFault): boolean {
  if (kind === 'dns' || kind === 'refused') return true;
  // Without a phase, it is a fault of the doctor, which only connects.
  return /^(timeout|reset|network)$/.test(kind) && (phase ?? 'connecting') === 'connecting' && !reusedSocket;
}

function fits(
  row: Row,
  fault: ExplainedFault,
  { server, url, hasChain }: FaultPlace,
  isProxied: boolean,
): boolean {
  const { kind, reason = '', certificateRefused, phase, reusedSocket, addresses, lateMs = 0 } = fault;
  return (
    (row.kind === undefined || row.kind === kind) &&
    (row.reason === undefined || row.reason.test(reason)) &&
    (row.server === undefined || row.server === server) &&
    (row.protocol === undefined || row.protocol === url.protocol) &&
    (!row.isConnecting || (phase === 'connecting' && !reusedSocket)) &&
    (!row.isProxied || isProxied) &&
    (!row.lacksChain || !hasChain) &&
    (!row.isPublic || fault.isPublic === true) &&
    (!row.hasAddresses || Boolean(addresses?.length)) &&
    (!row.isCertificateRefused || certificateRefused === true) &&
    (!row.isLate || lateMs >= STANDSTILL_MS)
  );
}
