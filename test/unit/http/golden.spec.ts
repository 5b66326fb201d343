import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { explanationWords } from '../../../lib/errors/index.js';
import { ExchangeFault } from '../../../lib/exchange/fault.js';
import { GUIDES } from '../../../lib/version.js';
import { createAuthority, issue } from '../../helpers/certificates.js';
import { makeClient } from '../../helpers/make-client.js';

/**
 * golden-errors.json contains the error that a caller gets in each of the situations below. Each test makes a whole client from the
 * options that a host application passes, replaces only its network, makes one call and compares the caught error with the file. The
 * tests know almost nothing of the code in lib/, so they hold during a refactoring, and they fail if any text or flag of an error
 * changes.
 *
 * To accept changed errors, run `GOLDEN=write npm test -- unit/http/golden`, and review the diff of the file.
 */
const FILE = join(import.meta.dirname, 'golden-errors.json');
const IS_WRITING = process.env.GOLDEN === 'write';
if (IS_WRITING && process.env.CI)
  throw new Error('GOLDEN=write is refused if CI is set, because the test would then accept any error.');

type Options = Parameters<typeof makeClient>[0];
type Io = NonNullable<Parameters<typeof makeClient>[1]>;
type Exchange = NonNullable<Io['exchange']>;
type Service = Awaited<ReturnType<typeof makeClient>>['service'];
type Fault = ConstructorParameters<typeof ExchangeFault>[0];

/** The response of a server. A body that is no string is sent as JSON, and a string that begins with `<` as HTML. */
type Response = readonly [
  status: number,
  body?: unknown,
  headers?: Record<string, string>,
  untilClose?: boolean,
];
const NO_RESPONSE = 'no response';
type Outcome = Fault | Response | typeof NO_RESPONSE;

interface Situation {
  name: string;
  client: ClientName;
  /** The server that fails. If it is the API, the token endpoint grants all tokens. */
  server: 'api' | 'token';
  /** What the server does, one outcome for each request. The last one is repeated. */
  outcomes: readonly Outcome[];
  act: (service: Service) => Promise<unknown>;
  /** Environment variables that are set during the call. */
  variables?: Record<string, string>;
  /** The wall clock during the call. Default: {@link NOW}, which is the time at which the client is made. */
  now?: number;
  /** The wall clock from the first outcome on. Default: `now`. */
  thenNow?: number;
}

/** The wall clock of the tests is fixed, so that the dates in messages do not change. */
const NOW = Date.UTC(2030, 0, 15, 12);
const YEAR_MS = 365 * 86_400_000;

// Clients ----------------------------------------------------------------------------------------------------------------

const APP_TOKEN = { appToken: 'app-token-1' };
const OAUTH = { clientId: '0e6a1f7c-5d1b-4c0e-9a53-2f4d7b8c9e10', clientSecret: 'client-secret-1' };
const URLS = {
  baseUrl: 'https://api.example',
  authUrl: 'https://auth.example',
  sandboxUrl: 'https://sandbox.example',
  sandboxMtlsUrl: 'https://mtls.example:8443/v1',
  sandboxAuthUrl: 'https://sandbox-auth.example',
};
const SIDECAR = {
  ...URLS,
  sandboxUrl: 'http://127.0.0.1:8080',
  sandboxMtlsUrl: 'http://127.0.0.1:8080',
  sandboxAuthUrl: 'http://127.0.0.1:8081',
};
const PROXY = { proxy: 'http://user:proxy-password@proxy.example:3128' };

/** The certificates and keys of the clients. */
let pems: Awaited<ReturnType<typeof makePems>>;

async function makePems() {
  const [authority, selfSigned] = await Promise.all([createAuthority(), issue('self-signed-app')]);
  const [{ certificate, key }, expiring] = await Promise.all([
    authority.client('app'),
    authority.client('expiring-app', { notAfter: new Date(NOW + 60_000) }),
  ]);
  const { chain } = authority;
  const signed = { certificate, privateKey: key };
  return {
    chain: { chain },
    signed: { ...signed, chain },
    publicRoots: { ...signed, publicRoots: true },
    withIntermediate: { ...signed, certificate: certificate + authority.intermediate.certificate, chain },
    selfSigned: { certificate: selfSigned.certificate, privateKey: selfSigned.key, chain },
    expiring: { certificate: expiring.certificate, privateKey: expiring.key, chain },
  };
}

const mtls = (tls: Options['tls'], more: Options = {}): Options => ({
  authentication: 'mtls',
  ...APP_TOKEN,
  urls: URLS,
  tls,
  ...more,
});
const oauth = (more: Options = {}): Options => ({
  authentication: 'oauth',
  oauth: OAUTH,
  urls: URLS,
  ...more,
});
const oauthMtls = (more: Options = {}): Options =>
  oauth({ oauth: { ...OAUTH, mtls: true }, tls: pems.signed, ...more });

/** The options that a host application passes. */
const CLIENTS = {
  'app token': () => ({ ...APP_TOKEN, urls: URLS }),
  'app token, chain': () => ({ ...APP_TOKEN, urls: URLS, tls: pems.chain }),
  'app token, proxy': () => ({ ...APP_TOKEN, urls: URLS, http: PROXY }),
  'app token, sidecar': () => ({ ...APP_TOKEN, urls: SIDECAR }),
  'app token, IPv6': () => ({ ...APP_TOKEN, urls: { ...URLS, sandboxUrl: 'https://[2001:db8::1]:8443' } }),
  mtls: () => mtls(pems.signed),
  'mtls, public roots': () => mtls(pems.publicRoots),
  'mtls, proxy': () => mtls(pems.signed, { http: PROXY }),
  'mtls, sidecar': () => mtls(undefined, { urls: SIDECAR }),
  'mtls, production': () => mtls(pems.signed, { environment: 'production' }),
  'mtls, self-signed certificate': () => mtls(pems.selfSigned),
  'mtls, certificate with its intermediate': () => mtls(pems.withIntermediate),
  'mtls, expiring certificate': () => mtls(pems.expiring),
  'mtls, key on secp256k1': () => mtls(pems.signed),
  oauth: () => oauth(),
  'oauth, proxy': () => oauth({ http: PROXY }),
  'oauth, sidecar': () => oauth({ urls: SIDECAR }),
  'oauth, production': () => oauth({ environment: 'production' }),
  'oauth, sendAppTokenWithBearer': () => oauth({ ...APP_TOKEN, sendAppTokenWithBearer: true }),
  'oauth, mtls': () => oauthMtls(),
  'oauth, mtls, proxy': () => oauthMtls({ http: PROXY }),
  'oauth, mtls, key on secp256k1': () => oauthMtls(),
  'oauth, secret that throws': () =>
    oauth({ oauth: { ...OAUTH, clientSecret: () => Promise.reject(new Error('vault sealed')) } }),
  'oauth, secret that is empty': () => oauth({ oauth: { ...OAUTH, clientSecret: async () => '' } }),
} satisfies Record<string, () => Options>;
type ClientName = keyof typeof CLIENTS;

let current: Pick<Situation, 'server' | 'name' | 'thenNow'> & { outcomes: Outcome[]; tokens: number };

const exchange: Exchange = async ({ url }) => {
  const { name, server, outcomes, thenNow } = current;
  const isTokenRequest = url.pathname.endsWith('/oauth2/token');
  if (isTokenRequest && server === 'api')
    return toResponse([200, { ...GRANT, access_token: `token-${(current.tokens += 1)}` }]);
  if (!isTokenRequest && server === 'token') throw new Error(`${name}: a request reached the API.`);
  const outcome = outcomes.length > 1 ? (outcomes.shift() as Outcome) : outcomes[0];
  if (thenNow !== undefined) jest.mocked(Date.now).mockReturnValue(thenNow);
  if (outcome === NO_RESPONSE) return new Promise(() => undefined);
  if ('kind' in outcome) throw new ExchangeFault(outcome);
  return toResponse(outcome);
};

function toResponse(response: Response): Awaited<ReturnType<Exchange>> {
  const [status, body = '', given = {}, untilClose = false] = response;
  const isText = typeof body === 'string';
  const text = isText ? body : JSON.stringify(body);
  const type = !isText ? 'application/json' : body.startsWith('<') ? 'text/html' : 'text/plain';
  const headers = { 'content-type': type, ...given };
  return { status, statusText: '', headers, body: Buffer.from(text), untilClose };
}

/** Each situation has its own client, because a client remembers tokens, refusals and retries. */
async function makeService(name: ClientName): Promise<Service> {
  const options: Options = CLIENTS[name]();
  const http = { retries: 0, ...options.http };
  // Web Crypto cannot generate a key on secp256k1, so pretend that the key of the certificate is one.
  const identity = name.includes('secp256k1') ? { keyType: 'secp256k1' } : {};
  const { service } = await makeClient({ ...options, http }, { exchange, random: () => 0, identity });
  return service;
}

// Calls ------------------------------------------------------------------------------------------------------------------

const PAYMENT = { amount: 1 };
const CALLS = {
  GET: ({ http }) => http.get('/banks/v1'),
  'GET of an item': ({ http }) => http.get('/customers/v1/c-1'),
  'GET with its own size limit': ({ http }) => http.get('/banks/v1', { maxResponseBytes: 10_485_760 }),
  POST: ({ http }) => http.post('/payments/v1', PAYMENT),
  "POST with the caller's key": ({ http }) =>
    http.post('/payments/v1', PAYMENT, { idempotencyKey: 'order-1' }),
  'POST with a generated key': ({ http }) => http.post('/payments/v1', PAYMENT, { idempotencyKey: true }),
  'readOnly POST': ({ http }) => http.post('/payments/v1', PAYMENT, { readOnly: true }),
} satisfies Record<string, (service: Service) => Promise<unknown>>;
type CallName = keyof typeof CALLS;
const CALLS_OF_EACH_KIND: readonly CallName[] = [
  'GET',
  'POST',
  "POST with the caller's key",
  'POST with a generated key',
  'readOnly POST',
];

const TOKENS = {
  'api token': ({ auth }) => auth.getApiToken({ once: true }),
  'customer token': ({ auth }) => auth.getCustomerToken('c-1', { once: true }),
} satisfies Record<string, (service: Service) => Promise<unknown>>;
type TokenName = keyof typeof TOKENS;

const GRANT = { access_token: 'token-1', token_type: 'Bearer', expires_in: 3_600 };
const GRANTED: Response = [200, GRANT];

// Faults -----------------------------------------------------------------------------------------------------------------

interface FaultRow {
  /** One situation for each code. An empty string makes a fault without a code. */
  reasons?: readonly string[];
  /** The other fields of the fault. */
  more?: Partial<Fault>;
  clients?: readonly ClientName[];
  calls?: readonly CallName[];
  /** The tokens to request, if it is the token endpoint that fails. `calls` is then ignored. */
  tokens?: readonly TokenName[];
  /** Sets HTTPS_PROXY, which clients ignore as long as `http.proxy` is not set. */
  ignoresProxy?: boolean;
}

/** How the names of situations describe the fields of a fault. */
const NAMES: Partial<Record<keyof Fault, string>> = {
  reusedSocket: 'reused connection',
  handshakeRefused: 'in the handshake',
  addresses: 'two addresses',
  opensslText: "OpenSSL's text",
  limitMs: 'with its limit',
  limitBytes: 'with its limit',
  bodyBytes: 'with its size',
};
const REUSED = { reusedSocket: true };
const SUSPECTED = { certificateVerdict: 'perhaps-refused' } as const;
const REFUSED = { certificateVerdict: 'refused' } as const;
const IN_HANDSHAKE = { ...REFUSED, handshakeRefused: true };
const LIMIT = { limitMs: 30_000 };
const SIZE_LIMIT = { limitBytes: 10_485_760 };

const describeFault = (fault: Fault): string[] => [
  `${fault.kind}, ${fault.phase}`,
  fault.reason ?? 'no code',
  ...(fault.certificateVerdict ? [`certificate ${fault.certificateVerdict}`] : []),
  ...Object.entries(NAMES).flatMap(([key, name]) => (key in fault ? [name] : [])),
];

/** Whether the server that refuses a certificate has got one. Over TLS 1.3, a key on secp256k1 is never used. */
function getsCertificate(client: ClientName, { phase, reason }: Fault): boolean {
  if (reason === CERTIFICATE_REQUIRED || !client.includes('mtls')) return false;
  return !(phase === 'sent' && client.includes('secp256k1'));
}

function faults(kind: Fault['kind'], phase: Fault['phase'], row: FaultRow = {}): Situation[] {
  const { reasons = [''], more, clients, calls = ['GET'], tokens, ignoresProxy } = row;
  const acts = tokens
    ? tokens.map((name) => ({ name, server: 'token' as const, act: TOKENS[name] }))
    : calls.map((name) => ({ name, server: 'api' as const, act: CALLS[name] }));
  return (clients ?? [tokens ? 'oauth' : 'app token']).flatMap((client) =>
    reasons.flatMap((reason) =>
      acts.map(({ name, server, act }) => {
        const fault = { kind, phase, ...(reason && { reason }), ...more };
        if (fault.certificateVerdict === 'refused' && !getsCertificate(client, fault))
          fault.certificateVerdict = 'not-sent';
        const ignored = ignoresProxy ? ['HTTPS_PROXY ignored'] : [];
        return {
          name: [`${server} fault: ${describeFault(fault).join(', ')}`, client, ...ignored, name].join(' | '),
          client,
          server,
          outcomes: [fault],
          act,
          ...(ignoresProxy && { variables: { HTTPS_PROXY: PROXY.proxy } }),
        };
      }),
    ),
  );
}

/** Node's code for an error of OpenSSL, here mostly for a TLS alert that the server has sent. */
const opensslCode = (name: string): string => `ERR_SSL_${name}`;
/** Since Node 22.20, the codes of these alerts begin with SSL_TLS. Before, they began with SSLV3. */
const RENAMED_ALERTS = [
  'BAD_CERTIFICATE',
  'UNSUPPORTED_CERTIFICATE',
  'CERTIFICATE_REVOKED',
  'CERTIFICATE_EXPIRED',
  'CERTIFICATE_UNKNOWN',
].flatMap((name) => [opensslCode(`SSLV3_ALERT_${name}`), opensslCode(`SSL_TLS_ALERT_${name}`)]);
const CERTIFICATE_ALERTS = [
  ...RENAMED_ALERTS,
  opensslCode('TLSV1_ALERT_UNKNOWN_CA'),
  opensslCode('TLSV1_ALERT_ACCESS_DENIED'),
  opensslCode('TLSV13_ALERT_CERTIFICATE_REQUIRED'),
];
const HANDSHAKE_FAILURE = opensslCode('SSLV3_ALERT_HANDSHAKE_FAILURE');
const HANDSHAKE_ALERTS = [
  HANDSHAKE_FAILURE,
  opensslCode('SSL_TLS_ALERT_HANDSHAKE_FAILURE'),
  opensslCode('SSL_TLS_ALERT_ILLEGAL_PARAMETER'),
  opensslCode('TLSV1_ALERT_DECODE_ERROR'),
  opensslCode('TLSV1_ALERT_DECRYPT_ERROR'),
];
const INTERNAL_ERROR = opensslCode('TLSV1_ALERT_INTERNAL_ERROR');
const PROTOCOL_VERSION = opensslCode('TLSV1_ALERT_PROTOCOL_VERSION');
const UNKNOWN_CA = opensslCode('TLSV1_ALERT_UNKNOWN_CA');
const BAD_CERTIFICATE = opensslCode('SSLV3_ALERT_BAD_CERTIFICATE');
const CERTIFICATE_REQUIRED = opensslCode('TLSV13_ALERT_CERTIFICATE_REQUIRED');

const UNKNOWN_ISSUER = [
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_UNTRUSTED',
  'INVALID_CA',
];
const VERIFICATION = [
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_SIGNATURE_FAILURE',
  ...UNKNOWN_ISSUER,
  'CERT_REVOKED',
  'CRL_HAS_EXPIRED',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'HOSTNAME_MISMATCH',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'UNSPECIFIED',
];
const OPENSSL_TEXT = { reason: 'UNSPECIFIED', opensslText: 'permitted subtree violation' };
const ADDRESSES = { addresses: ['192.0.2.1:443', '[2001:db8::1]:443'] };

const TIMEOUTS = [
  ...faults('timeout', 'queued', { more: LIMIT }),
  ...faults('timeout', 'queued'),
  ...faults('timeout', 'sent', { reasons: ['ERR_INTERCEPTOR_TIMEOUT'], more: LIMIT }),
  ...faults('timeout', 'waiting'),
  ...faults('timeout', 'connecting', {
    reasons: ['ERR_CONNECT_TIMEOUT'],
    more: { limitMs: 5_000 },
    clients: ['app token', 'app token, proxy'],
  }),
  ...faults('timeout', 'connecting', {
    reasons: ['ERR_CONNECT_TIMEOUT'],
    clients: ['app token, IPv6', 'app token, sidecar'],
  }),
  ...faults('timeout', 'connecting', { reasons: ['ERR_CONNECT_TIMEOUT'], calls: ['POST'] }),
  ...faults('timeout', 'connecting', { reasons: ['ERR_CONNECT_TIMEOUT'], ignoresProxy: true }),
  ...faults('timeout', 'connecting', { reasons: ['ETIMEDOUT'], more: ADDRESSES }),
  ...faults('timeout', 'sent', { more: LIMIT, calls: CALLS_OF_EACH_KIND }),
  ...faults('timeout', 'sent', { clients: ['app token, proxy', 'mtls, production'] }),
  ...faults('timeout', 'sent', { reasons: ['ERR_IDLE_CONNECTION_TIMEOUT'] }),
  ...faults('timeout', 'reading', { more: LIMIT, calls: ['GET', 'POST'] }),
];

const RESETS = [
  ...faults('reset', 'connecting', {
    reasons: ['ECONNRESET'],
    clients: ['app token', 'app token, proxy', 'app token, sidecar', 'mtls', 'mtls, proxy'],
  }),
  ...faults('reset', 'connecting', { reasons: ['ECONNRESET'], ignoresProxy: true }),
  ...faults('reset', 'connecting', {
    reasons: ['ECONNRESET'],
    more: REUSED,
  }),
  ...faults('reset', 'sent', {
    reasons: ['ECONNRESET'],
    calls: ['GET', 'POST', "POST with the caller's key"],
  }),
  ...faults('reset', 'sent', {
    reasons: ['ECONNRESET'],
    clients: ['app token, proxy', 'app token, sidecar'],
  }),
  ...faults('reset', 'sent', { reasons: ['ECONNRESET'], more: REUSED }),
  ...faults('reset', 'reading'),
  ...faults('reset', 'reading', { reasons: ['ERR_STREAM_PREMATURE_CLOSE'], calls: ['POST'] }),
  ...faults('reset', 'sent', {
    reasons: ['ECONNRESET'],
    more: SUSPECTED,
    clients: ['mtls', 'mtls, proxy'],
    calls: ['GET', 'POST'],
  }),
  ...faults('reset', 'connecting', { reasons: ['ECONNRESET'], more: SUSPECTED, clients: ['mtls'] }),
];

const UNREACHED = [
  ...faults('refused', 'connecting', { reasons: ['ECONNREFUSED'] }),
  ...faults('refused', 'connecting', { reasons: ['ECONNREFUSED'], clients: ['app token, sidecar'] }),
  ...faults('refused', 'connecting', { reasons: ['ECONNREFUSED'], more: ADDRESSES, ignoresProxy: true }),
  ...faults('dns', 'connecting', { reasons: ['ENOTFOUND', 'EAI_AGAIN'] }),
  ...faults('dns', 'connecting', { reasons: ['ENOTFOUND'], ignoresProxy: true }),
  ...faults('network', 'connecting', { reasons: ['EMFILE', 'ENETUNREACH'] }),
  ...faults('network', 'connecting', { reasons: ['ERR_ACCESS_DENIED'], calls: ['GET', 'POST'] }),
  ...faults('network', 'connecting', { reasons: ['ENETUNREACH'], ignoresProxy: true }),
  ...faults('network', 'sent', { reasons: ['ENETDOWN'], calls: ['POST'] }),
  ...faults('closed', 'sent', { reasons: ['', 'ERR_CANCELED'], calls: ['GET', 'POST'] }),
];

const MALFORMED = [
  ...faults('too_large', 'reading', {
    more: { ...SIZE_LIMIT, bodyBytes: 20_000_000 },
    calls: ['GET', 'POST'],
  }),
  ...faults('too_large', 'reading', { reasons: ['ERR_BUFFER_TOO_LARGE'], more: SIZE_LIMIT }),
  ...faults('too_large', 'reading', { more: SIZE_LIMIT, calls: ['GET with its own size limit'] }),
  ...faults('protocol', 'reading', {
    reasons: [
      'HPE_HEADER_OVERFLOW',
      'HPE_INVALID_CONSTANT',
      'Z_DATA_ERROR',
      'Z_BUF_ERROR',
      'ERR_BROTLI_DECODER_ERROR_FORMAT_PADDING_1',
      'ERR__ERROR_FORMAT_PADDING_1',
      'ERR_HTTP_CONTENT_CODING',
      'ERR_HTTP_INVALID_STATUS_CODE',
    ],
  }),
  ...faults('protocol', 'reading', { reasons: ['HPE_INVALID_CONSTANT'], clients: ['app token, proxy'] }),
  ...faults('protocol', 'reading', {
    reasons: ['Z_DATA_ERROR'],
    calls: ["POST with the caller's key"],
  }),
];

const NO_TLS = ['WRONG_VERSION_NUMBER', 'PACKET_LENGTH_TOO_LONG', 'HTTP_REQUEST', 'UNKNOWN_PROTOCOL'];
const TLS = [
  ...faults('tls', 'connecting', {
    reasons: ['ERR_FOREIGN_CONNECTION'],
    clients: ['app token', 'app token, proxy'],
  }),
  ...faults('tls', 'connecting', { reasons: VERIFICATION }),
  ...faults('tls', 'connecting', { more: OPENSSL_TEXT, clients: ['app token', 'mtls, proxy'] }),
  ...faults('tls', 'connecting', {
    reasons: ['SELF_SIGNED_CERT_IN_CHAIN'],
    clients: ['mtls', 'mtls, public roots', 'app token, chain', 'mtls, proxy'],
  }),
  ...faults('tls', 'connecting', {
    reasons: ['CERT_SIGNATURE_FAILURE'],
    clients: ['mtls'],
  }),
  ...faults('tls', 'connecting', {
    reasons: ['CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    clients: ['app token, proxy'],
  }),
  ...faults('tls', 'connecting', { reasons: NO_TLS.map(opensslCode) }),
  ...faults('tls', 'connecting', {
    reasons: [opensslCode('WRONG_VERSION_NUMBER')],
    clients: ['app token, proxy'],
  }),
  ...faults('tls', 'sent', { reasons: ['', 'EPROTO', PROTOCOL_VERSION, INTERNAL_ERROR] }),
  ...faults('tls', 'connecting', {
    reasons: ['CA_KEY_TOO_SMALL', 'CA_MD_TOO_WEAK'].map(opensslCode),
    clients: ['mtls'],
    calls: ['POST'],
  }),
  ...faults('tls', 'connecting', {
    reasons: ['DH_KEY_TOO_SMALL', 'UNSUPPORTED_PROTOCOL'].map(opensslCode),
  }),
  ...faults('tls', 'sent', {
    reasons: [
      HANDSHAKE_FAILURE,
      opensslCode('SSL_TLS_ALERT_HANDSHAKE_FAILURE'),
      opensslCode('TLSV1_ALERT_DECODE_ERROR'),
      opensslCode('TLSV1_ALERT_DECRYPT_ERROR'),
    ],
    more: { handshakeRefused: true },
  }),
  ...faults('tls', 'connecting', {
    reasons: [HANDSHAKE_FAILURE],
    clients: ['app token', 'mtls', 'mtls, proxy'],
  }),
  ...faults('tls', 'sent', { reasons: [HANDSHAKE_FAILURE], clients: ['mtls'] }),
  ...faults('tls', 'connecting', { reasons: [HANDSHAKE_FAILURE], more: SUSPECTED, clients: ['mtls'] }),
  ...faults('tls', 'sent', {
    reasons: [INTERNAL_ERROR],
    more: SUSPECTED,
    clients: ['mtls'],
    calls: ['GET', 'POST'],
  }),
  ...faults('tls', 'sent', { reasons: [''], calls: ['POST', "POST with the caller's key"] }),
];

const PROXIES = [
  ...faults('proxy', 'connecting', {
    reasons: [
      '',
      'ERR_PROXY_AUTH_SCHEME',
      'ERR_PROXY_TUNNEL_400',
      'ERR_PROXY_TUNNEL_401',
      'ERR_PROXY_TUNNEL_403',
      'ERR_PROXY_TUNNEL_404',
      'ERR_PROXY_TUNNEL_407',
      'ERR_PROXY_TUNNEL_501',
      'ERR_PROXY_SELF_SIGNED_CERT_IN_CHAIN',
      'ERR_PROXY_ECONNREFUSED',
      'ERR_PROXY_ECONNRESET',
      'ERR_PROXY_ENOTFOUND',
      'ERR_PROXY_ACCESS_DENIED',
    ],
    clients: ['app token, proxy'],
  }),
  ...faults('proxy', 'connecting', {
    reasons: ['ERR_PROXY_TUNNEL_407', 'ERR_PROXY_TUNNEL_503'],
    clients: ['mtls, proxy'],
    calls: ['POST'],
  }),
];

const CERTIFICATES = [
  ...faults('tls', 'sent', { reasons: CERTIFICATE_ALERTS, more: IN_HANDSHAKE, clients: ['mtls'] }),
  ...faults('tls', 'sent', { reasons: HANDSHAKE_ALERTS, more: IN_HANDSHAKE, clients: ['mtls'] }),
  ...faults('tls', 'sent', {
    reasons: [UNKNOWN_CA],
    more: IN_HANDSHAKE,
    clients: ['mtls, self-signed certificate', 'mtls, certificate with its intermediate'],
  }),
  ...faults('tls', 'sent', {
    reasons: [BAD_CERTIFICATE, CERTIFICATE_REQUIRED],
    more: IN_HANDSHAKE,
    clients: ['mtls, key on secp256k1'],
  }),
  ...faults('tls', 'connecting', {
    reasons: [BAD_CERTIFICATE],
    more: IN_HANDSHAKE,
    clients: ['mtls, key on secp256k1'],
  }),
  ...faults('tls', 'sent', { reasons: [UNKNOWN_CA], more: IN_HANDSHAKE, clients: ['mtls'], calls: ['POST'] }),
  ...faults('tls', 'sent', {
    reasons: [UNKNOWN_CA],
    more: REFUSED,
    clients: ['mtls'],
    calls: ['POST', "POST with the caller's key"],
  }),
  ...faults('tls', 'sent', { reasons: [UNKNOWN_CA], more: REFUSED, calls: ['POST'] }),
  ...faults('tls', 'sent', { reasons: [BAD_CERTIFICATE, CERTIFICATE_REQUIRED], more: IN_HANDSHAKE }),
  ...faults('tls', 'sent', {
    reasons: [opensslCode('SSLV3_ALERT_CERTIFICATE_EXPIRED')],
    more: IN_HANDSHAKE,
    clients: ['mtls, expiring certificate'],
  }).map((situation): Situation => ({ ...situation, now: NOW + YEAR_MS })),
];

// Responses of the API ---------------------------------------------------------------------------------------------------

const HTML = '<html><head><title>Sorry</title></head><body>Sorry</body></html>';
const CERTIFICATE_ERROR = '<html><h1>400 Bad Request</h1>The SSL certificate error</html>';
const NONE_SENT = '<html><h1>400 Bad Request</h1>No required SSL certificate was sent</html>';
const POST_HANDSHAKE =
  '<html><h1>Forbidden</h1><p>You do not have permission. Reason: Cannot perform Post-Handshake Authentication.</p></html>';
const NO_MATCH = { code: 'ERR_NOCK_NO_MATCH', message: 'Nock: No match for request {}' };
const named = (status: string, message = 'as the service says it') => ({ status, message });

interface ResponseRow {
  clients?: readonly ClientName[];
  calls?: readonly CallName[];
}

function responses(title: string, response: Response, row: ResponseRow = {}): Situation[] {
  const { clients = ['app token'], calls = ['GET'] } = row;
  return clients.flatMap((client) =>
    calls.map((name) => ({
      name: `api response: ${response[0]} ${title} | ${client} | ${name}`,
      client,
      server: 'api' as const,
      outcomes: [response],
      act: CALLS[name],
    })),
  );
}

/** A call that is not among {@link CALLS}, or one with several outcomes. */
function apiCall(
  title: string,
  outcomes: readonly Outcome[],
  act: Situation['act'],
  client: ClientName = 'app token',
): Situation {
  return { name: `api call: ${title} | ${client}`, client, server: 'api', outcomes, act };
}

const location = (location: string) => ({ location });
const REDIRECTS = [
  ...[300, 301, 302, 303, 307, 308].flatMap((status) =>
    responses('to another host', [status, '', location('https://other.example/login?session=1')]),
  ),
  ...responses('to the same path with a slash', [308, '', location('/banks/v1/')]),
  ...responses('to another path', [302, HTML, location('/login')]),
  ...responses('without a location', [301]),
  ...responses('not modified', [304]),
  ...responses('to a receipt', [303, '', location('/receipts/1')], {
    calls: ['POST', "POST with the caller's key"],
  }),
];

const REFUSALS = [
  ...responses('JSON', [400, named('BAD_REQUEST')]),
  ...responses('JSON', [400, named('INVALID_AMOUNT')], {
    clients: ['oauth, sendAppTokenWithBearer'],
    calls: ['POST'],
  }),
  ...responses('JSON without texts', [400, {}], { clients: ['oauth, sendAppTokenWithBearer', 'oauth'] }),
  ...responses('page', [400, HTML]),
  ...responses('page about the certificate', [400, CERTIFICATE_ERROR], {
    clients: ['mtls', 'mtls, self-signed certificate', 'mtls, sidecar', 'app token'],
  }),
  ...responses('page about the certificate', [400, CERTIFICATE_ERROR], {
    clients: ['mtls'],
    calls: ['POST'],
  }),
  ...responses('page about no certificate', [400, NONE_SENT], {
    clients: ['mtls', 'mtls, key on secp256k1'],
  }),
  ...responses(
    'page of another proxy about a certificate',
    [403, '<html>Client Certificate required</html>'],
    {
      clients: ['mtls'],
    },
  ),
  ...responses('empty', [495], { clients: ['mtls'] }),
  ...responses('empty', [496], { clients: ['mtls', 'app token'] }),
  ...responses('JSON', [401, named('UNAUTHORIZED')], {
    clients: ['app token', 'mtls', 'mtls, sidecar', 'oauth'],
  }),
  ...responses('empty', [401], { calls: ['POST'] }),
  ...responses('page', [401, HTML], { clients: ['mtls'] }),
  ...responses(
    'page with a bearer challenge',
    [401, HTML, { 'www-authenticate': 'Bearer error="invalid_token"' }],
    { clients: ['oauth'], calls: ['POST'] },
  ),
  ...responses('CONSENT_EXPIRED', [403, named('CONSENT_EXPIRED')], { clients: ['app token', 'oauth'] }),
  ...responses('FORBIDDEN', [403, named('FORBIDDEN')], { clients: ['mtls'] }),
  ...responses('empty', [403], { clients: ['mtls', 'oauth'] }),
  ...responses('page', [403, HTML], { clients: ['app token', 'mtls', 'app token, sidecar'] }),
  ...responses('page', [403, HTML], { calls: ['POST'] }),
  ...responses('page of an Apache that asks too late', [403, POST_HANDSHAKE], { clients: ['mtls'] }),
];

const RETRY_AFTER = { 'retry-after': '7' };
const OTHERS = [
  ...responses('JSON', [404, named('NOT_FOUND')], { calls: ['GET', 'GET of an item'] }),
  ...responses('empty', [404]),
  ...responses('page', [404, HTML], { calls: ['GET of an item'] }),
  ...responses('empty', [405], { calls: ['POST'] }),
  ...responses('empty', [408], { calls: ['GET', 'POST', "POST with the caller's key"] }),
  ...responses('named', [409, named('CUSTOMER_ALREADY_EXISTS')], { calls: ['POST'] }),
  ...responses('list of messages', [422, { status: 422, message: ['a is missing', 'b is wrong'] }], {
    calls: ['POST'],
  }),
  ...responses('detail', [422, { title: 'Invalid', detail: 'the amount is negative' }], { calls: ['POST'] }),
  ...responses('title', [422, { title: 'Invalid' }], { calls: ['POST'] }),
  ...responses('echo of a secret', [422, { message: 'no such app: app-token-1' }], { calls: ['POST'] }),
  ...responses('long text', [422, { message: 'wrong '.repeat(200) }], { calls: ['POST'] }),
  ...responses('empty', [425]),
  ...responses('JSON', [429, named('TOO_MANY_REQUESTS')], { calls: ['POST'] }),
  ...responses('with Retry-After', [429, '', RETRY_AFTER]),
  ...responses('duplicate', [429, named('DUPLICATED_REQUEST'), RETRY_AFTER], {
    calls: ['GET', 'POST', "POST with the caller's key"],
  }),
  ...responses('duplicate without a text', [429, { status: 'DUPLICATED_REQUEST' }], { calls: ['POST'] }),
];

const BROKEN = [
  ...responses('JSON', [500, named('INTERNAL')], { calls: ['GET', 'POST', "POST with the caller's key"] }),
  ...responses('empty', [500]),
  ...responses('page', [500, HTML], { clients: ['app token', 'app token, sidecar'] }),
  ...responses('JSON', [500, named('INTERNAL')], { clients: ['app token, sidecar'] }),
  ...responses('empty', [501]),
  ...responses('of nock', [501, NO_MATCH]),
  ...responses('empty', [502], { clients: ['app token', 'mtls, sidecar'] }),
  ...responses('page', [502, HTML], { clients: ['oauth, sidecar'], calls: ['POST'] }),
  ...responses('with Retry-After', [503, named('MAINTENANCE'), RETRY_AFTER]),
  ...responses('page', [503, HTML], { clients: ['app token, sidecar'] }),
  ...responses('empty', [504], { calls: ['POST'] }),
  ...responses('text', [520, 'Web server is returning an unknown error']),
];

const refusing = (error: unknown) => () => {
  throw error;
};
const UNUSABLE = [
  ...responses('page', [200, HTML], { calls: ['GET', 'POST', "POST with the caller's key"] }),
  ...responses('empty', [200]),
  ...responses('text', [200, 'OK'], { calls: ['GET', 'POST'] }),
  ...responses('cut JSON', [200, '{"a":', { 'content-type': 'application/json' }]),
  ...responses('an unknown coding', [200, 'sNaPpY', { 'content-encoding': 'Snappy, gzip' }]),
  ...responses('number until the end of the connection', [200, '12', {}, true]),
  apiCall(
    '200 with an unknown charset',
    [[200, 'a;b', { 'content-type': 'text/csv; charset=klingon' }]],
    ({ http }) => http.get('/banks/v1', { responseType: 'text' }),
  ),
  apiCall('200 that parse refuses', [[200, { id: 1 }]], ({ http }) =>
    http.get('/banks/v1', { parse: refusing(new Error('id 1 is wrong')) }),
  ),
  apiCall('200 of a POST that parse refuses', [[200, { id: 1 }]], ({ http }) =>
    http.post('/payments/v1', PAYMENT, { parse: refusing({ issues: [{ path: ['data', 0, 'id'] }] }) }),
  ),
  apiCall('204 that parse refuses', [[204]], ({ http }) =>
    http.get('/banks/v1', { parse: refusing(new TypeError('no body')) }),
  ),
];

const SENT_RESET: Fault = { kind: 'reset', phase: 'sent', reason: 'ECONNRESET' };
const UNSENT: Fault = { kind: 'refused', phase: 'connecting', reason: 'ECONNREFUSED' };
const retried =
  (options: object): Situation['act'] =>
  ({ http }) =>
    http.post('/payments/v1', PAYMENT, { retries: 1, ...options });
const SEVERAL = [
  apiCall(
    'POST with a key: reset, then 409',
    [SENT_RESET, [409, named('ORDER_EXISTS')]],
    retried({ idempotencyKey: 'order-1' }),
  ),
  apiCall(
    'POST with a key: reset, then refused',
    [SENT_RESET, UNSENT],
    retried({ idempotencyKey: 'order-1' }),
  ),
  apiCall('POST: refused, then reset', [UNSENT, SENT_RESET], retried({})),
  apiCall(
    'GET: reset of a reused connection, then refused',
    [{ ...SENT_RESET, ...REUSED }, UNSENT],
    CALLS.GET,
  ),
  apiCall(
    'GET: 401, then 401 with another token',
    [
      [401, {}],
      [401, {}],
    ],
    CALLS.GET,
    'oauth, production',
  ),
  apiCall('after close()', [[200, {}]], async (service) => {
    await service.close();
    return service.http.get('/banks/v1');
  }),
  apiCall('URL of another host', [[200, {}]], ({ http }) => http.get('https://other.example/banks/v1')),
];

// Token endpoint ---------------------------------------------------------------------------------------------------------

const API_ONLY: readonly TokenName[] = ['api token'];
const tokenFaults = (kind: Fault['kind'], phase: Fault['phase'], row: FaultRow = {}): Situation[] =>
  faults(kind, phase, { tokens: API_ONLY, ...row });

const TOKEN_FAULTS = [
  ...tokenFaults('timeout', 'queued', { more: LIMIT }),
  ...tokenFaults('timeout', 'connecting', {
    reasons: ['ERR_CONNECT_TIMEOUT'],
    clients: ['oauth', 'oauth, proxy'],
  }),
  ...tokenFaults('timeout', 'connecting', { reasons: ['ERR_CONNECT_TIMEOUT'], ignoresProxy: true }),
  ...tokenFaults('timeout', 'sent', { more: { limitMs: 10_000 }, tokens: ['customer token'] }),
  ...tokenFaults('timeout', 'reading', { more: { limitMs: 10_000 } }),
  ...tokenFaults('reset', 'connecting', {
    reasons: ['ECONNRESET'],
    clients: ['oauth', 'oauth, mtls'],
  }),
  ...tokenFaults('reset', 'sent', {
    reasons: ['ECONNRESET'],
    clients: ['oauth', 'oauth, proxy', 'oauth, sidecar'],
  }),
  ...tokenFaults('reset', 'sent', {
    reasons: ['ECONNRESET'],
    more: SUSPECTED,
    clients: ['oauth, mtls', 'oauth, mtls, proxy'],
  }),
  ...tokenFaults('refused', 'connecting', { reasons: ['ECONNREFUSED'] }),
  ...tokenFaults('dns', 'connecting', { reasons: ['ENOTFOUND'] }),
  ...tokenFaults('network', 'connecting', { reasons: ['EHOSTUNREACH'] }),
  ...tokenFaults('too_large', 'reading', { more: { limitBytes: 1_048_576 } }),
  ...tokenFaults('protocol', 'reading', { reasons: ['HPE_INVALID_CONSTANT'] }),
  ...tokenFaults('closed', 'sent'),
  ...tokenFaults('proxy', 'connecting', {
    reasons: ['ERR_PROXY_TUNNEL_407', 'ERR_PROXY_ECONNREFUSED'],
    clients: ['oauth, proxy'],
  }),
  ...tokenFaults('tls', 'connecting', {
    reasons: [
      'CERT_HAS_EXPIRED',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      opensslCode('WRONG_VERSION_NUMBER'),
    ],
  }),
  ...tokenFaults('tls', 'connecting', {
    reasons: ['CERT_SIGNATURE_FAILURE', 'SELF_SIGNED_CERT_IN_CHAIN', HANDSHAKE_FAILURE],
    clients: ['oauth, mtls'],
  }),
  ...tokenFaults('tls', 'sent', { reasons: [HANDSHAKE_FAILURE, ''] }),
  ...tokenFaults('tls', 'sent', {
    reasons: [UNKNOWN_CA, CERTIFICATE_REQUIRED],
    more: IN_HANDSHAKE,
    clients: ['oauth', 'oauth, mtls'],
  }),
  ...tokenFaults('tls', 'sent', {
    reasons: [BAD_CERTIFICATE],
    more: IN_HANDSHAKE,
    clients: ['oauth, mtls, key on secp256k1'],
  }),
  ...tokenFaults('tls', 'sent', { reasons: [INTERNAL_ERROR], more: SUSPECTED, clients: ['oauth, mtls'] }),
];

interface TokenRow {
  clients?: readonly ClientName[];
  tokens?: readonly TokenName[];
}

function tokenResponses(title: string, response: Response, row: TokenRow = {}): Situation[] {
  const { clients = ['oauth'], tokens = API_ONLY } = row;
  return clients.flatMap((client) =>
    tokens.map((name) => ({
      name: `token response: ${response[0]} ${title} | ${client} | ${name}`,
      client,
      server: 'token' as const,
      outcomes: [response],
      act: TOKENS[name],
    })),
  );
}

function tokenCall(
  title: string,
  outcomes: readonly Outcome[],
  act: Situation['act'],
  client: ClientName = 'oauth',
): Situation {
  return { name: `token call: ${title} | ${client}`, client, server: 'token', outcomes, act };
}

const refusal = (status: number, error: string, description?: string): Response => [
  status,
  { error, error_description: description },
];
const BOTH: readonly TokenName[] = ['api token', 'customer token'];
const PAGES = { clients: ['oauth', 'oauth, mtls'] } as const;

const TOKEN_REFUSALS = [
  ...tokenResponses('invalid_client', refusal(401, 'invalid_client', 'Client authentication failed'), {
    clients: ['oauth', 'oauth, production'],
  }),
  ...tokenResponses('unauthorized_client', refusal(400, 'unauthorized_client')),
  ...tokenResponses('invalid_scope', refusal(400, 'invalid_scope', 'customer.c-1 is unknown'), {
    tokens: BOTH,
  }),
  ...tokenResponses('scope_invalid', refusal(400, 'scope_invalid'), { tokens: ['customer token'] }),
  ...tokenResponses('invalid_request', refusal(400, 'invalid_request')),
  ...tokenResponses('unsupported_grant_type', refusal(401, 'unsupported_grant_type')),
  ...tokenResponses('temporarily_unavailable', refusal(400, 'temporarily_unavailable')),
  ...tokenResponses('server_error', refusal(400, 'server_error')),
  ...tokenResponses('echo of the secret', refusal(400, 'invalid_request', 'secret client-secret-1 is wrong')),
  ...tokenResponses('error code that is a sentence', refusal(400, 'Something went wrong')),
  ...tokenResponses('page', [401, HTML]),
  ...tokenResponses('page', [403, HTML], PAGES),
  ...tokenResponses('page', [404, HTML]),
  ...tokenResponses('JSON', [401, { message: 'Unauthorized' }]),
  ...tokenResponses('JSON', [403, { message: 'Forbidden' }]),
  ...tokenResponses('JSON', [404, { message: 'Not found' }]),
  ...tokenResponses('empty', [408]),
  ...tokenResponses('empty', [425]),
  ...tokenResponses('JSON', [429, { message: 'slow down' }]),
  ...tokenResponses('with Retry-After', [429, '', RETRY_AFTER]),
  ...tokenResponses('with a long Retry-After', [429, '', { 'retry-after': '86400' }]),
  ...tokenResponses('JSON', [500, { message: 'failed' }]),
  ...tokenResponses('page', [502, HTML], { clients: ['oauth', 'oauth, sidecar'] }),
  ...tokenResponses('empty', [502], { clients: ['oauth', 'oauth, sidecar'] }),
  ...tokenResponses('with Retry-After', [503, '', RETRY_AFTER]),
  ...tokenResponses('to another host', [302, '', location('https://login.example/sso?session=1')]),
  ...tokenResponses('to another path', [307, '', location('/oauth2/token/')]),
  ...tokenResponses('without a location', [301]),
  ...tokenResponses('page about the certificate', [400, CERTIFICATE_ERROR], PAGES),
  ...tokenResponses('page about no certificate', [400, NONE_SENT], { clients: ['oauth, mtls'] }),
  ...tokenResponses('empty', [496], PAGES),
  ...tokenResponses('page of an Apache that asks too late', [403, POST_HANDSHAKE]),
];

const TOKEN_UNUSABLE = [
  ...tokenResponses('page', [200, HTML]),
  ...tokenResponses('text', [200, 'OK']),
  ...tokenResponses('an unknown coding', [200, 'sNaPpY', { 'content-encoding': 'Snappy' }]),
  ...tokenResponses('null', [200, null]),
  ...tokenResponses('list', [200, []]),
  ...tokenResponses('error', [200, { error: 'invalid_client' }]),
  ...tokenResponses('token_type mac', [200, { ...GRANT, token_type: 'mac' }]),
  ...tokenResponses('another scope', [200, { ...GRANT, scope: 'api other' }]),
  ...tokenResponses('scope of another customer', [200, { ...GRANT, scope: 'customer.c-2' }], {
    tokens: BOTH,
  }),
  ...tokenResponses('scope that is no text', [200, { ...GRANT, scope: ['api'] }]),
  ...tokenResponses('without access_token', [200, { ...GRANT, access_token: undefined }]),
  ...tokenResponses('access_token with a space', [200, { ...GRANT, access_token: 'a b' }]),
  ...tokenResponses('long access_token', [200, { ...GRANT, access_token: 'a'.repeat(20_000) }]),
  ...tokenResponses('expires_in that is no number', [200, { ...GRANT, expires_in: 'soon' }]),
  ...tokenResponses('negative expires_in', [200, { ...GRANT, expires_in: -1 }]),
];

const after =
  (first: Situation['act'], then: Situation['act']): Situation['act'] =>
  async (service) => {
    await first(service).catch(() => undefined);
    return then(service);
  };
const apiToken = TOKENS['api token'];
const TOKEN_CALLS: readonly Situation[] = [
  tokenCall('no OAuth credentials, api token', [GRANTED], apiToken, 'app token'),
  tokenCall('no OAuth credentials, api token', [GRANTED], apiToken, 'mtls, production'),
  tokenCall('no OAuth credentials, customer token', [GRANTED], TOKENS['customer token'], 'app token'),
  tokenCall('secret cannot be read', [GRANTED], apiToken, 'oauth, secret that throws'),
  tokenCall('secret cannot be read', [GRANTED], apiToken, 'oauth, secret that is empty'),
  tokenCall('invalid_client that is remembered', [refusal(401, 'invalid_client')], after(apiToken, apiToken)),
  tokenCall('GET: invalid_client', [refusal(401, 'invalid_client')], CALLS.GET),
  tokenCall('POST: invalid_scope', [refusal(400, 'invalid_scope')], CALLS.POST),
  tokenCall(
    'certificate refused',
    [{ kind: 'tls', phase: 'sent', reason: UNKNOWN_CA, ...IN_HANDSHAKE }],
    CALLS.POST,
    'oauth, mtls',
  ),
  tokenCall('no token within the time limit of the call', [NO_RESPONSE], ({ auth, close }) =>
    auth.getApiToken({ timeout: 20 }).finally(close),
  ),
  { ...tokenCall('token that has expired when it arrives', [GRANTED], apiToken), thenNow: NOW + YEAR_MS },
  tokenCall('after close()', [GRANTED], async (service) => {
    await service.close();
    return apiToken(service);
  }),
  tokenCall('customer id with a slash', [GRANTED], ({ auth }) => auth.getCustomerToken('a/b')),
];

// The comparison ---------------------------------------------------------------------------------------------------------

const SITUATIONS: readonly Situation[] = [
  ...TIMEOUTS,
  ...RESETS,
  ...UNREACHED,
  ...MALFORMED,
  ...TLS,
  ...PROXIES,
  ...CERTIFICATES,
  ...REDIRECTS,
  ...REFUSALS,
  ...OTHERS,
  ...BROKEN,
  ...UNUSABLE,
  ...SEVERAL,
  ...TOKEN_FAULTS,
  ...TOKEN_REFUSALS,
  ...TOKEN_UNUSABLE,
  ...TOKEN_CALLS,
];

/** The public fields of all error classes. The file has them in this order, without those that are undefined. */
const FIELDS = [
  'name',
  'code',
  'message',
  'hint',
  'options',
  'retryable',
  'outcomeUnknown',
  'idempotencyKey',
  'credentialFault',
  'kind',
  'reason',
  'location',
  'status',
  'body',
  'error',
  'error_description',
  'scope',
  'retryAfter',
];
const FINGERPRINT = /\b([\dA-F]{2}:){31}[\dA-F]{2}\b/g;
const UUID = /\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\b/g;

/** Picks the public fields of an error. Replaces values that are random or differ from run to run. */
function recordOf(error: unknown): unknown {
  const fields = FIELDS.map((field) => [field, (error as Record<string, unknown>)[field]]);
  // The words stand in the log line of a failed call. They say which row of the table of explanations was used.
  const text = JSON.stringify({ words: explanationWords(error), ...Object.fromEntries(fields) });
  // The version stands in the links to the guides.
  const plain = text.replaceAll(GUIDES, '{guides}');
  return JSON.parse(plain.replace(FINGERPRINT, '{fingerprint}').replace(UUID, '{uuid}'));
}

async function errorIn(situation: Situation): Promise<unknown> {
  const { name, client, server, outcomes, act, variables = {}, now = NOW, thenNow } = situation;
  const service = await makeService(client);
  current = { name, server, outcomes: [...outcomes], thenNow, tokens: 0 };
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now);
  Object.assign(process.env, variables);
  try {
    return await act(service).then(
      () => Promise.reject(new Error(`${name}: the call succeeded.`)),
      (error: unknown) => error,
    );
  } finally {
    for (const variable of Object.keys(variables)) delete process.env[variable];
    clock.mockReturnValue(NOW);
  }
}

describe('The error that a caller gets', () => {
  const golden = (existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {}) as Record<string, unknown>;
  const environment = { ...process.env };
  const recorded = new Map<string, unknown>();

  beforeAll(async () => {
    for (const name of Object.keys(process.env)) if (/_proxy$/i.test(name)) delete process.env[name];
    jest.spyOn(Date, 'now').mockReturnValue(NOW);
    pems = await makePems();
  });
  afterAll(() => {
    jest.restoreAllMocks();
    Object.assign(process.env, environment);
  });

  it.each(SITUATIONS)('is the one in golden-errors.json for $name', async (situation) => {
    const error = recordOf(await errorIn(situation));
    // All errors of this package have a code. Do not record a TypeError, for example, which a mistake in lib/ or here causes.
    expect(error).toHaveProperty('code');
    recorded.set(situation.name, error);
    if (!IS_WRITING) expect(error).toEqual(golden[situation.name]);
  });

  it('is in golden-errors.json for each situation, and for no other', () => {
    const names = SITUATIONS.map(({ name }) => name);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    if (IS_WRITING) {
      // Without a complete run, the file would lose situations.
      expect([...recorded.keys()]).toEqual(names);
      writeFileSync(FILE, JSON.stringify(Object.fromEntries(recorded), undefined, 2));
      execFileSync(process.execPath, ['node_modules/prettier/bin/prettier.cjs', '--write', FILE]);
    } else expect(Object.keys(golden)).toEqual(names);
  });
});
