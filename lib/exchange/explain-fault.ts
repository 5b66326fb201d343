import {
  type AddressOption,
  CLIENT_CLOSED,
  type ConnectionErrorKind,
  fillExplanation,
  type Explanation,
} from '../errors/index.js';
import { formatDate } from '../time/clock.js';
import {
  type ExchangeFaultDetails,
  FOREIGN_CONNECTION,
  INTERCEPTOR_TIMEOUT,
  isUnsent,
} from './exchange.types.js';

/** The destination of an exchange, and how that is configured. */
export interface FaultPlace extends AddressOption {
  url: Pick<URL, 'href' | 'protocol' | 'hostname' | 'port'>;
  server: 'api' | 'token';
  /** `tls.chain` is set. */
  hasChain?: boolean;
  /** A client certificate is offered to it. */
  hasCertificate?: boolean;
  /** How it is reached. The URL of a proxy may have a password. */
  http?: {
    proxyFor?: (address: string) => { reveal(): string } | undefined;
    /** The variable with a proxy for the address, which is ignored because `http.proxy` is left out. */
    ignoredProxyFor?: (address: string) => string | undefined;
  };
}

/** Without a phase, it is a fault of the doctor, which only connects. */
export type ExplainedFault = Pick<ExchangeFaultDetails, 'kind'> &
  Partial<ExchangeFaultDetails> & {
    /** The server's certificate, as the doctor has seen it; or where a redirect leads. */
    detail?: string;
  };

/** The meaning of a fault. Values that {@link explainFault} knows, and in a hint options, are in braces. */
interface FaultExplanation {
  reason?: RegExp;
  when?: (fault: ExplainedFault, place: FaultPlace) => boolean;
  /** Follows the place in the message. The reason comes at `{reason}`, else at the end. */
  message: string;
  hint?: string;
}

const TELL = `Check {address}. If it is right, tell the service's operator.`;
/** Without a client certificate, servers that demand one send these; 40 also if there is no cipher in common. */
const MAY_MISS_CERTIFICATE = /_ALERT_(HANDSHAKE_FAILURE|DECODE_ERROR|CERTIFICATE_REQUIRED)$/;
const HANDSHAKE_FAILURE = /_ALERT_HANDSHAKE_FAILURE$/;
const DOCTOR = ' npx nestjs-service doctor shows the certificates.';
const OTHER_SERVER = `If it is right, something else answers in the service's place, for example {opener}, which has to leave {host} alone.{doctor}`;
/** OpenSSL's codes for bytes that are no TLS. */
const NO_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL/;
const OF_PROXY =
  'Check host and port of {http.proxy}, and whether it is an http: or an https: proxy. If they are right, ask who runs the proxy whether it reaches {host}, port {port}.';
/** A network that has a proxy often lets nothing else out. */
const PAST_THE_PROXY =
  '{variable} is set, but ignored: to go through that proxy, set {http.proxy} to environment.';

function isProxied({ http, url }: FaultPlace): boolean {
  return http?.proxyFor?.(url.href) !== undefined;
}

/** For each kind, the first that fits counts; the last one always does. */
const EXPLANATIONS: Readonly<Record<ConnectionErrorKind, readonly FaultExplanation[]>> = {
  timeout: [
    {
      when: ({ phase }) => phase === 'queued',
      message: 'no free connection within {limit}: all connections of http.maxSockets were in use',
      hint: 'Calls that take long hold them: look for those first. Otherwise raise {http.maxSockets}.',
    },
    {
      when: ({ reason }) => reason === INTERCEPTOR_TIMEOUT,
      message: 'an interceptor of the application had not settled within {limit}{reason}.',
      hint: 'Give what it waits for a time limit of its own. If it needs longer, raise the `timeout` of the call, or {http.timeout}.',
    },
    {
      when: ({ phase, reusedSocket }) => phase === 'connecting' && reusedSocket === true,
      message:
        'nothing was sent: {limit} was over before. Waiting took it all, or this process did not run meanwhile.',
      hint: 'If the limit is short, raise it: the `timeout` of the call, or {http.timeout}. Otherwise find out what held the process: too little CPU, or code that blocks the event loop.',
    },
    {
      when: (fault, place) => isUnsent(fault) && isProxied(place),
      message:
        'no connection within {limit}{reason}: the proxy{proxy} opened no tunnel, or {host} did not answer behind it.',
      hint: OF_PROXY,
    },
    {
      when: isUnsent,
      message:
        'no connection to {host}, port {port}, within {limit}{reason}{tried}. Mostly a firewall that drops packets without a word; or a server that is down or does not answer the handshake.',
      hint: 'Ask who runs the network to allow connections to {host}, port {port}. Check host and port of {address} too. If the way is only long, raise {http.connectTimeout}.',
    },
    {
      when: (_, { server }) => server === 'token',
      message: '{waited} within {limit}',
      hint: "Try again later. If it stays so, tell the service's operator that the endpoint is slow.",
    },
    {
      message: '{waited} within {limit}',
      hint: 'If such calls need longer, raise the time limit: the `timeout` of the call, or {http.timeout}; for one attempt {http.attemptTimeout}. Otherwise the service is slow: tell its operator.',
    },
  ],
  reset: [
    {
      when: (fault) => fault.certificateSuspected === true && !isUnsent(fault),
      message:
        'the connection ended before any byte of an answer{reason}. Either the server refused the client certificate (some do so without a TLS alert: Node, uvicorn, lighttpd with GnuTLS), or it crashed or restarted{orProxy}.',
      hint: `Check {tls.certificate}: is it of this application and this environment, and made for clients (extended key usage clientAuth)? If it is right, ask the service's operator what the log of the server says.`,
    },
    {
      when: (fault, place) => isUnsent(fault) && !fault.reusedSocket && isProxied(place),
      message:
        'the tunnel of the proxy{proxy} ended in the TLS handshake, before anything was sent{reason}. Either the proxy does not reach {host}, port {port} (Squid may open a tunnel before it connects), or it is a web server that answers CONNECT like any request, or the server ended the connection.',
      hint: `${OF_PROXY} If it does, check {address}{andCertificate}.`,
    },
    {
      when: (_, place) => isProxied(place),
      message:
        'the connection ended before the whole answer was there{reason}: by the server, or by the proxy{proxy}, which may end a tunnel over which nothing is sent for a while (Apache after 60 s).',
      hint: 'If long calls end so, always after the same time, ask who runs the proxy in {http.proxy} to raise its idle limit.',
    },
    {
      when: (fault, { url }) => isUnsent(fault) && !fault.reusedSocket && url.protocol === 'https:',
      message:
        'the server ended the connection before anything was sent, without a reason{reason}. Likely a firewall or load balancer that does not let this machine or host name through; or a server that {orRefuses}is not for TLS.',
      hint: `Check {address}. If it is right, ask the service's operator whether the address of this machine has to be allowed first{andCertificate}.`,
    },
    {
      when: (_, { url }) => url.protocol === 'http:',
      message:
        'the connection ended before the whole answer was there{reason}. The address begins with http:, for a sidecar on this machine.',
      hint: 'Look into the log of what listens at {address}: Apache and HAProxy end the connection so if the service refused the client certificate of the sidecar before. If that is no sidecar but the server itself, write https: there.',
    },
    { message: 'the connection ended before the whole answer was there' },
  ],
  refused: [
    {
      message:
        'the connection was refused{reason}. Nothing listens there, or a firewall rejects connections.',
      hint: `Check host and port of {address}, and that what should listen there runs.`,
    },
  ],
  dns: [
    {
      message: 'the name {host} could not be looked up',
      hint: `Check the spelling in {address}. If it is right, the name may be known in another network only (a VPN, a cluster's own DNS), or this machine has no DNS server that answers.`,
    },
  ],
  tls: [
    {
      reason: new RegExp(`^${FOREIGN_CONNECTION}$`),
      message:
        "nothing was sent, because the connection was not made by this module: it has neither the client certificate nor the module's verification. Something in this process replaces the agent of all requests, most likely global-agent{reason}.",
      hint: 'Remove that, or let it leave requests with an agent of their own alone (global-agent: GLOBAL_AGENT_FORCE_GLOBAL_AGENT=false). To use a proxy, set {http.proxy}.',
    },
    {
      when: ({ certificateSuspected }) => certificateSuspected === true,
      message: 'the server ended the TLS handshake{reason}. It may have refused the client certificate.',
      hint: `Check {tls.certificate}: is it of this application and this environment, and made for clients (extended key usage clientAuth)? If it is right, tell the service's operator.`,
    },
    {
      when: ({ reason = '', certificateRefused }, { server, hasCertificate }) =>
        server === 'token' &&
        !hasCertificate &&
        (certificateRefused === true || MAY_MISS_CERTIFICATE.test(reason)),
      message:
        'the server ended the TLS handshake{reason}. It may ask for a client certificate, and none is offered.',
      hint: `Set {oauth.mtls} to true (with {tls.certificate} and {tls.privateKey}); or put an address that does not ask for one into {address}.`,
    },
    {
      reason: MAY_MISS_CERTIFICATE,
      when: (_, { hasCertificate }) => !hasCertificate,
      message:
        'the server ended the TLS handshake{reason}. It may demand a client certificate, and none is configured; or it has no cipher in common with this client.',
      hint: `If {address} is one for mutual TLS, set {tls.certificate} and {tls.privateKey}. ${TELL}`,
    },
    {
      reason: HANDSHAKE_FAILURE,
      when: isUnsent,
      message:
        'the server ended the TLS handshake{reason} before it asked for anything: mostly it has no cipher in common with this client, or does not know the host name',
      hint: TELL,
    },
    {
      reason: HANDSHAKE_FAILURE,
      message:
        'the server ended the TLS handshake{reason}. It may demand a client certificate, of a kind it takes.',
      hint: 'Check {tls.certificate} and {address}.',
    },
    {
      reason: NO_TLS,
      when: (_, place) => isProxied(place),
      message:
        'what comes out of the tunnel of the proxy{proxy} is not TLS{reason}. Either it is a page of the proxy, which does not reach {host}, port {port} (Squid may open a tunnel before it connects), or a server of plain HTTP listens there.',
      hint: OF_PROXY,
    },
    {
      reason: NO_TLS,
      message: 'the server answers with something that is not TLS, for example plain HTTP',
      hint: `Put the port of HTTPS into {address} (443 if none is named).`,
    },
    {
      reason: /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/,
      message:
        "the server's certificate has expired or is not valid yet{detail}{reason}. This machine's clock says {now}.",
      hint: `Compare this machine's clock with the real time. If it is right, only the service's operator can renew the certificate: tell them.{doctor}`,
    },
    {
      reason: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
      message: "the server's certificate is for another host name{detail}, not for {host}",
      hint: `Put the host name that the service's documentation gives into {address}. ${OTHER_SERVER}`,
    },
    {
      reason: /^CERT_SIGNATURE_FAILURE$/,
      message:
        "the server's certificate is not signed by what it is verified against: {trust}. An authority there has the same name, but another key{detail}{reason}.",
      hint: `If {tls.chain} has two certificates of that name, leave only the one that the developer portal has now. It may also be the chain of another environment. Check {address} too. ${OTHER_SERVER}`,
    },
    {
      reason: /^(UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_UNTRUSTED|INVALID_CA)/,
      message:
        "the server's certificate is not signed by what it is verified against: {trust}{detail}{reason}.",
      hint: `Download the whole chain of this environment from the developer portal (authentication section, "certificate chain"), and put it into {tls.chain}. Check {address} too. ${OTHER_SERVER}`,
    },
    {
      reason: /^(CERT_|CRL_|INVALID_|PATH_LENGTH|HOSTNAME_|ERROR_IN_CERT|UNSPECIFIED)/,
      message: "the server's certificate was refused{opensslText}{detail}{reason}.",
      hint: `Check {address}. It may also be that of {opener}, which has to leave {host} alone. Otherwise only the service's operator can replace the certificate: tell them.{doctor}`,
    },
    { message: 'the TLS connection failed', hint: TELL },
  ],
  proxy: [
    {
      reason: /_AUTH_SCHEME$/,
      message:
        'the proxy{proxy} wants a way to log in that is not supported (NTLM, Negotiate): only Basic is',
      hint: 'User and password are not at fault. Ask who runs the proxy for Basic, or for a way without a password; or run a helper such as cntlm on this machine, and put it into {http.proxy}.',
    },
    {
      reason: /_TUNNEL_40[17]$/,
      message: 'the proxy{proxy} refuses the user and password, or wants them',
      hint: 'Check {http.proxy}: http://user:password@host:port, with reserved characters percent-encoded.',
    },
    {
      reason: /_TUNNEL_(400|405|501)$/,
      message: 'what listens at{proxy} is not a proxy: it refuses CONNECT, as web servers do',
      hint: 'Check host and port of {http.proxy}.',
    },
    {
      reason: /_TUNNEL_(404|5\d\d)$/,
      message:
        'the proxy{proxy} cannot reach {host}, port {port}: it cannot look the name up, or gets no answer',
      hint: `Check the host and port in {address}. If they are right, ask who runs the proxy in {http.proxy}.`,
    },
    {
      reason: /_TUNNEL_4/,
      message: 'the proxy{proxy} does not allow connections to {host}',
      hint: `Ask who runs the proxy to allow {host}. Check {http.proxy} and {address}.`,
    },
    {
      reason: /^ERR_PROXY_(CERT_|SELF_SIGNED|UNABLE_TO_|DEPTH_ZERO|TLS_CERT|INVALID_|UNSPECIFIED)/,
      message: "the certificate of the proxy{proxy} was refused. It is verified against Node's public roots",
      hint: `If an authority of your own signed it, name that authority's certificate in NODE_EXTRA_CA_CERTS. Check {http.proxy} too.`,
    },
    {
      message: 'the proxy{proxy} cannot be reached, or opens no tunnel to {host}',
      hint: OF_PROXY,
    },
  ],
  protocol: [
    {
      reason: /^HPE_HEADER_OVERFLOW$/,
      message: 'the headers of the answer are larger than Node takes',
      hint: `Start Node with --max-http-header-size=65536 (NODE_OPTIONS has it too). If that is not enough, tell the service's operator.`,
    },
    {
      reason: /^HPE_/,
      message: 'the answer is malformed: it breaks a rule of HTTP/1.1, {rule}',
      hint: `What answers may speak another protocol, or be a proxy that changes answers. ${TELL}`,
    },
    {
      reason: /^ERR_HTTP_CONTENT_CODING$/,
      message:
        'the answer is malformed: its Content-Encoding is not one that was asked for (gzip, deflate, br)',
      hint: TELL,
    },
    {
      reason: /^(Z_|ERR_(BROTLI|_ERROR)_)/,
      message: 'the answer is malformed: its body is not what its Content-Encoding says, or is cut',
      hint: TELL,
    },
    { message: 'the exchange broke a rule of HTTP' },
  ],
  redirect: [
    {
      message: 'it answers with a redirect{detail}, which is never followed',
      hint: `Put the address where the token endpoint is into {address}. If only a slash at the end is added, the server wants /oauth2/token/, which cannot be set: ask its operator to take the address without it.`,
    },
  ],
  too_large: [
    {
      when: (_, { server }) => server === 'api',
      message: 'the answer is larger than http.maxResponseBytes, or maxResponseBytes of the call',
    },
    { message: 'the answer is too large' },
  ],
  closed: [{ reason: /^ERR_CANCELED$/, message: 'the call was cancelled' }, { message: CLIENT_CLOSED }],
  network: [
    {
      reason: /^E[MN]FILE$/,
      message: 'too many files and connections are open{reason}. No connection could be made.',
      hint: 'Raise the limit of open files (ulimit -n), or look for what leaves files or connections open.',
    },
    {
      message: 'the network failed',
      hint: 'Check the network of this machine, and host and port of {address}.',
    },
  ],
};

/** Explains a fault: message, and what to do. */
export function explainFault(where: string, fault: ExplainedFault, place: FaultPlace): Explanation {
  const { url, http, server, hasChain, hasCertificate } = place;
  const { kind, phase, reason = '', opensslText, limitMs, addresses, detail } = fault;
  const isFitting = (row: FaultExplanation): boolean =>
    (row.reason?.test(reason) ?? true) && (row.when?.(fault, place) ?? true);
  const { message, hint } = EXPLANATIONS[kind].find(isFitting) ?? EXPLANATIONS.network[1];
  // A server that gets none cannot refuse it.
  const asked = hint?.replace(
    '{andCertificate}',
    hasCertificate ? ', and whether {tls.certificate} is accepted' : '',
  );
  const variable = isServerUnreached(fault) ? http?.ignoredProxyFor?.(url.href) : undefined;
  const secret = http?.proxyFor?.(url.href);
  // Its host alone: it may have a password.
  const proxy = secret && ` ${new URL(secret.reveal()).host}`;
  const roots = hasChain && server === 'api' ? [] : ["Node's public roots"];
  const explained = fillExplanation(
    message.includes('{reason}') ? message : `${message}{reason}.`,
    { hint: variable === undefined ? asked : `${asked} ${PAST_THE_PROXY}` },
    {
      variable,
      proxy,
      orProxy: proxy && `, or the proxy${proxy} ended the tunnel`,
      orRefuses: hasCertificate ? 'refuses the client certificate, or ' : '',
      opener: proxy === undefined ? 'a proxy that opens TLS' : `the proxy${proxy}, if it opens TLS`,
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port || (url.protocol === 'https:' ? '443' : '80'),
      tried: addresses?.length ? `; its addresses, tried one after the other: ${addresses.join(', ')}` : '',
      detail,
      opensslText: opensslText && `: ${opensslText}`,
      // It has seen them.
      doctor: detail === undefined ? DOCTOR : undefined,
      trust: [...roots, hasChain ? "tls.chain, the service's public chain" : []].flat().join(' and '),
      waited:
        phase === 'reading'
          ? 'the answer began, but its rest did not arrive'
          : 'the request was sent, but no answer began',
      limit: limitMs === undefined ? 'the time limit' : `${Math.max(0, Math.round(limitMs))} ms`,
      now: formatDate(Date.now()),
      rule: reason.replace('HPE_', '').replaceAll('_', ' ').toLowerCase(),
      // A code of the system says the same without our prefix.
      reason: reason && ` (${reason.replace(/^ERR_PROXY_(?=E[A-Z]+$)/, '')})`,
    },
    place,
  );
  // A fault inside a tunnel may always be the proxy's.
  const isNamed = proxy === undefined || kind === 'closed' || explained.message.includes(proxy);
  return {
    ...explained,
    message: `${where}${isNamed ? '' : `, through the proxy${proxy}`}: ${explained.message}`,
  };
}

/** Whether nothing of the service has answered. */
function isServerUnreached(fault: ExplainedFault): boolean {
  return /^(dns|refused|timeout|reset|network)$/.test(fault.kind) && isUnsent(fault) && !fault.reusedSocket;
}
