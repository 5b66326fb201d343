import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import {
  type CertificateSummary,
  ServiceRequestError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { type ExchangeRequest, type ExchangeResponse } from '../../../lib/exchange/io.js';
import { type Identity } from '../../../lib/tls/client-identity.js';
import { createAuthority } from '../../helpers/certificates.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { makeClient } from '../../helpers/make-client.js';

const OAUTH = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's3cret-of-the-app' };
const APP_TOKEN = 'app-token-of-ours';
const URLS = {
  sandboxUrl: 'https://sandbox.bank',
  sandboxMtlsUrl: 'https://mtls.sandbox.bank',
  sandboxAuthUrl: 'https://auth.bank',
};

const cleanUp: (() => void)[] = [];
afterEach(() => cleanUp.splice(0).forEach((undo) => undo()));

/** An OAuth client. Its token endpoint grants `token-1`, `token-2`, ..., each valid for 2,000 s. */
async function setUp(given: ServiceModuleOptions = {}, changed: Partial<Identity> = {}, name?: string) {
  const clock = new FakeClock({ start: Date.now() });
  const endpoint = { status: 200, isSlow: Promise.resolve() };
  const requestedScopes: (string | null)[] = [];
  /** The Authorization headers of the API calls. */
  const sentHeaders: unknown[] = [];
  const exchange = async ({ headers, body, signal }: ExchangeRequest): Promise<ExchangeResponse> => {
    if (headers.authorization) sentHeaders.push(headers.authorization);
    const scope = new URLSearchParams(String(body)).get('scope');
    const grant = {
      access_token: `token-${requestedScopes.push(scope)}`,
      token_type: 'bearer',
      expires_in: 2_000,
      scope,
    };
    const aborted = new Promise((_, reject) =>
      signal?.addEventListener('abort', () => reject(signal.reason as Error)),
    );
    await Promise.race([endpoint.isSlow, aborted]);
    const { status } = endpoint;
    return {
      status,
      statusText: '',
      headers: {},
      body: Buffer.from(JSON.stringify(grant)),
      untilClose: false,
    };
  };
  const { service } = await makeClient(
    { authentication: 'oauth', urls: URLS, oauth: OAUTH, ...given },
    { exchange, clock, random: () => 0, identity: changed, name },
  );
  cleanUp.push(() => void service.close());
  /** From now on the token endpoint responds only after the returned function is called. */
  const slowDown = (): (() => void) => {
    let respond = (): void => undefined;
    endpoint.isSlow = new Promise((resolve) => (respond = resolve));
    return respond;
  };
  return { ...service, clock, endpoint, requestedScopes, sentHeaders, slowDown };
}

describe('ServiceHttpService: expired tokens', () => {
  it.each(['GET', 'POST'])(
    'sends a %s with a new token if the first token expires while the call waits for the event loop',
    async (method) => {
      const { http, auth, clock, sentHeaders, slowDown } = await setUp();
      await auth.getApiToken();
      const respond = slowDown();
      setImmediate(() => {
        clock.jump(2_000_000);
        respond();
      });
      // A GET waits for a turn of the event loop only while another call is in flight.
      const calls = [http.get('/banks/v1'), http.request('/banks/v1', { method })];
      await Promise.all(calls);
      expect(sentHeaders).toEqual(['Bearer token-1', 'Bearer token-3']);
    },
  );
});

describe('ServiceAuthService: tokens', () => {
  it('hands out each token as a copy, so that a caller that changes it does not change the cached token', async () => {
    const { auth, clock } = await setUp();
    const expiresAt = new Date(clock.now() + 2_000_000);
    const token = await auth.getApiToken();
    expect(token).toEqual({ accessToken: 'token-1', tokenType: 'bearer', scope: 'api', expiresAt });
    token.accessToken = 'spoilt';
    token.expiresAt.setTime(0);
    expect(await auth.getToken('api')).toMatchObject({ accessToken: 'token-1', expiresAt });
    expect(await auth.getCustomerToken('c1')).toMatchObject({ accessToken: 'token-2', scope: 'customer.c1' });
  });

  it.each(['c1', 'a.b', 'x'.repeat(128), 'urn:customer:1', 'a@b.example', '..a', 'a+b=c~d_e-f'])(
    'requests a customer token for the valid customer id %s',
    async (id) => {
      const { auth, requestedScopes } = await setUp();
      expect(await auth.getCustomerToken(id)).toEqual(await auth.getToken(`customer.${id}`));
      expect(requestedScopes).toEqual([`customer.${id}`]);
    },
  );

  it.each<[string, unknown]>([
    ['empty', ''],
    ['a space, which would widen the scope', 'c1 api'],
    ['a slash', 'a/b'],
    ['a backslash', 'a\\b'],
    ['a quote', 'a"b'],
    ['CR/LF', 'a\r\nb'],
    ['a line break at the end', 'a\n'],
    ['NUL', 'a\0'],
    ['.', '.'],
    ['..', '..'],
    ['a path', '../x'],
    ['%2e', '%2e'],
    ['a letter outside ASCII', 'ä'],
    ['a fullwidth full stop', '\uff0e'],
    ['129 characters', 'x'.repeat(129)],
    ['1 MB', 'x'.repeat(1024 * 1024)],
    ['a number', 7],
    ['null', null],
    ['an object', { toString: () => 'c1' }],
  ])(
    'rejects an invalid customer id (%s) without a token request, and does not quote the id in the error',
    async (_name, id) => {
      const { auth, requestedScopes } = await setUp();
      const refused = auth.getCustomerToken(id as string);
      await expect(refused).rejects.toThrow(ServiceRequestError);
      if (typeof id === 'string' && id.length > 2) await expect(refused).rejects.not.toThrow(id);
      if (typeof id === 'string')
        await expect(auth.getToken(`customer.${id}`)).rejects.toThrow(ServiceRequestError);
      expect(requestedScopes).toEqual([]);
    },
  );

  it.each(['', 'API', 'api ', 'customer', 'customer.', 'api customer.c1', 'customers.c1', 'openid'])(
    'rejects the unknown scope %j',
    async (scope) => {
      const { auth } = await setUp();
      await expect(auth.getToken(scope)).rejects.toThrow(ServiceRequestError);
    },
  );

  it.each([undefined, null, 7, ['api']])('rejects %j as a scope', async (scope) => {
    const { auth } = await setUp();
    await expect(auth.getToken(scope as unknown as string)).rejects.toThrow(ServiceRequestError);
  });

  it.each([-1, NaN, Infinity, 86_400_001, '500', {}])(
    'rejects the invalid timeout %p and an invalid signal without a token request',
    async (limit) => {
      const { auth, requestedScopes } = await setUp();
      const wait = { timeout: limit as number };
      const fault = { code: 'invalid_request', faults: [{ property: 'timeout' }] };
      await expect(auth.getToken('api', wait)).rejects.toMatchObject(fault);
      await expect(auth.getApiToken(wait)).rejects.toMatchObject(fault);
      await expect(auth.getCustomerToken('c1', wait)).rejects.toMatchObject(fault);
      await expect(auth.authorizationHeaders(wait)).rejects.toMatchObject(fault);
      const signal = {} as AbortSignal;
      await expect(auth.getApiToken({ signal })).rejects.toMatchObject({ faults: [{ property: 'signal' }] });
      expect(requestedScopes).toEqual([]);
    },
  );

  it('rejects with a timeout when the token does not arrive within the timeout of the caller', async () => {
    const { auth, clock, slowDown } = await setUp();
    slowDown();
    const late = expect(auth.getApiToken({ timeout: 200 })).rejects.toMatchObject({ kind: 'timeout' });
    await clock.advance(200);
    await late;
  });

  it.each([
    [true, 1],
    [false, 3],
  ])(
    'with once: %j, gives up after attempt %d while the token endpoint responds with 503',
    async (once, times) => {
      const { auth, clock, requestedScopes, endpoint } = await setUp();
      endpoint.status = 503;
      const failed = expect(auth.getApiToken({ once })).rejects.toMatchObject({ code: 'token_unavailable' });
      await clock.advance(4_000);
      await failed;
      expect(requestedScopes).toHaveLength(times);
    },
  );

  it('apiTokenStatus shows when the cached API token was issued and expires, and requests no token itself', async () => {
    const { auth, clock, requestedScopes } = await setUp();
    expect(auth.apiTokenStatus).toBeUndefined();
    const issuedAt = new Date(clock.now());
    const { expiresAt } = await auth.getApiToken();
    expect(auth.apiTokenStatus).toEqual({ issuedAt, expiresAt });
    auth.apiTokenStatus?.expiresAt.setTime(0);
    expect((await auth.getApiToken()).expiresAt).toEqual(expiresAt);
    await clock.advance(1_969_999);
    expect(auth.apiTokenStatus).toEqual({ issuedAt, expiresAt });
    await clock.advance(1);
    expect(auth.apiTokenStatus).toBeUndefined();
    await settle();
    expect(requestedScopes).toHaveLength(1);
  });

  it.each([
    ['sandbox', 'ksa', /oauth\.clientId \(SERVICE_KSA_CLIENT_ID\).*SERVICE_KSA_SANDBOX_AUTH_URL/],
    ['production', undefined, /SERVICE_CLIENT_SECRET\), urls\.authUrl \(SERVICE_AUTH_URL\)\.$/],
  ] as const)(
    'in %s, getApiToken() without OAuth credentials names the options and variables to set',
    async (environment, name, hint) => {
      const authority = await createAuthority();
      const { certificate, key: privateKey } = await authority.client('app');
      const { auth } = await setUp(
        {
          environment,
          authentication: 'mtls',
          appToken: APP_TOKEN,
          oauth: undefined,
          urls: { ...URLS, baseUrl: 'https://bank' },
          tls: { certificate, privateKey, publicRoots: true },
        },
        {},
        name,
      );
      const error = await auth.getApiToken().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ServiceTokenError);
      expect(error).toMatchObject({ code: 'oauth_not_configured', scope: 'api' });
      expect((error as ServiceTokenError).hint).toMatch(hint);
      expect(() => auth.invalidate('x')).not.toThrow();
      expect(auth.apiTokenStatus).toBeUndefined();
    },
  );
});

describe('ServiceAuthService: authorization headers', () => {
  it('returns only the app token for app-token authentication, and requests no access token', async () => {
    const { auth, requestedScopes } = await setUp({ authentication: 'app-token', appToken: APP_TOKEN });
    expect(await auth.authorizationHeaders()).toEqual({ 'service-app-token': APP_TOKEN });
    expect(requestedScopes).toEqual([]);
  });

  it.each([
    [undefined, {}],
    [true, { 'service-app-token': APP_TOKEN }],
  ])(
    'returns the bearer token for OAuth, and with sendAppTokenWithBearer: %j also the headers %j',
    async (sendAppTokenWithBearer, beside) => {
      const { auth } = await setUp({ appToken: APP_TOKEN, sendAppTokenWithBearer });
      const headers = await auth.authorizationHeaders();
      expect(headers).toEqual({ ...beside, Authorization: 'Bearer token-1' });
      headers.Authorization = 'spoilt';
      expect(await auth.authorizationHeaders()).toEqual({ ...beside, Authorization: 'Bearer token-1' });
      auth.invalidate('token-1');
      expect(await auth.authorizationHeaders()).toEqual({ ...beside, Authorization: 'Bearer token-2' });
    },
  );

  it('keeps tokens and the client secret out of util.inspect() and JSON.stringify() of the service', async () => {
    const { auth } = await setUp({ appToken: APP_TOKEN, sendAppTokenWithBearer: true });
    await auth.authorizationHeaders();
    const printed = inspect(auth, { depth: 20, showHidden: true }) + JSON.stringify(auth);
    expect(printed).not.toMatch(/token-1|app-token-of-ours|s3cret/);
  });
});

describe('Closing the client', () => {
  it.each<[string, (auth: Awaited<ReturnType<typeof setUp>>['auth']) => Promise<unknown>]>([
    ['a token', (auth) => auth.getApiToken()],
    ['authorization headers', (auth) => auth.authorizationHeaders()],
  ])(
    'close() waits until a caller that is already waiting for %s has received the result',
    async (_name, ask) => {
      const { auth, close, slowDown } = await setUp();
      const respond = slowDown();
      const waiting = ask(auth);
      let isClosed = false;
      const closing = close().then(() => (isClosed = true));
      await settle();
      expect(isClosed).toBe(false);
      respond();
      await Promise.all([waiting, closing]);
    },
  );

  it('close() waits for a certificate reload at most until http.shutdownTimeout', async () => {
    const { auth, clock, close } = await setUp({}, { reload: () => new Promise(() => undefined) });
    const reading = expect(auth.reloadCertificate()).rejects.toMatchObject({ kind: 'closed' });
    let isClosed = false;
    const closing = close().then(() => (isClosed = true));
    await clock.advance(4_999);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await Promise.all([reading, closing]);
  });

  it('rejects each caller that comes after close() with an error object of its own', async () => {
    const { auth, close } = await setUp();
    await close();
    const calls = [
      ...[auth.getApiToken(), auth.getApiToken(), auth.getCustomerToken('c-1'), auth.getCustomerToken('c-1')],
      ...[auth.authorizationHeaders(), auth.authorizationHeaders()],
      ...[auth.reloadCertificate(), auth.reloadCertificate()],
    ];
    const errors = await Promise.all(calls.map((call) => call.catch((error: unknown) => error)));
    expect(new Set(errors).size).toBe(calls.length);
    for (const error of errors) expect(error).toMatchObject({ code: 'connection_closed' });
  });
});

describe('Token options', () => {
  it.each([
    ['oauth', 1],
    ['mtls', 0],
  ] as const)(
    'with refresh: scheduled and %s authentication, the number of token requests at the start is %d',
    async (authentication, count) => {
      const { start, requestedScopes } = await setUp({
        authentication,
        ...(authentication === 'mtls' && { appToken: APP_TOKEN, tls: () => ({}) }),
        oauth: { ...OAUTH, refresh: 'scheduled' },
      });
      expect(requestedScopes).toHaveLength(0);
      await start();
      await settle();
      expect(requestedScopes).toHaveLength(count);
    },
  );

  it('applies linkSdk.minTokenLife, tokenCache.maxEntries and oauth.refresh to the token cache', async () => {
    const { auth, clock, requestedScopes } = await setUp({
      oauth: { ...OAUTH, refresh: 'on-expiry' },
      linkSdk: { minTokenLife: 700 },
      tokenCache: { maxEntries: 1 },
    });
    await auth.getToken('customer.a');
    await clock.advance(1_299_000);
    expect((await auth.getToken('customer.a')).accessToken).toBe('token-1');
    await clock.advance(2_000);
    expect((await auth.getToken('customer.a')).accessToken).toBe('token-2');
    await auth.getToken('customer.b');
    await auth.getToken('customer.a');
    expect(requestedScopes).toHaveLength(4);
    const scheduled = await setUp({ oauth: { ...OAUTH, refresh: 'scheduled' } });
    await scheduled.start();
    await scheduled.clock.advance(2_000_000);
    expect(scheduled.requestedScopes).toHaveLength(2);
  });

  it('takes a token from tokenStore only if the token was requested with the same client certificate', async () => {
    const entries = new Map<string, string>();
    const tokenStore = {
      get: async (key: string) => entries.get(key),
      set: async (key: string, value: string) => void entries.set(key, value),
      delete: async (key: string) => void entries.delete(key),
    };
    const counts: number[] = [];
    for (const fingerprint256 of ['AA', 'AA', 'BB']) {
      const certificate = { fingerprint256 } as CertificateSummary;
      const bound = { oauth: { ...OAUTH, mtls: true }, tls: () => ({}), tokenStore };
      const { auth, requestedScopes } = await setUp(bound, { certificate });
      await auth.getToken('api');
      await settle();
      counts.push(requestedScopes.length);
    }
    expect(counts).toEqual([1, 0, 1]);
  });

  it.each([
    [true, 2],
    [false, 1],
  ])(
    'with oauth.mtls: %j, the number of token requests for two calls with a certificate change in between is %d',
    async (mtls, count) => {
      let change: () => void = () => undefined;
      const { auth, requestedScopes } = await setUp(
        { oauth: { ...OAUTH, mtls }, tls: () => ({}) },
        { onCertificateChange: (listener) => (change = listener) },
      );
      await auth.getApiToken();
      change();
      await auth.getApiToken();
      expect(requestedScopes).toHaveLength(count);
    },
  );
});
