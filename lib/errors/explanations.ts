import { GUIDES } from '../version.js';
import { CLIENT_CLOSED } from './call.errors.js';

/**
 * What errors mean: all texts about faults and responses, as tables. explain.ts fills them in.
 *
 * The first row whose pattern fits the words is used. A pattern has the beginnings of words, in the order of the words. Other words
 * may stand between them. So `fault reset sent|reading proxied` fits the words
 * `api fault reset sent ECONNRESET certificate-perhaps-refused proxied`. After an asterisk, a part may be anywhere in its word.
 *
 * The words say what is known. They stand in square brackets in the log line of a failed call. They always come in this order:
 * 1. `api` or `token`: the server
 * 2. `fault`, then its kind, its phase and its reason; or `response`, then its status and `json`, `page` (HTML), `text` or `empty`
 * 3. of a token: the code of the error, the error of OAuth, and `customer` for a token of a customer
 * 4. `nock`, `nginx` (its page about a certificate that it got), `duplicate`, `collection`, `asks-late`, `from-sidecar`: what a
 *    response shows; `redirect` and `only-slash`; `unusable`, if a success has a body that cannot be read, with `charset`, `parse` or
 *    `missing`, and `executed` after a call that changes something
 * 5. `certificate-refused`, `certificate-perhaps-refused` or `certificate-not-sent`: the verdict on the client certificate
 * 6. `no-certificate`: none is offered to the server
 * 7. `oauth`, `mtls` or `app-token`, and `both-tokens` if a call was sent with app token and bearer
 * 8. `sidecar` (the address begins with http:), `proxied`, `with-chain`: how the server is reached; `own-limit`: the call has a size
 *    limit of its own
 * 9. `expired`, `not-yet-valid`, `unsupported-key` (TLS 1.3 has no signature for it): what is wrong with the client certificate
 * 10. `in-doubt`: the call may have been executed; `doctor`: the doctor reports it; `not-asked-again`: it is an earlier error
 */

/** The message about a response to a call follows the status. */
type Row = readonly [whatHappened: string, whatToDo?: string];
/** A part of several texts, with or without a pattern. The first one that fits, and all of whose facts are known, is used. */
export type Phrase = string | readonly [pattern: string, text: string];

/** The facts that texts name. */
export const FACTS = [
  // Where a request went, and how.
  ...['host', 'port', 'addresses', 'proxy', 'ignoredVariable', 'target'],
  // The limits of an exchange.
  ...['limit', 'limitBytes', 'bodyBytes'],
  // What a fault or a response says.
  ...['reason', 'rule', 'opensslText', 'detail', 'now', 'said', 'why'],
  ...['retryAfter', 'name', 'status', 'coding'],
  // The client certificate.
  ...['certificate', 'fingerprint', 'issuer', 'validFrom', 'validTo', 'keyType', 'lastIssuer'],
  // An error that is shown again.
  'earlier',
] as const;

const ALL_CREDENTIALS = `The guide lists all causes (${GUIDES}/troubleshooting.md#refused-credentials).`;
const ALL_CERTIFICATES = `The guide has all steps (${GUIDES}/troubleshooting.md#a-refused-client-certificate).`;
const TELL_OPERATOR = "Check {address}. If it is right, tell the service's operator.";
const CHECK_WITH_PATH = 'Check {address}, with its path if it has one.';
const CHECK_PROXY =
  'Check host and port of {http.proxy}, and whether it is an http: or an https: proxy. If they are right, ask who runs the proxy whether it reaches <host>, port <port>.';
/** What a key or signature has to satisfy, and where that is set. */
export const SECURITY_LEVEL =
  "OpenSSL's security level is 1 up to Node 22 and 2 from Node 24 on, if @SECLEVEL in --tls-cipher-list or the configuration of OpenSSL (OPENSSL_CONF, --openssl-config) does not set another.";
const OTHER_SERVER =
  'If it is right, another server responds in place of the service, for example {tlsInterceptor}, which must not intercept connections to <host>.{doctor}';
const FOR_CLIENTS =
  'Check {tls.certificate}: it must belong to this application and this environment, and be made for clients (extended key usage clientAuth).';
const CERTIFICATE_NOT_SENT =
  'client certificate was not sent, or did not arrive: the server accepts no key of this type{keyType}, or a proxy in front of it ended TLS';
const UNCLEAR_REFUSAL: Row = [
  ': a proxy in front of the service got no client certificate, or rejects it.',
  `The proxy looks at the client certificate: {ownCertificate}{orIssuer} ${ALL_CERTIFICATES}`,
];
const SIDECAR_FAILED = 'the sidecar on this machine got no response from the service';
const CHECK_SIDECAR =
  'Look into the log of the sidecar at {address}. If it says that the service ended the connection or sent an alert, the service refused the client certificate of the sidecar: check that certificate, its key and its dates, and that it is of this application and this environment.';
const ASKS_LATE =
  'asks for the client certificate after the request, which Node does not support over TLS 1.3';
const ASK_EARLIER =
  'Nothing is wrong with the certificate. Ask who runs the server at {address}: Apache asks so late if SSLVerifyClient is in a Location or Directory. It has to ask in the handshake (SSLVerifyClient for the whole virtual host).';
const NOTHING_TO_CORRECT = 'There is nothing to correct in this application.';

export const PHRASES: Readonly<Record<string, readonly Phrase[]>> = {
  because: [' (<reason>)'],
  limit: ['<limit> ms', 'the time limit'],
  tried: ['; its addresses, tried one after the other: <addresses>'],
  waited: [
    ['reading', 'the response began, but the rest of it did not arrive'],
    'the request was sent, but no response began',
  ],
  sizeLimit: [
    ['own-limit', '<limitBytes> bytes (maxResponseBytes of the call)'],
    '<limitBytes> bytes (http.maxResponseBytes)',
    'http.maxResponseBytes, or maxResponseBytes of the call',
  ],
  bodySize: [': its Content-Length is <bodyBytes> bytes', ['ERR_BUFFER_TOO_LARGE', ' after decompression']],
  raiseLimit: [
    ['own-limit', 'raise maxResponseBytes of the call'],
    'raise {http.maxResponseBytes}, or set maxResponseBytes of the call',
  ],
  target: [' to <target>'],
  later: ['in <retryAfter> s', 'later'],
  theProxy: ['the proxy <proxy>', 'the proxy'],
  atProxy: ['at <proxy>', "at the proxy's address"],
  orTunnel: [', or the proxy <proxy> ended the tunnel'],
  // A network with a proxy often blocks all other connections to the outside.
  ignoredProxy: [
    ' <ignoredVariable> is set, but ignored: to go through that proxy, set {http.proxy} to environment.',
  ],
  tlsInterceptor: ['the proxy <proxy>, if it intercepts TLS', 'a proxy that intercepts TLS'],
  trusted: [
    ['api with-chain', "tls.chain, the service's public chain"],
    ['with-chain', "Node's public roots and tls.chain, the service's public chain"],
    "Node's public roots",
  ],
  doctor: [['doctor', ''], ' npx nestjs-service doctor shows the certificates.'],
  opensslText: [': <opensslText>'],

  // The client certificate.
  // Over TLS 1.2, mbedTLS and others end the handshake without an alert if they require a client certificate and get none.
  orCertificate: [
    ['no-certificate', 'requires a client certificate, or '],
    'refuses the client certificate, or ',
  ],
  andCertificate: [
    ['no-certificate', ', and whether the server requires a client certificate'],
    ', and whether {tls.certificate} is accepted',
  ],
  fingerprint: [' (fingerprint <fingerprint>)'],
  keyType: [' (<keyType>)'],
  description: ['<certificate>, issued by "<issuer>", valid from <validFrom> to <validTo>'],
  hasExpired: [['expired', ' It has expired.']],
  aboutCertificate: [
    [
      'no-certificate',
      "Set {tls.certificate} and {tls.privateKey} from the developer portal's authentication section, or use an address that does not ask for one.",
    ],
    ['certificate-not-sent', '{otherKey}'],
    ['expired', 'Generate a new one in the developer portal. {compare}'],
    ['not-yet-valid', '{compare}'],
    [
      '*_CERTIFICATE_EXPIRED',
      "If this machine's clock is right, the certificate is still valid, and it is the server's own list of revoked certificates (CRL), or its clock, that is out of date. HAProxy, stunnel and others then refuse every client certificate like this: tell the service's operator.",
    ],
    '{compare}',
  ],
  compare: [
    "In the developer portal, compare the certificate that is listed for this application and this environment with {tls.certificate}: the sandbox and production have separate certificates, and a revoked certificate stays revoked. Also check that the address belongs to the same environment, and check this machine's clock.{orIssuer}{orServer}",
  ],
  orServer: [
    [
      'response',
      " If all of that is right, tell the service's operator: nginx refuses every certificate like this while its list of revoked certificates (CRL) or its OCSP responder is out of order.",
    ],
  ],
  // A server that trusts only a root certificate needs all intermediate certificates from the client.
  orIssuer: [
    [
      '*_UNKNOWN_CA|response',
      ' The server may also lack the certificate of "<lastIssuer>": put it after ours in tls.certificate.',
    ],
  ],
  otherKey: [
    [
      'unsupported-key',
      'TLS 1.3 has no signature for such a key. Generate an RSA key or one on P-256 with its certificate in the developer portal, and put them into {tls.certificate} and {tls.privateKey}.',
    ],
    "Ask the service's operator which types of keys the server accepts, and generate {tls.certificate} with such a key. If it has one, find out what ends TLS between this machine and the server.",
  ],
  otherEnd: ['a firewall, or the proxy <proxy>,', 'a firewall'],

  // What to check after a response of the API.
  ownCertificate: [
    [
      'sidecar',
      'check that the certificate of the sidecar at {address} belongs to this application and this environment.',
    ],
    'check that {tls.certificate} and {tls.privateKey} belong to this application and this environment; {inUse}.',
  ],
  inUse: ['in use is <certificate>', 'none is set'],
  credentials: [
    [
      'oauth',
      'Check that OAuth is enabled for the application, and that the addresses of the API, in {address}, and of the token endpoint are of the same environment.',
    ],
    'Check that {appToken} belongs to this application and this environment, and that {appTokenHeader} is the name that the portal shows. A value with # in a .env file needs quotes, and docker run --env-file keeps quotes as a part of it.{alsoCertificate}',
  ],
  alsoCertificate: [['mtls', ' Also {ownCertificate}']],
  missing: [['missing', 'missing ']],
  coding: [', and with the unknown Content-Encoding "<coding>"'],
  executed: [['executed', ' By its status the call was executed.']],
  passOn: ['If <name> is for your callers, name it in passOn of ServiceExceptionFilter. '],
};

export const ROWS: Readonly<Record<string, Row>> = {
  // First, because its words begin with those of the earlier error.
  'token not-asked-again': ['<earlier> The endpoint is not asked again for <retryAfter> s.'],

  // The client certificate. Without a call or server before it, a message begins with a capital letter.
  'fault certificate-refused|certificate-not-sent in-doubt': [
    'the server refused the client certificate{fingerprint} after the request was sent, so it may have been executed{because}.',
    `{aboutCertificate} ${ALL_CERTIFICATES}`,
  ],
  'token fault *_HANDSHAKE_FAILURE|*_DECODE_ERROR|certificate-not-sent no-certificate': [
    'the server ended the TLS handshake{because}. It may ask for a client certificate, and none is offered.',
    'Set {oauth.mtls} to true (with {tls.certificate} and {tls.privateKey}); or put an address that does not ask for one into {address}.',
  ],
  'fault certificate-perhaps-refused doctor': [
    'The server asked for the client certificate and then ended the connection. Most likely it refused the certificate; otherwise {otherEnd} ended the connection: {description}{because}.{hasExpired}',
    '{aboutCertificate}',
  ],
  'fault tls certificate-perhaps-refused': [
    'the server ended the TLS handshake{because}. It may have refused the client certificate.',
    `${FOR_CLIENTS} If it is right, tell the service's operator.`,
  ],
  'fault certificate-not-sent no-certificate': [
    'The server asks for a client certificate and none is offered{because}.',
    '{aboutCertificate}',
  ],
  'fault|token certificate-not-sent': [
    `The ${CERTIFICATE_NOT_SENT}. It is <certificate>{because}.`,
    '{aboutCertificate}',
  ],
  'fault|token certificate-refused': [
    'The server refused the client certificate: {description}{because}.{hasExpired}',
    `{aboutCertificate} ${ALL_CERTIFICATES}`,
  ],

  // Faults: what this process may not do
  'fault ERR_ACCESS_DENIED|ERR_PROXY_ACCESS_DENIED': [
    "nothing was sent: Node's permission model does not let this process use the network{because}.",
    'Start Node with --allow-net, or without --permission, which may also stand in NODE_OPTIONS.',
  ],

  // Faults: time-outs
  'fault timeout queued': [
    'no free connection within {limit}: all connections that http.maxSockets allows were in use{because}.',
    'Look for calls that take long and hold a connection. If there are none, raise {http.maxSockets}.',
  ],
  'fault timeout ERR_INTERCEPTOR_TIMEOUT': [
    'an interceptor of the application had not settled within {limit}{because}.',
    'Set a time limit of its own for whatever the interceptor waits for. If it needs longer, raise the `timeout` of the call, or {http.timeout}.',
  ],
  'fault timeout waiting': [
    'nothing was sent: {limit} had already passed. The time was spent waiting, for example for a token, or the event loop was blocked.',
    'If the limit is short, raise it: the `timeout` of the call, or {http.timeout}. Otherwise find out what blocks the event loop: synchronous code that runs for long, or too little CPU.',
  ],
  'fault timeout connecting proxied': [
    'no connection within {limit}{because}: {theProxy} opened no tunnel, or <host> did not respond behind it.',
    CHECK_PROXY,
  ],
  'fault timeout connecting': [
    'no connection to <host>, port <port>, within {limit}{because}{tried}. Most likely a firewall drops the packets silently. Or the server is down, or does not respond to the handshake.',
    'Ask who runs the network to allow connections to <host>, port <port>. Also check host and port of {address}. If the server is only far away, raise {http.connectTimeout}.{ignoredProxy}',
  ],
  'token fault timeout': [
    '{waited} within {limit}{because}.',
    "Try again later. If it keeps happening, tell the service's operator that the endpoint is slow.",
  ],
  'fault timeout': [
    '{waited} within {limit}{because}.',
    'If such calls need longer, raise the time limit: the `timeout` of the call, or {http.timeout}, and {http.attemptTimeout} for one attempt. Otherwise the service is slow: tell its operator.',
  ],

  // Faults: connections that end, or are not made
  'fault reset sent|reading certificate-perhaps-refused': [
    'the connection ended before the first byte of a response{because}. Either the server refused the client certificate (Node, uvicorn and lighttpd with GnuTLS do so without a TLS alert), or it crashed or restarted{orTunnel}.',
    `${FOR_CLIENTS} If it is right, ask the service's operator what the log of the server says.`,
  ],
  'fault reset connecting proxied': [
    'the tunnel of {theProxy} ended in the TLS handshake, before anything was sent{because}. Either the proxy does not reach <host>, port <port> (Squid may open a tunnel before it connects), or it is not a proxy but a web server, or the server ended the connection.',
    `${CHECK_PROXY} If it does, check {address}{andCertificate}.`,
  ],
  'fault reset proxied': [
    'the connection ended before the whole response had arrived{because}. Either the server closed it, or {theProxy}, which may close a tunnel that is idle for a while (Apache after 60 s).',
    'If long calls fail like this, always after the same time, ask who runs the proxy in {http.proxy} to raise its idle timeout.',
  ],
  'fault reset sidecar': [
    'the connection ended before the whole response had arrived{because}. The address begins with http:, for a sidecar on this machine.',
    'Look into the log of the program that listens at {address}: Apache and HAProxy close the connection if the service has refused the client certificate of the sidecar. If it is not a sidecar but the server itself, write https: in the address.',
  ],
  'fault reset connecting': [
    'the server ended the connection before anything was sent, without a reason{because}. Most likely a firewall or load balancer does not let this machine or host name through. Or the server {orCertificate}does not use TLS.',
    "Check {address}. If it is right, ask the service's operator whether the service must first allow the address of this machine{andCertificate}.{ignoredProxy}",
  ],
  'fault reset': ['the connection ended before the whole response had arrived{because}.'],
  'fault refused': [
    'the connection was refused{because}. Nothing listens there, or a firewall rejects connections.',
    'Check host and port of {address}, and whether the server there is running.{ignoredProxy}',
  ],
  'fault dns': [
    'the name <host> could not be looked up{because}.',
    "Check the spelling in {address}. If it is right, the name may be known in another network only (a VPN, a cluster's own DNS), or this machine has no DNS server that responds.{ignoredProxy}",
  ],

  // Faults: the TLS connection
  'fault tls ERR_FOREIGN_CONNECTION': [
    "nothing was sent, because the connection was not made by this module: it has neither the client certificate nor the module's verification. Something in this process replaces the agent of all requests, most likely global-agent{because}.",
    'Remove that library, or let it ignore requests that have an agent of their own (global-agent: GLOBAL_AGENT_FORCE_GLOBAL_AGENT=false). To use a proxy, set {http.proxy}.',
  ],
  'fault tls *_PROTOCOL_VERSION|ERR_SSL_UNSUPPORTED_PROTOCOL': [
    'the server and this process have no version of TLS in common{because}.',
    `Look for --tls-min-v1.3 and --tls-max-v1.2 on the command line of Node and in NODE_OPTIONS, for MinProtocol and MaxProtocol in the configuration of OpenSSL (OPENSSL_CONF), and for code that sets tls.DEFAULT_MIN_VERSION or tls.DEFAULT_MAX_VERSION. Without these, this process speaks TLS 1.2 and 1.3. ${TELL_OPERATOR}`,
  ],
  'fault tls ERR_SSL_CA_KEY_TOO_SMALL|ERR_SSL_CA_MD_TOO_WEAK': [
    "this process refuses to send its client certificate, because the key or signature of an authority above it is too weak for OpenSSL's security level{because}. Nothing was sent.",
    `Ask who issues {tls.certificate} for one of a stronger authority, or lower the level. ${SECURITY_LEVEL}`,
  ],
  'fault tls *_TOO_SMALL|*_TOO_WEAK|*_SIGALG': [
    "this process refuses a key or signature of the server, because it is too weak for OpenSSL's security level here{because}.",
    `Tell the service's operator. ${SECURITY_LEVEL}`,
  ],
  // Servers that require a client certificate and get none send these alerts.
  'fault tls *_HANDSHAKE_FAILURE|*_DECODE_ERROR|*_CERTIFICATE_REQUIRED no-certificate': [
    'the server ended the TLS handshake{because}. It may require a client certificate, and none is configured. Or it has no cipher in common with this client.',
    `If {address} is one for mutual TLS, set {tls.certificate} and {tls.privateKey}. ${TELL_OPERATOR}`,
  ],
  'fault tls connecting *_HANDSHAKE_FAILURE': [
    'the server ended the TLS handshake at its beginning{because}. Most likely it has no cipher in common with this client, or does not know the host name.',
    TELL_OPERATOR,
  ],
  'fault tls *_HANDSHAKE_FAILURE': [
    'the server ended the TLS handshake{because}. It may require a client certificate of another kind.',
    'Check {tls.certificate} and {address}.',
  ],
  'fault tls *_WRONG_VERSION|*_PACKET_LENGTH|*_HTTP_REQUEST|*_UNKNOWN_PROTOCOL proxied': [
    'what comes out of the tunnel of {theProxy} is not TLS{because}. Either it is a page of the proxy, which does not reach <host>, port <port> (Squid may open a tunnel before it connects), or a server of plain HTTP listens there.',
    CHECK_PROXY,
  ],
  'fault tls *_WRONG_VERSION|*_PACKET_LENGTH|*_HTTP_REQUEST|*_UNKNOWN_PROTOCOL': [
    'the server responds with something that is not TLS, for example plain HTTP{because}.',
    'Put the port of HTTPS into {address} (443 if none is named).',
  ],
  'fault tls CERT_HAS_EXPIRED|CERT_NOT_YET_VALID': [
    "the server's certificate has expired or is not valid yet<detail>{because}. This machine's clock says <now>.",
    "Compare this machine's clock with the real time. If it is right, only the service's operator can renew the certificate: tell them.{doctor}",
  ],
  'fault tls ERR_TLS_CERT_ALTNAME_INVALID': [
    "the server's certificate is for another host name<detail>, not for <host>{because}.",
    `Put the host name that the service's documentation gives into {address}. ${OTHER_SERVER}`,
  ],
  'fault tls CERT_SIGNATURE_FAILURE': [
    "the server's certificate is not signed by what it is verified against: {trusted}. An authority there has the same name, but another key<detail>{because}.",
    `If {tls.chain} has two certificates of that name, leave only the one that the developer portal has now. It may also be the chain of another environment. Check {address} too. ${OTHER_SERVER}`,
  ],
  'fault tls UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_UNTRUSTED|INVALID_CA': [
    "the server's certificate is not signed by what it is verified against: {trusted}<detail>{because}.",
    `Download the whole chain of this environment from the developer portal (authentication section, "certificate chain"), and put it into {tls.chain}. Check {address} too. ${OTHER_SERVER}`,
  ],
  'fault tls CERT_|CRL_|INVALID_|PATH_LENGTH|HOSTNAME_|ERROR_IN_CERT|UNSPECIFIED': [
    "the server's certificate was refused{opensslText}<detail>{because}.",
    "Check {address}. It may also be the certificate of {tlsInterceptor}, which must not intercept connections to <host>. Otherwise only the service's operator can replace the certificate: tell them.{doctor}",
  ],
  'fault tls': ['the TLS connection failed{because}.', TELL_OPERATOR],

  // Faults: the proxy
  'fault proxy *_AUTH_SCHEME': [
    '{theProxy} requires an authentication scheme that is not supported (NTLM, Negotiate): only Basic is{because}.',
    'User and password are not at fault. Ask who runs the proxy for Basic, or for a way without a password; or run a helper such as cntlm on this machine, and put it into {http.proxy}.',
  ],
  'fault proxy *_TUNNEL_401|*_TUNNEL_407': [
    '{theProxy} refuses the user and password, or requires them{because}.',
    'Check {http.proxy}: http://user:password@host:port, with reserved characters percent-encoded.',
  ],
  'fault proxy *_TUNNEL_400|*_TUNNEL_405|*_TUNNEL_501': [
    'what listens {atProxy} is not a proxy: it refuses CONNECT, as web servers do{because}.',
    'Check host and port of {http.proxy}.',
  ],
  'fault proxy *_TUNNEL_404|*_TUNNEL_5': [
    '{theProxy} cannot reach <host>, port <port>: it cannot look the name up, or gets no response{because}.',
    'Check the host and port in {address}. If they are right, ask who runs the proxy in {http.proxy}.',
  ],
  'fault proxy *_TUNNEL_4': [
    '{theProxy} does not allow connections to <host>{because}.',
    'Ask who runs the proxy to allow <host>. Check {http.proxy} and {address}.',
  ],
  'fault proxy *_PROXY_CERT|*_SELF_SIGNED|*_UNABLE_TO|*_DEPTH_ZERO|*_TLS_CERT|*_INVALID|*_UNSPECIFIED': [
    "the certificate of {theProxy} was refused. It is verified against Node's public roots{because}.",
    "If an authority of your own signed it, name that authority's certificate in NODE_EXTRA_CA_CERTS. Check {http.proxy} too.",
  ],
  'fault proxy': ['{theProxy} cannot be reached, or opens no tunnel to <host>{because}.', CHECK_PROXY],

  // Faults: all others
  'fault protocol HPE_HEADER_OVERFLOW': [
    'the headers of the response are larger than Node accepts{because}.',
    "Start Node with --max-http-header-size=65536 (NODE_OPTIONS has it too). If that is not enough, tell the service's operator.",
  ],
  'fault protocol HPE_': [
    'the response is malformed: it breaks a rule of HTTP/1.1, <rule>{because}.',
    `The server may speak another protocol, or a proxy may change its responses. ${TELL_OPERATOR}`,
  ],
  'fault protocol ERR_HTTP_CONTENT_CODING': [
    'the response is malformed: its Content-Encoding is not one that was asked for (gzip, deflate, br){because}.',
    TELL_OPERATOR,
  ],
  'fault protocol Z_|ERR_BROTLI_|ERR__ERROR_': [
    'the response is malformed: its body is not what its Content-Encoding says, or is cut off{because}.',
    TELL_OPERATOR,
  ],
  'fault protocol': ['the exchange broke a rule of HTTP{because}.'],
  'fault redirect': [
    'it responds with a redirect{target}, which is never followed{because}.',
    'Put the real address of the token endpoint into {address}. If the redirect only adds a slash at the end, the server expects /oauth2/token/, which cannot be configured: ask its operator to accept the address without the slash.',
  ],
  'api fault too_large': [
    'the response is larger than {sizeLimit}{bodySize}.',
    'If such responses are expected, {raiseLimit}.',
  ],
  'fault too_large': ['the response is too large: it has more than <limitBytes> bytes{bodySize}.'],
  'fault closed ERR_CANCELED': ['the call was cancelled{because}.'],
  'fault closed': [`${CLIENT_CLOSED}{because}.`],
  'fault network EMFILE|ENFILE': [
    'too many files and connections are open{because}. No connection could be made.',
    'Raise the limit of open files (ulimit -n), or look for code that leaves files or connections open.',
  ],
  'fault network': [
    'the network failed{because}.',
    'Check the network of this machine, and host and port of {address}.{ignoredProxy}',
  ],

  // Responses of the API
  'api response redirect only-slash': [
    ', a redirect{target}. Redirects are never followed.',
    'It only adds or removes a slash at the end: change {http.trailingSlash}.',
  ],
  'api response redirect': [
    ', a redirect{target}. Redirects are never followed.',
    'Put the address where the API is into {address}.',
  ],
  'api response unusable parse': [', but parse refused the {missing}body<why>.{executed}'],
  'api response unusable charset': [
    ', with text in a charset that is not known.{executed}',
    "Set responseType 'bytes', and decode them yourself.",
  ],
  'api response page unusable': [
    ", with a page (HTML): the response does not come from the service's API, but for example from a website, a login page or a proxy.{executed}",
    CHECK_WITH_PATH,
  ],
  'api response empty unusable': [', with an empty body.{executed}', CHECK_WITH_PATH],
  'api response unusable': [
    ', with a body that is not JSON{coding}.{executed}',
    "If it is not meant to be JSON, set responseType 'text' or 'bytes' in ServiceHttpService. If it is, check {address}, with its path if it has one.",
  ],
  'api response nock': [
    ': nock has no interceptor for this request.',
    'Add an interceptor to the test, for the address to which the socket connects: {address}, or the proxy in {http.proxy}.',
  ],
  'api response certificate-refused|certificate-not-sent no-certificate|sidecar': UNCLEAR_REFUSAL,
  'api response certificate-not-sent': [`: the ${CERTIFICATE_NOT_SENT}.`, '{otherKey}'],
  'api response nginx certificate-refused': [
    ': the proxy in front of the service, an nginx, rejects the client certificate.',
    `The certificate arrived: {ownCertificate} It may also be revoked, which the developer portal shows.{orIssuer}{orServer} ${ALL_CERTIFICATES}`,
  ],
  'api response certificate-refused': UNCLEAR_REFUSAL,
  'api response asks-late': [`: the server ${ASKS_LATE}.`, ASK_EARLIER],
  'api response certificate-perhaps-refused': [
    ', with a page (HTML), which the service itself never sends: a proxy or firewall in front of it refused the call.',
    'Check {address}. A firewall may refuse the address of this machine, or something in the call: ask who runs it. If a proxy looks at client certificates: {ownCertificate}',
  ],
  'api response 401': [': the service refused the credentials.', `{credentials} ${ALL_CREDENTIALS}`],
  // A 403 does not show whether the app token is wrong or the call is not allowed.
  'api response 403': [
    ': the service does not allow this call.',
    `{passOn}{credentials} If that is right, check in the developer portal what the application may do. ${ALL_CREDENTIALS}`,
  ],
  'api response from-sidecar': [`: ${SIDECAR_FAILED}.`, CHECK_SIDECAR],
  'api response page': [
    ", with a page (HTML), not JSON: a proxy, firewall or website responds in the service's place.",
    `${CHECK_WITH_PATH} If it is right, ask who runs the network or the service.`,
  ],
  // The collections of the API exist even if they are empty, so a 404 means that the address is wrong.
  'api response 404 collection': [
    ': there is no such path at this address.',
    'Check the path in {address}: the path of the call is appended to it. Some services want a slash at the end: {http.trailingSlash}.',
  ],
  'api response 429 duplicate': [
    ': the same call is still in progress.',
    '{passOn}Find out its outcome before you send it again.',
  ],
  'api response 429|5|6|7|8|9': [
    ': the service is busy or out of order.',
    `${NOTHING_TO_CORRECT} If this goes on, tell the service's operator.`,
  ],
  'api response 400 both-tokens': [
    '',
    'The app token was sent together with the bearer token, which the service refuses on most paths: leave {sendAppTokenWithBearer} out. If that is not the cause, something in the call itself is wrong.',
  ],

  // Tokens
  'token response asks-late': [
    `The server in front of the token endpoint ${ASKS_LATE} (<said>).`,
    ASK_EARLIER,
  ],
  'token response from-sidecar': [
    `No response from the token endpoint: ${SIDECAR_FAILED} (<said>).`,
    CHECK_SIDECAR,
  ],
  'token response invalid_client|unauthorized_client': [
    'The token endpoint refuses the credentials (<said>).',
    `Check {oauth.clientSecret} and {oauth.clientId}: both must belong to the application of this environment (developer portal, Integration tab), with OAuth enabled. If somebody has generated a new secret, the previous one is invalid. In .env, a value with # needs quotes, and with expandVariables of ConfigModule a $ needs a backslash before it; docker run --env-file keeps quotes as a part of the value. ${ALL_CREDENTIALS}`,
  ],
  'token response token_rate_limited': [
    'The token endpoint got too many requests (<said>).',
    'Try again {later}. If this goes on, something requests tokens all the time, for example a process that restarts again and again.',
  ],
  'token response page|401|403 token_unavailable|invalid_token_response': [
    'The response does not come from the token endpoint, but from a proxy in front of it or from another server (<said>).',
    'Check {address} and {api}: they may be swapped. {address} is written without /oauth2/token. If both are right, a proxy, firewall or login page answers in place of the endpoint: ask who runs it. If it wants a client certificate, set {oauth.mtls}. If that is not the cause, check {oauth.clientId} and {oauth.clientSecret}.',
  ],
  'token response token_unavailable': [
    'The token endpoint is out of order (<said>).',
    `${NOTHING_TO_CORRECT} Try again later. If this goes on, check {address} and tell the service's operator.`,
  ],
  'token response invalid_token_response': [
    "The token endpoint's response (HTTP <status>) is not usable: <why>.",
    TELL_OPERATOR,
  ],
  'token response invalid_scope|scope_invalid customer': [
    'The token endpoint refuses a token of this customer (<said>).',
    'The endpoint does not know this customer in this environment. Most often it is a customer of the sandbox used in production, or the reverse. Create the customer with the credentials of this environment, and check {environment}.',
  ],
  'token response': [
    'The token endpoint refuses a token (<said>).',
    'Check {address}, which is written without /oauth2/token, and that OAuth is enabled for the application of {oauth.clientId}.',
  ],
  'token expired-on-arrival': [
    'The token had expired when it arrived.',
    'The process or its machine was suspended, its clock was changed, or the token endpoint takes longer to respond than its tokens live.',
  ],
  'token no-response': ['The token endpoint did not respond within {limit}.'],
  'token no-token-in-time': [
    'There was no token within {limit}.',
    'This time limit is {http.timeout}, or the timeout of the call. To test the token endpoint, run npx nestjs-service doctor. If {oauth.clientSecret} is a function, it may be what takes so long.',
  ],
};
