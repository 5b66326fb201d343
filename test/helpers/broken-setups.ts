import { afterAll, beforeAll } from '@jest/globals';
import {
  type IssuedCertificate,
  ServiceSimulator,
  type SimulatorModeOptions,
  type SimulatorOptions,
} from 'nestjs-service/testing';
import { type Socket } from 'node:net';
import { createAuthority, issue, UNKNOWN_CRITICAL } from './certificates.js';
import { deadPort, httpServer, rawServer } from './loopback.js';
import { startSimulator } from './simulators.js';
import { mtlsServer } from './mtls-server.js';

type Variables = Record<string, string>;

export interface SetupContext {
  simulator: ServiceSimulator;
  /** Ends what a set-up has started. */
  later(close: () => Promise<unknown>): void;
}

/** A set-up that does not work, for one reason. */
export interface BrokenSetup {
  /** The check that names the reason. */
  cause: string;
  words: RegExp;
  /** What the start-up check says, where the error of a call alone cannot know as much. */
  wordsAtStart?: RegExp;
  /** Of a simulator of its own. */
  simulator?: SimulatorOptions;
  /** Whether the simulator cannot be used again afterwards. */
  spoils?: boolean;
  /** Default: production, mtls. */
  mode?: SimulatorModeOptions;
  /** Breaks the setup. The returned variables replace those of the setup. A value of undefined removes a variable. */
  break(
    variables: Variables,
    context: SetupContext,
  ): Promise<Record<string, string | undefined> | void> | Record<string, string | undefined> | void;
  /** Milliseconds for each check. Default 5,000. */
  stepMs?: number;
}

const DAY_MS = 86_400_000;
const MTLS = { environment: 'production', authentication: 'mtls' } as const;
const OAUTH = { environment: 'production', authentication: 'oauth' } as const;
const APP_TOKEN = { environment: 'sandbox', authentication: 'app-token' } as const;

const UNTRUSTED =
  /not signed by what it is verified against: tls\.chain.*whole chain.*tls\.chain \(SERVICE_TLS_CHAIN\).*a proxy that intercepts TLS.*npx nestjs-service doctor/;

const oneLine = (pem: string): string => pem.replaceAll('\n', '\\n');

async function bareServer(
  onSocket: Parameters<typeof rawServer>[0],
  { later }: SetupContext,
): Promise<string> {
  const server = await rawServer(onSocket);
  later(server.close);
  return `https://127.0.0.1:${server.port}`;
}

const proxyAnswering = (answer: string, context: SetupContext): Promise<string> =>
  proxyServer((socket) => {
    socket.once('data', () => socket.end(`HTTP/1.1 ${answer}\r\ncontent-length: 0\r\n\r\n`));
  }, context);

/** Opens each tunnel, and passes the first bytes of the TLS handshake to the given function. */
const proxyWithTunnel = (inTunnel: (socket: Socket) => void, context: SetupContext): Promise<string> =>
  proxyServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.once('data', () => inTunnel(socket));
    });
  }, context);

async function proxyServer(onSocket: (socket: Socket) => void, { later }: SetupContext): Promise<string> {
  const proxy = await rawServer(onSocket);
  later(proxy.close);
  return proxy.url.replace('//', '//user:s3cret-of-the-proxy@');
}

/** The broken setups by name. */
export const BROKEN_SETUPS: Readonly<Record<string, BrokenSetup>> = {
  // Without a connection.
  'no variable at all': {
    cause: 'variables',
    words: /no SERVICE_\* variable/i,
    break: (variables) => Object.fromEntries(Object.keys(variables).map((name) => [name, undefined])),
  },
  'a password in an address': {
    cause: 'SERVICE_BASE_URL',
    words: /user name or password/,
    break: () => ({ SERVICE_BASE_URL: 'https://u:s3cret-in-an-address@api.bank' }),
  },
  'a token address with its path': {
    cause: 'SERVICE_AUTH_URL',
    words: /\/oauth2\/token, which is appended/,
    mode: OAUTH,
    break: ({ SERVICE_AUTH_URL }) => ({ SERVICE_AUTH_URL: `${SERVICE_AUTH_URL}/oauth2/token` }),
  },
  'a client id that is no UUID': {
    cause: 'SERVICE_CLIENT_ID',
    words: /a UUID/,
    mode: OAUTH,
    break: () => ({ SERVICE_CLIENT_ID: 'my-application' }),
  },
  'certificate and key swapped': {
    cause: 'SERVICE_TLS_CERTIFICATE',
    words: /holds a private key. Only certificates belong there/i,
    break: ({ SERVICE_TLS_CERTIFICATE, SERVICE_TLS_PRIVATE_KEY }) => ({
      SERVICE_TLS_CERTIFICATE: SERVICE_TLS_PRIVATE_KEY,
      SERVICE_TLS_PRIVATE_KEY: SERVICE_TLS_CERTIFICATE,
    }),
  },
  'an expired certificate': {
    cause: 'SERVICE_TLS_CERTIFICATE',
    words: /expired on/,
    break: async (_, { simulator }) =>
      ofIssued(
        await simulator.issueCertificate({
          notBefore: new Date(Date.now() - 2 * DAY_MS),
          notAfter: new Date(Date.now() - DAY_MS),
        }),
      ),
  },

  // On the way there.
  'a host that there is not': {
    cause: 'api.connection',
    words: /no host with the name|could not be looked up/,
    break: () => ({ SERVICE_BASE_URL: 'https://no-such-host.invalid' }),
  },
  'a port on which nothing listens': {
    cause: 'api.connection',
    words: /refused \(ECONNREFUSED\)/,
    break: async () => ({ SERVICE_BASE_URL: `https://127.0.0.1:${await deadPort()}` }),
  },
  'a token endpoint that is not there': {
    cause: 'token-endpoint.connection',
    words: /refused \(ECONNREFUSED\)/,
    mode: OAUTH,
    break: async () => ({ SERVICE_AUTH_URL: `https://127.0.0.1:${await deadPort()}` }),
  },
  'a proxy that is not there': {
    cause: 'api.connection',
    words: /the proxy .* cannot be reached, .* \(ECONNREFUSED\)/,
    break: async () => ({
      SERVICE_HTTP_PROXY: `http://user:s3cret-of-the-proxy@127.0.0.1:${await deadPort()}`,
    }),
  },
  'a proxy that refuses the password': {
    cause: 'api.connection',
    words: /refuses the user and password/,
    break: async (_, context) => ({ SERVICE_HTTP_PROXY: await proxyAnswering('407 No', context) }),
  },
  'a proxy that does not allow the host': {
    cause: 'api.connection',
    words: /does not allow connections/,
    break: async (_, context) => ({ SERVICE_HTTP_PROXY: await proxyAnswering('403 No', context) }),
  },
  'a proxy that answers a wrong password with 401, as Tinyproxy does': {
    cause: 'api.connection',
    words:
      /the proxy 127\.0\.0\.1:\d+ refuses the user and password, or requires them \(ERR_PROXY_TUNNEL_401\)/,
    break: async (_, context) => {
      const answer = '401 Unauthorized\r\nWWW-Authenticate: Basic realm="Tinyproxy"';
      return { SERVICE_HTTP_PROXY: await proxyAnswering(answer, context) };
    },
  },
  'a proxy that cannot look the name up, as Privoxy says it': {
    cause: 'api.connection',
    words:
      /the proxy 127\.0\.0\.1:\d+ cannot reach 127\.0\.0\.1, port \d+: it cannot look the name up, or gets no response/,
    break: async (_, context) => ({
      SERVICE_HTTP_PROXY: await proxyAnswering('404 No such domain', context),
    }),
  },
  'a web server in place of the proxy': {
    cause: 'api.connection',
    words: /what listens at 127\.0\.0\.1:\d+ is not a proxy: .*TUNNEL_405/,
    break: async (_, context) => ({ SERVICE_HTTP_PROXY: await proxyAnswering('405 Not Allowed', context) }),
  },
  'a proxy whose tunnel ends in the handshake, as that of Squid to a port on which nothing listens': {
    cause: 'api.connection',
    words: /the tunnel of the proxy 127\.0\.0\.1:\d+ ended in the TLS handshake/,
    break: async (_, context) => ({
      SERVICE_HTTP_PROXY: await proxyWithTunnel((socket) => socket.end(), context),
    }),
  },
  'a proxy with a page of its own in the tunnel, as Squid with peek and splice has it': {
    cause: 'api.connection',
    words: /what comes out of the tunnel of the proxy 127\.0\.0\.1:\d+ is not TLS/,
    break: async (_, context) => ({
      SERVICE_HTTP_PROXY: await proxyWithTunnel(
        (socket) => socket.end('HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n<html>'),
        context,
      ),
    }),
  },
  'a proxy that does not answer': {
    cause: 'api.connection',
    words:
      /no connection within .*: the proxy 127\.0\.0\.1:\d+ opened no tunnel, or 127\.0\.0\.1 did not respond/,
    stepMs: 500,
    break: async (_, context) => ({ SERVICE_HTTP_PROXY: await proxyServer(() => undefined, context) }),
  },
  'a port of plain HTTP': {
    cause: 'api.connection',
    words: /plain HTTP/,
    break: async (_, { later }) => {
      const server = await httpServer((_request, response) => response.end());
      later(server.close);
      return { SERVICE_BASE_URL: server.url.replace('http:', 'https:') };
    },
  },
  'a firewall that resets': {
    cause: 'api.connection',
    words: /without a reason.*firewall/,
    break: async (_, context) => ({
      SERVICE_BASE_URL: await bareServer(
        (socket) => socket.once('data', () => socket.resetAndDestroy()),
        context,
      ),
    }),
  },
  'http to a server that speaks TLS': {
    cause: 'api.banks',
    words: /begins with http:/,
    break: ({ SERVICE_BASE_URL = '' }) => ({ SERVICE_BASE_URL: SERVICE_BASE_URL.replace('https', 'http') }),
  },
  'a server that says nothing': {
    cause: 'api.connection',
    words: /does not respond to the handshake/,
    stepMs: 500,
    break: async (_, context) => ({ SERVICE_BASE_URL: await bareServer(() => undefined, context) }),
  },

  // The server's certificate.
  "the server's certificate expired": {
    spoils: true,
    cause: 'api.connection',
    words: /server's certificate has expired/,
    break: (_, { simulator }) =>
      simulator.useServerCertificate({
        notBefore: new Date(Date.now() - 2 * DAY_MS),
        notAfter: new Date(Date.now() - DAY_MS),
      }),
  },
  "the server's certificate not valid yet": {
    spoils: true,
    cause: 'api.connection',
    words: /not valid yet.*clock says/,
    break: (_, { simulator }) => simulator.useServerCertificate({ notBefore: new Date(Date.now() + DAY_MS) }),
  },
  "the server's certificate for another host": {
    spoils: true,
    cause: 'api.connection',
    words: /another host name: it is for other\.bank, not for 127/,
    wordsAtStart: /certificate is for another host name, not for 127.* npx nestjs-service doctor/,
    break: (_, { simulator }) => simulator.useServerCertificate({ names: ['other.bank'] }),
  },
  'a proxy that opens TLS': {
    spoils: true,
    cause: 'api.connection',
    wordsAtStart: UNTRUSTED,
    words: /: tls\.chain, .* issued by "CN=Unknown Issuing CA"; tls\.chain contains /,
    break: (_, { simulator }) => simulator.useServerCertificate({ foreign: true }),
  },
  'the chain of another environment': {
    cause: 'api.connection',
    words: /the same name, but another key/,
    wordsAtStart: UNTRUSTED,
    break: async (_, { later }) => {
      const other = await ServiceSimulator.start();
      later(() => other.stop());
      return { SERVICE_TLS_CHAIN: oneLine(other.chain) };
    },
  },
  'no chain, and a server of no public authority': {
    cause: 'api.connection',
    wordsAtStart: /not signed by what it is verified against: Node's public roots \(.*SERVICE_TLS_CHAIN/,
    words: /against: Node's public roots\. The server shows "CN=localhost", issued by /,
    break: () => ({ SERVICE_TLS_CHAIN: undefined, SERVICE_TLS_PUBLIC_ROOTS: 'true' }),
  },
  'production without a chain': {
    cause: 'SERVICE_TLS_CHAIN',
    words: /is missing: in production.*5\.2\.4.*tls\.publicRoots/i,
    break: () => ({ SERVICE_TLS_CHAIN: undefined }),
  },
  'a server that leaves the intermediate out': {
    cause: 'api.connection',
    words: /issued by "CN=.*; tls\.chain contains "CN=/,
    wordsAtStart: UNTRUSTED,
    mode: APP_TOKEN,
    break: async (_, { later }) => {
      const authority = await createAuthority();
      const { certificate: cert } = authority.server;
      const server = await mtlsServer(authority, { demandCertificate: false, cert, ca: undefined });
      later(server.close);
      const SERVICE_TLS_CHAIN = oneLine(authority.root.certificate);
      return { SERVICE_SANDBOX_URL: server.url, SERVICE_TLS_CHAIN };
    },
  },
  'a server certificate that OpenSSL refuses, for a reason without a code in Node': {
    cause: 'api.connection',
    words:
      /server's certificate was refused: unhandled critical extension\. The server shows "CN=api", issued by /,
    wordsAtStart:
      /certificate was refused: unhandled critical extension \(UNSPECIFIED\).*only the service's operator can/,
    mode: APP_TOKEN,
    break: async (_, { later }) => {
      const authority = await createAuthority();
      const names = ['127.0.0.1'];
      const odd = await issue('api', { issuer: authority.root, names, extension: UNKNOWN_CRITICAL });
      const server = await mtlsServer(authority, {
        demandCertificate: false,
        cert: odd.certificate,
        key: odd.key,
      });
      later(server.close);
      const SERVICE_TLS_CHAIN = oneLine(authority.root.certificate);
      return { SERVICE_SANDBOX_URL: server.url, SERVICE_TLS_CHAIN };
    },
  },
  'two authorities of one name in the chain, the wrong one first': {
    cause: 'api.connection',
    words:
      /An authority there has the same name, but another key\. The server shows "CN=localhost", issued by "CN=Service Intermediate"/,
    wordsAtStart: /same name, but another key \(CERT_SIGNATURE_FAILURE\).*has two certificates of that name/,
    mode: APP_TOKEN,
    break: async (_, { later }) => {
      const [authority, before] = await Promise.all([createAuthority(), createAuthority()]);
      const server = await mtlsServer(authority, { demandCertificate: false });
      later(server.close);
      const SERVICE_TLS_CHAIN = oneLine(before.chain + authority.chain);
      return { SERVICE_SANDBOX_URL: server.url, SERVICE_TLS_CHAIN };
    },
  },

  // Our certificate.
  'a revoked certificate': {
    spoils: true,
    cause: 'api.client-certificate',
    words: /server refused the client certificate: "CN=/,
    break: (_, { simulator }) => simulator.revokeCertificate(),
  },
  'a revoked certificate, on TLS 1.2': {
    cause: 'api.client-certificate',
    words: /asked for the client certificate and then ended the connection/,
    wordsAtStart: /ended the connection before anything was sent.*refuses the client certificate/,
    simulator: { maxTlsVersion: 'TLSv1.2' },
    break: (_, { simulator }) => simulator.revokeCertificate(),
  },
  'a certificate of another authority': {
    cause: 'api.client-certificate',
    words: /server refused the client certificate: .*UNKNOWN_CA/,
    break: async (_, { simulator }) => ofIssued(await simulator.issueCertificate({ foreign: true })),
  },
  'a certificate that nginx refuses': {
    cause: 'api.banks',
    words: /HTTP 400.* the proxy in front of the service, an nginx, rejects the client certificate/,
    simulator: { clientCertificateRefusal: 'http-400' },
    break: (_, { simulator }) => simulator.revokeCertificate(),
  },
  'no certificate where one is demanded': {
    cause: 'api.client-certificate',
    words: /asks for a client certificate and none is offered/,
    simulator: { requireClientCertificate: true },
    mode: { ...OAUTH, oauthBaseUrl: false },
    break: () => undefined,
  },

  // Tokens, and the call.
  'a wrong client secret': {
    spoils: true,
    cause: 'token.api',
    words: /refuses the credentials \(HTTP 401, invalid_client/,
    mode: OAUTH,
    break: (_, { simulator }) => void simulator.rotateClientSecret(),
  },
  'addresses of API and token endpoint swapped': {
    cause: 'token.api',
    words: /does not come from the token endpoint, but .* \(HTTP 401\)/,
    wordsAtStart:
      /does not come from the token endpoint.*urls\.authUrl \(SERVICE_AUTH_URL\) and urls\.oauthBaseUrl .*swapped.*if that is not the cause, check oauth\.clientId/i,
    mode: OAUTH,
    break: ({ SERVICE_AUTH_URL, SERVICE_OAUTH_BASE_URL }) => ({
      SERVICE_AUTH_URL: SERVICE_OAUTH_BASE_URL,
      SERVICE_OAUTH_BASE_URL: SERVICE_AUTH_URL,
    }),
  },
  'an application without OAuth': {
    cause: 'token.api',
    words: /refuses the credentials \(HTTP 400, unauthorized_client/,
    simulator: { oauth: { enabled: false } },
    mode: OAUTH,
    break: () => undefined,
  },
  'a login page in place of the token endpoint': {
    cause: 'token.api',
    words: /does not come from the token endpoint, but .* \(HTML/,
    mode: OAUTH,
    break: (_, { simulator }) => void simulator.fail({ path: '/oauth2/token', times: 9, fault: 'html' }),
  },
  'a wrong app token': {
    cause: 'api.banks',
    words: /HTTP 403 FORBIDDEN: The app token is not valid/,
    break: () => ({ SERVICE_APP_TOKEN: 'of-another-application' }),
  },
  'a website in place of the API': {
    cause: 'api.banks',
    words: /HTTP 200.*a page \(HTML\)/,
    break: (_, { simulator }) => void simulator.fail({ path: '/banks/v1', times: 9, fault: 'html' }),
  },
  'a redirect to the slash': {
    cause: 'api.banks',
    words: /redirect to https:.*never followed/,
    break: ({ SERVICE_BASE_URL }, { simulator }) =>
      void simulator.fail({
        path: '/banks/v1',
        times: 9,
        fault: { status: 302, headers: { location: `${SERVICE_BASE_URL}/banks/v1/` } },
      }),
  },
  'an address without its path': {
    cause: 'api.banks',
    words: /HTTP 404 .*There is nothing at/,
    simulator: { basePath: '/api' },
    break: ({ SERVICE_BASE_URL }) => ({ SERVICE_BASE_URL: new URL(SERVICE_BASE_URL).origin }),
  },
  'a service that is out of order': {
    cause: 'api.banks',
    words: /HTTP 503: down/,
    break: (_, { simulator }) =>
      void simulator.fail({
        path: '/banks/v1',
        times: 9,
        fault: { status: 503, json: { status: 503, message: 'down' } },
      }),
  },
};

function ofIssued({
  certificate,
  privateKey,
}: Pick<IssuedCertificate, 'certificate' | 'privateKey'>): Variables {
  return { SERVICE_TLS_CERTIFICATE: oneLine(certificate), SERVICE_TLS_PRIVATE_KEY: oneLine(privateKey) };
}

/** Set-ups of a `describe` block. Most of them share one simulator. */
export function setupsOfBlock() {
  let shared: ServiceSimulator;
  beforeAll(async () => {
    shared = await startSimulator();
  });
  afterAll(() => shared.stop());

  /** Makes the setup, calls `use` with its variables, and then ends everything. */
  return async <T>(
    { simulator: options, mode = MTLS, spoils, break: breakIt }: BrokenSetup,
    use: (variables: Variables, simulator: ServiceSimulator) => Promise<T>,
  ): Promise<T> => {
    const simulator = options || spoils ? await startSimulator(options) : shared;
    const closes: (() => Promise<unknown>)[] = simulator === shared ? [] : [() => simulator.stop()];
    try {
      // Only the variables that the mode needs, and those that the setup names.
      const before = simulator.env({ oauth: false, clientCertificate: false, oauthBaseUrl: true, ...mode });
      const later = (close: () => Promise<unknown>): void => void closes.push(close);
      const changes = await breakIt(before, { simulator, later });
      const variables = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined);
      return await use(Object.fromEntries(variables) as Variables, simulator);
    } finally {
      simulator.clearFaults();
      await Promise.all(closes.map((close) => close()));
    }
  };
}
