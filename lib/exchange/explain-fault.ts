import {
  type AddressOption,
  CLIENT_CLOSED,
  type ConnectionErrorKind,
  fillExplanation,
  type Explanation,
} from '../errors/index.js';
import { formatDate } from '../time/time.js';
import { type ExchangeFaultDetails, FOREIGN_CONNECTION, INTERCEPTOR_TIMEOUT, isUnsent } from './fault.js';

/** The destination of an exchange, and how it is configured. */
export interface FaultPlace extends AddressOption {
  url: Pick<URL, 'href' | 'protocol' | 'hostname' | 'port'>;
  server: 'api' | 'token';
  /** Whether `tls.chain` is set. */
  hasChain?: boolean;
  /** Whether a client certificate is offered to the server. */
  hasCertificate?: boolean;
  /** Which proxy leads to the destination. The URL of a proxy may have a password. */
  http?: {
    proxyFor?: (address: string) => { reveal(): string } | undefined;
    /** The environment variable that names a proxy for the address, but is ignored because `http.proxy` is not set. */
    ignoredProxyFor?: (address: string) => string | undefined;
  };
}

/** The fault to explain. */
export type ExplainedFault = ExchangeFaultDetails & {
  /** A part of the message: the server's certificate that the doctor has seen, or the target of a redirect. */
  detail?: string;
};

/**
 * The message and the hint for the faults that match `reason` and `when`. Names in braces are replaced by values of
 * {@link explainFault}, and in a hint also by options, such as `{http.proxy}`.
 */
interface FaultExplanation {
  reason?: RegExp;
  when?: (fault: ExplainedFault, place: FaultPlace) => boolean;
  /** Follows the call in the error's message. Without `{reason}` in it, the reason is added at the end. */
  message: string;
  hint?: string;
}

const TELL_OPERATOR = `Check {address}. If it is right, tell the service's operator.`;
/** Servers that require a client certificate and get none send these alerts. HANDSHAKE_FAILURE also means no common cipher. */
const MAY_MISS_CERTIFICATE = /_ALERT_(HANDSHAKE_FAILURE|DECODE_ERROR|CERTIFICATE_REQUIRED)$/;
const HANDSHAKE_FAILURE = /_ALERT_HANDSHAKE_FAILURE$/;
const DOCTOR = ' npx nestjs-service doctor shows the certificates.';
const OTHER_SERVER = `If it is right, another server responds in place of the service, for example {tlsInterceptor}, which must not intercept connections to {host}.{doctor}`;
/** OpenSSL's codes for data that is not TLS. */
const NO_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL/;
const CHECK_PROXY =
  'Check host and port of {http.proxy}, and whether it is an http: or an https: proxy. If they are right, ask who runs the proxy whether it reaches {host}, port {port}.';
/** A network with a proxy often blocks all other connections to the outside. */
const PROXY_IGNORED =
  '{variable} is set, but ignored: to go through that proxy, set {http.proxy} to environment.';

function isProxied({ http, url }: FaultPlace): boolean {
  return http?.proxyFor?.(url.href) !== undefined;
}

/** For each kind, the first row that matches is used. The last row of each kind always matches. */
const EXPLANATIONS: Readonly<Record<ConnectionErrorKind, readonly FaultExplanation[]>> = {
  timeout: [
    {
      when: ({ phase }) => phase === 'queued',
      message: 'no free connection within {limit}: all connections that http.maxSockets allows were in use',
      hint: 'Look for calls that take long and hold a connection. If there are none, raise {http.maxSockets}.',
    },
    {
      when: ({ reason }) => reason === INTERCEPTOR_TIMEOUT,
      message: 'an interceptor of the application had not settled within {limit}{reason}.',
      hint: 'Set a time limit of its own for whatever the interceptor waits for. If it needs longer, raise the `timeout` of the call, or {http.timeout}.',
    },
    {
      when: ({ phase }) => phase === 'waiting',
      message:
        'nothing was sent: {limit} had already passed. The time was spent waiting, for example for a token, or the event loop was blocked.',
      hint: 'If the limit is short, raise it: the `timeout` of the call, or {http.timeout}. Otherwise find out what blocks the event loop: synchronous code that runs for long, or too little CPU.',
    },
    {
      when: (fault, place) => isUnsent(fault) && isProxied(place),
      message:
        'no connection within {limit}{reason}: the proxy{proxy} opened no tunnel, or {host} did not respond behind it.',
      hint: CHECK_PROXY,
    },
    {
      when: isUnsent,
      message:
        'no connection to {host}, port {port}, within {limit}{reason}{tried}. Most likely a firewall drops the packets silently. Or the server is down, or does not respond to the handshake.',
      hint: 'Ask who runs the network to allow connections to {host}, port {port}. Also check host and port of {address}. If the server is only far away, raise {http.connectTimeout}.',
    },
    {
      when: (_, { server }) => server === 'token',
      message: '{waited} within {limit}',
      hint: "Try again later. If it keeps happening, tell the service's operator that the endpoint is slow.",
    },
    {
      message: '{waited} within {limit}',
      hint: 'If such calls need longer, raise the time limit: the `timeout` of the call, or {http.timeout}, and {http.attemptTimeout} for one attempt. Otherwise the service is slow: tell its operator.',
    },
  ],
  reset: [
    {
      when: (fault) => fault.certificateSuspected === true && !isUnsent(fault),
      message:
        'the connection ended before the first byte of a response{reason}. Either the server refused the client certificate (Node, uvicorn and lighttpd with GnuTLS do so without a TLS alert), or it crashed or restarted{orProxy}.',
      hint: `Check {tls.certificate}: it must belong to this application and this environment, and be made for clients (extended key usage clientAuth). If it is right, ask the service's operator what the log of the server says.`,
    },
    {
      when: (fault, place) => isUnsent(fault) && !fault.reusedSocket && isProxied(place),
      message:
        'the tunnel of the proxy{proxy} ended in the TLS handshake, before anything was sent{reason}. Either the proxy does not reach {host}, port {port} (Squid may open a tunnel before it connects), or it is not a proxy but a web server, or the server ended the connection.',
      hint: `${CHECK_PROXY} If it does, check {address}{andCertificate}.`,
    },
    {
      when: (_, place) => isProxied(place),
      message:
        'the connection ended before the whole response had arrived{reason}. Either the server closed it, or the proxy{proxy}, which may close a tunnel that is idle for a while (Apache after 60 s).',
      hint: 'If long calls fail like this, always after the same time, ask who runs the proxy in {http.proxy} to raise its idle timeout.',
    },
    {
      when: (fault, { url }) => isUnsent(fault) && !fault.reusedSocket && url.protocol === 'https:',
      message:
        'the server ended the connection before anything was sent, without a reason{reason}. Most likely a firewall or load balancer does not let this machine or host name through. Or the server {orRefuses}does not use TLS.',
      hint: `Check {address}. If it is right, ask the service's operator whether the service must first allow the address of this machine{andCertificate}.`,
    },
    {
      when: (_, { url }) => url.protocol === 'http:',
      message:
        'the connection ended before the whole response had arrived{reason}. The address begins with http:, for a sidecar on this machine.',
      hint: 'Look into the log of the program that listens at {address}: Apache and HAProxy close the connection if the service has refused the client certificate of the sidecar. If it is not a sidecar but the server itself, write https: in the address.',
    },
    { message: 'the connection ended before the whole response had arrived' },
  ],
  refused: [
    {
      message:
        'the connection was refused{reason}. Nothing listens there, or a firewall rejects connections.',
      hint: `Check host and port of {address}, and whether the server there is running.`,
    },
  ],
  dns: [
    {
      message: 'the name {host} could not be looked up',
      hint: `Check the spelling in {address}. If it is right, the name may be known in another network only (a VPN, a cluster's own DNS), or this machine has no DNS server that responds.`,
    },
  ],
  tls: [
    {
      reason: new RegExp(`^${FOREIGN_CONNECTION}$`),
      message:
        "nothing was sent, because the connection was not made by this module: it has neither the client certificate nor the module's verification. Something in this process replaces the agent of all requests, most likely global-agent{reason}.",
      hint: 'Remove that library, or let it ignore requests that have an agent of their own (global-agent: GLOBAL_AGENT_FORCE_GLOBAL_AGENT=false). To use a proxy, set {http.proxy}.',
    },
    {
      when: ({ certificateSuspected }) => certificateSuspected === true,
      message: 'the server ended the TLS handshake{reason}. It may have refused the client certificate.',
      hint: `Check {tls.certificate}: it must belong to this application and this environment, and be made for clients (extended key usage clientAuth). If it is right, tell the service's operator.`,
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
        'the server ended the TLS handshake{reason}. It may require a client certificate, and none is configured. Or it has no cipher in common with this client.',
      hint: `If {address} is one for mutual TLS, set {tls.certificate} and {tls.privateKey}. ${TELL_OPERATOR}`,
    },
    {
      reason: HANDSHAKE_FAILURE,
      when: isUnsent,
      message:
        'the server ended the TLS handshake at its beginning{reason}. Most likely it has no cipher in common with this client, or does not know the host name.',
      hint: TELL_OPERATOR,
    },
    {
      reason: HANDSHAKE_FAILURE,
      message:
        'the server ended the TLS handshake{reason}. It may require a client certificate of another kind.',
      hint: 'Check {tls.certificate} and {address}.',
    },
    {
      reason: NO_TLS,
      when: (_, place) => isProxied(place),
      message:
        'what comes out of the tunnel of the proxy{proxy} is not TLS{reason}. Either it is a page of the proxy, which does not reach {host}, port {port} (Squid may open a tunnel before it connects), or a server of plain HTTP listens there.',
      hint: CHECK_PROXY,
    },
    {
      reason: NO_TLS,
      message: 'the server responds with something that is not TLS, for example plain HTTP',
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
      hint: `Check {address}. It may also be the certificate of {tlsInterceptor}, which must not intercept connections to {host}. Otherwise only the service's operator can replace the certificate: tell them.{doctor}`,
    },
    { message: 'the TLS connection failed', hint: TELL_OPERATOR },
  ],
  proxy: [
    {
      reason: /_AUTH_SCHEME$/,
      message:
        'the proxy{proxy} requires an authentication scheme that is not supported (NTLM, Negotiate): only Basic is',
      hint: 'User and password are not at fault. Ask who runs the proxy for Basic, or for a way without a password; or run a helper such as cntlm on this machine, and put it into {http.proxy}.',
    },
    {
      reason: /_TUNNEL_40[17]$/,
      message: 'the proxy{proxy} refuses the user and password, or requires them',
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
        'the proxy{proxy} cannot reach {host}, port {port}: it cannot look the name up, or gets no response',
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
      hint: CHECK_PROXY,
    },
  ],
  protocol: [
    {
      reason: /^HPE_HEADER_OVERFLOW$/,
      message: 'the headers of the response are larger than Node accepts',
      hint: `Start Node with --max-http-header-size=65536 (NODE_OPTIONS has it too). If that is not enough, tell the service's operator.`,
    },
    {
      reason: /^HPE_/,
      message: 'the response is malformed: it breaks a rule of HTTP/1.1, {rule}',
      hint: `The server may speak another protocol, or a proxy may change its responses. ${TELL_OPERATOR}`,
    },
    {
      reason: /^ERR_HTTP_CONTENT_CODING$/,
      message:
        'the response is malformed: its Content-Encoding is not one that was asked for (gzip, deflate, br)',
      hint: TELL_OPERATOR,
    },
    {
      reason: /^(Z_|ERR_(BROTLI|_ERROR)_)/,
      message: 'the response is malformed: its body is not what its Content-Encoding says, or is cut off',
      hint: TELL_OPERATOR,
    },
    { message: 'the exchange broke a rule of HTTP' },
  ],
  redirect: [
    {
      message: 'it responds with a redirect{detail}, which is never followed',
      hint: `Put the real address of the token endpoint into {address}. If the redirect only adds a slash at the end, the server expects /oauth2/token/, which cannot be configured: ask its operator to accept the address without the slash.`,
    },
  ],
  too_large: [
    {
      when: (_, { server }) => server === 'api',
      message: 'the response is larger than http.maxResponseBytes, or maxResponseBytes of the call',
    },
    { message: 'the response is too large' },
  ],
  closed: [{ reason: /^ERR_CANCELED$/, message: 'the call was cancelled' }, { message: CLIENT_CLOSED }],
  network: [
    {
      reason: /^E[MN]FILE$/,
      message: 'too many files and connections are open{reason}. No connection could be made.',
      hint: 'Raise the limit of open files (ulimit -n), or look for code that leaves files or connections open.',
    },
    {
      message: 'the network failed',
      hint: 'Check the network of this machine, and host and port of {address}.',
    },
  ],
};

/** Explains a fault: what happened, and what to do. */
export function explainFault(where: string, fault: ExplainedFault, place: FaultPlace): Explanation {
  const { url, http, server, hasChain, hasCertificate } = place;
  const { kind, phase, reason = '', opensslText, limitMs, addresses, detail } = fault;
  const isFitting = (row: FaultExplanation): boolean =>
    (row.reason?.test(reason) ?? true) && (row.when?.(fault, place) ?? true);
  const { message, hint } = EXPLANATIONS[kind].find(isFitting) ?? EXPLANATIONS.network[1];
  // Over TLS 1.2, mbedTLS and others end the handshake without an alert if they require a client certificate and get none.
  const ownHint = hint?.replace(
    '{andCertificate}',
    hasCertificate
      ? ', and whether {tls.certificate} is accepted'
      : ', and whether the server requires a client certificate',
  );
  const variable = isServerUnreached(fault) ? http?.ignoredProxyFor?.(url.href) : undefined;
  const secret = http?.proxyFor?.(url.href);
  // Show only the host of the proxy, because its URL may have a password.
  const proxy = secret && ` ${new URL(secret.reveal()).host}`;
  const roots = hasChain && server === 'api' ? [] : ["Node's public roots"];
  const explained = fillExplanation(
    message.includes('{reason}') ? message : `${message}{reason}.`,
    { hint: variable === undefined ? ownHint : `${ownHint} ${PROXY_IGNORED}` },
    {
      variable,
      proxy,
      orProxy: proxy && `, or the proxy${proxy} ended the tunnel`,
      orRefuses: `${hasCertificate ? 'refuses the' : 'requires a'} client certificate, or `,
      tlsInterceptor:
        proxy === undefined ? 'a proxy that intercepts TLS' : `the proxy${proxy}, if it intercepts TLS`,
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port || (url.protocol === 'https:' ? '443' : '80'),
      tried: addresses?.length ? `; its addresses, tried one after the other: ${addresses.join(', ')}` : '',
      detail,
      opensslText: opensslText && `: ${opensslText}`,
      // With `detail`, it is the doctor itself that reports.
      doctor: detail === undefined ? DOCTOR : undefined,
      trust: [...roots, hasChain ? "tls.chain, the service's public chain" : []].flat().join(' and '),
      waited:
        phase === 'reading'
          ? 'the response began, but the rest of it did not arrive'
          : 'the request was sent, but no response began',
      limit: limitMs === undefined ? 'the time limit' : `${Math.max(0, Math.round(limitMs))} ms`,
      now: formatDate(Date.now()),
      rule: reason.replace('HPE_', '').replaceAll('_', ' ').toLowerCase(),
      // For a code of the system, such as ECONNREFUSED, leave out our prefix ERR_PROXY_.
      reason: reason && ` (${reason.replace(/^ERR_PROXY_(?=E[A-Z]+$)/, '')})`,
    },
    place,
  );
  // The proxy may be the cause of any fault inside its tunnel, so name it in every message.
  const isNamed = proxy === undefined || kind === 'closed' || explained.message.includes(proxy);
  return {
    ...explained,
    message: `${where}${isNamed ? '' : `, through the proxy${proxy}`}: ${explained.message}`,
  };
}

/** Whether no server has responded at all. */
function isServerUnreached(fault: ExplainedFault): boolean {
  const { kind, phase } = fault;
  return /^(dns|refused|timeout|reset|network)$/.test(kind) && isUnsent(fault) && phase !== 'waiting';
}
