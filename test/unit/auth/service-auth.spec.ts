import { Agent } from 'node:https';
import { createSecureContext } from 'node:tls';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Authenticator } from '../../../lib/auth/authenticator.js';
import { ServiceAuthService, type IdentityView } from '../../../lib/auth/service-auth.service.js';
import { CallsInFlight } from '../../../lib/http/calls-in-flight.js';
import { type TokenRefresh } from '../../../lib/config/oauth.options.js';
import { type ResolvedOptions } from '../../../lib/config/resolved-options.js';
import { Secret } from '../../../lib/config/secret.js';
import { ServiceConnectionError, ServiceRequestError, ServiceTokenError } from '../../../lib/errors/index.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { FakeSource, makeCache } from './fakes.js';
import { describeOption } from '../../helpers/describe-option.js';

const OPTIONS = {
  environment: 'sandbox',
  authentication: 'oauth',
  appToken: new Secret('app-secret'),
  appTokenHeader: 'service-app-token',
  addresses: { baseUrl: 'https://api.example' },
  http: { timeout: 30_000 },
  describeOption: describeOption('ksa'),
} as unknown as ResolvedOptions;

const BOTH = { 'service-app-token': 'app-secret', Authorization: 'Bearer token-1' };

const IDENTITY: IdentityView = {
  httpsAgent: new Agent() as IdentityView['httpsAgent'],
  secureContext: createSecureContext(),
  certificate: undefined,
  status: { healthy: true },
  reload: async () => false,
};

const cleanUp: (() => void)[] = [];
afterEach(() => {
  cleanUp.splice(0).forEach((undo) => undo());
  jest.useRealTimers();
});

function setUp(
  changed: Partial<ResolvedOptions> = {},
  identity: IdentityView = IDENTITY,
  refresh: TokenRefresh = 'ahead',
) {
  const clock = new FakeClock();
  const source = new FakeSource();
  const cache = makeCache({ source, clock, refresh, random: () => 0 });
  const calls = new CallsInFlight();
  const options = { ...OPTIONS, ...changed };
  const authenticator = new Authenticator(options, cache);
  const auth = new ServiceAuthService(authenticator, identity, cache, calls);
  cleanUp.push(() => cache.close());
  const answered = async <T>(promise: Promise<T>, expiresIn = 600): Promise<T> => {
    await settle();
    source.last.grant(expiresIn);
    return promise;
  };
  return { clock, source, authenticator, auth, calls, answered };
}

function withoutTokens(options: ResolvedOptions): ServiceAuthService {
  const calls = new CallsInFlight();
  return new ServiceAuthService(new Authenticator(options, undefined), IDENTITY, undefined, calls);
}

describe('apiTokenStatus', () => {
  it('has the times of the api token while it is valid, and requests none', async () => {
    const { auth, clock, source, answered } = setUp();
    expect(auth.apiTokenStatus).toBeUndefined();
    await settle();
    expect(source.requests).toHaveLength(0);

    const issuedAt = new Date(clock.now());
    const { expiresAt } = await answered(auth.getApiToken(), 600);
    expect(auth.apiTokenStatus).toEqual({ issuedAt, expiresAt });
    auth.apiTokenStatus?.expiresAt.setTime(0);
    expect((await auth.getApiToken()).expiresAt).toEqual(expiresAt);

    await clock.advance(580_000);
    expect(auth.apiTokenStatus).toBeUndefined();
    await settle();
    expect(source.requests).toHaveLength(1);
  });
});

describe('for health checks', () => {
  it('asks for an api token once: a failed request is not tried again', async () => {
    const { auth, clock, source } = setUp();
    const failed = expect(auth.getApiToken({ timeout: 5_000, once: true })).rejects.toMatchObject({
      kind: 'reset',
    });
    await settle();
    source.last.fail(new ServiceConnectionError({ kind: 'reset', message: 'reset' }));
    await clock.advance(4_000);
    await failed;
    expect(source.requests).toHaveLength(1);
  });

  it('has the status of the identity', () => {
    const status = { healthy: false, daysLeft: -1 };
    expect(setUp({}, { ...IDENTITY, status }).auth.identityStatus).toBe(status);
  });
});

describe('tokens', () => {
  it.each([-1, NaN, Infinity, 86_400_001, '500', {}])(
    'with a time limit of %p are refused',
    async (limit) => {
      const { auth, source } = setUp();
      const wait = { timeout: limit as number };
      const fault = { code: 'invalid_request', faults: [{ property: 'timeout' }] };
      await expect(auth.getToken('api', wait)).rejects.toMatchObject(fault);
      await expect(auth.getApiToken(wait)).rejects.toMatchObject(fault);
      await expect(auth.getCustomerToken('c1', wait)).rejects.toMatchObject(fault);
      await expect(auth.authorizationHeaders(wait)).rejects.toMatchObject(fault);
      const signal = {} as AbortSignal;
      await expect(auth.getApiToken({ signal })).rejects.toMatchObject({ faults: [{ property: 'signal' }] });
      await settle();
      expect(source.requests).toEqual([]);
    },
  );

  it('end at their time limit', async () => {
    const { auth, clock } = setUp();
    const late = expect(auth.getApiToken({ timeout: 200 })).rejects.toMatchObject({
      code: 'connection_timeout',
    });
    await clock.advance(200);
    await late;
  });

  it('for the API and for customers, as copies', async () => {
    const { auth, answered, clock } = setUp();
    const token = await answered(auth.getApiToken());
    expect(token).toEqual({
      accessToken: 'token-1',
      tokenType: 'bearer',
      scope: 'api',
      expiresAt: new Date(clock.now() + 600_000),
    });
    token.accessToken = 'spoilt';
    token.expiresAt.setTime(0);
    expect(await auth.getToken('api')).toMatchObject({
      accessToken: 'token-1',
      expiresAt: new Date(clock.now() + 600_000),
    });
    expect((await answered(auth.getCustomerToken('c1'))).scope).toBe('customer.c1');
  });

  it.each([
    ['a token', (auth: ServiceAuthService): Promise<unknown> => auth.getApiToken()],
    ['headers', (auth: ServiceAuthService): Promise<unknown> => auth.authorizationHeaders()],
  ])('a host that waits for %s counts as a call under way until it has them', async (_name, ask) => {
    const { auth, calls, answered } = setUp();
    let drained = false;
    const waiting = ask(auth);
    void calls.drain().then(() => (drained = true));
    await settle();
    expect(drained).toBe(false);
    await answered(waiting);
    await new Promise((resolve) => setImmediate(resolve));
    expect(drained).toBe(true);
  });

  it.each(['', 'a b', '../x', 'a"b'])('are not asked for where the customer id is %j', async (id) => {
    const { auth, source } = setUp();
    await expect(auth.getCustomerToken(id)).rejects.toThrow(ServiceRequestError);
    await expect(auth.getToken(`customer.${id}`)).rejects.toThrow(ServiceRequestError);
    expect(source.requests).toHaveLength(0);
  });

  it('counts a reading of the certificate as a call under way, and ends it with the others', async () => {
    const { auth, calls } = setUp({}, { ...IDENTITY, reload: () => new Promise(() => undefined) });
    const reading = auth.reloadCertificate();
    let isDrained = false;
    void calls.drain().then(() => (isDrained = true));
    await settle();
    expect(isDrained).toBe(false);
    expect(calls.close()).toBe(1);
    await expect(reading).rejects.toMatchObject({ kind: 'closed' });
  });

  it('after the end each caller gets an error of its own', async () => {
    const { auth, calls } = setUp();
    calls.close();
    const asked = [
      ...[auth.getApiToken(), auth.getApiToken(), auth.getCustomerToken('c-1'), auth.getCustomerToken('c-1')],
      ...[auth.authorizationHeaders(), auth.authorizationHeaders()],
      ...[auth.reloadCertificate(), auth.reloadCertificate()],
    ];
    const errors = await Promise.all(asked.map((call) => call.catch((error: unknown) => error)));
    expect(new Set(errors).size).toBe(asked.length);
    for (const error of errors) expect(error).toMatchObject({ code: 'connection_closed' });
  });

  it('without OAuth credentials: what to set', async () => {
    const auth = withoutTokens(OPTIONS);
    const error = await auth.getApiToken().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ServiceTokenError);
    expect(error).toMatchObject({ code: 'oauth_not_configured', scope: 'api' });
    expect((error as ServiceTokenError).hint).toMatch(
      /oauth\.clientId \(SERVICE_KSA_CLIENT_ID\).*SERVICE_KSA_SANDBOX_AUTH_URL/,
    );
    await expect(auth.authorizationHeaders()).rejects.toMatchObject({ code: 'oauth_not_configured' });
    expect(() => auth.invalidate('x')).not.toThrow();
    const inProduction = {
      ...OPTIONS,
      environment: 'production',
      describeOption: describeOption(),
    } as const;
    const other = withoutTokens(inProduction);
    await expect(other.getApiToken()).rejects.toMatchObject({
      hint: expect.stringMatching(/SERVICE_CLIENT_SECRET\), urls\.authUrl \(SERVICE_AUTH_URL\)\.$/),
    });
  });
});

describe('credentials', () => {
  it.each(['mtls', 'app-token'] as const)('of %s are the app token', async (authentication) => {
    const { auth, authenticator, source } = setUp({ authentication });
    const appToken = { 'service-app-token': 'app-secret' };
    expect(authenticator.use()).toEqual(appToken);
    expect(await auth.authorizationHeaders()).toEqual(appToken);
    expect(await authenticator.replace(appToken)).toBeUndefined();
    expect(source.requests).toHaveLength(0);
  });

  it('of oauth are the bearer alone, the same frozen object while the token lives', async () => {
    const { auth, authenticator, answered } = setUp();
    expect(authenticator.use()).toBeUndefined();
    expect(await answered(auth.authorizationHeaders())).toEqual({ Authorization: 'Bearer token-1' });
    expect(authenticator.use()).toBe(await authenticator.get());
    expect(Object.isFrozen(authenticator.use())).toBe(true);
    expect(await auth.authorizationHeaders()).not.toBe(authenticator.use());
  });

  it('of oauth have the app token too if sendAppTokenWithBearer says so', async () => {
    const { auth, authenticator, answered } = setUp({ sendAppTokenWithBearer: true });
    const both = await answered(authenticator.get());
    expect(both).toEqual(BOTH);
    expect(authenticator.use()).toBe(both);
    expect(await auth.authorizationHeaders()).toEqual(BOTH);
    const renewed = await answered(authenticator.replace(both));
    expect(renewed).toEqual({ ...BOTH, Authorization: 'Bearer token-2' });
  });

  it('after a 401 come with another token, once for all', async () => {
    const { authenticator, source, answered } = setUp();
    const refused = await answered(authenticator.get());
    const both = Promise.all([authenticator.replace(refused), authenticator.replace(refused)]);
    expect(await answered(both)).toEqual(Array(2).fill({ Authorization: 'Bearer token-2' }));
    expect(await authenticator.replace(refused)).toBe(authenticator.use());
    expect(await authenticator.replace({ Authorization: 'Basic abc' })).toBeUndefined();
    expect(source.requests).toHaveLength(2);
  });
});

describe('the identity', () => {
  it('is the one handed in', async () => {
    const httpsAgent = new Agent() as IdentityView['httpsAgent'];
    const certificate = { subject: 'CN=app' } as NonNullable<IdentityView['certificate']>;
    const { auth } = setUp({}, { ...IDENTITY, httpsAgent, certificate, reload: async () => true });
    expect([auth.httpsAgent, auth.secureContext]).toEqual([httpsAgent, IDENTITY.secureContext]);
    expect(auth.certificate).toBe(certificate);
    expect(await auth.reloadCertificate()).toBe(true);
  });
});

it('shows no secret and no token', async () => {
  const { auth, answered } = setUp();
  await answered(auth.authorizationHeaders());
  expect(inspect(auth, { depth: 20, showHidden: true }) + JSON.stringify(auth)).not.toMatch(
    /token-1|app-secret/,
  );
});
