import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  BanksService,
  CustomersService,
  ServiceConfigurationError,
  ServiceModule,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  LinkSdkService,
  type TokenStore,
} from 'nestjs-service';
import { type ServiceSimulator, type SimulatorFace, type SimulatorModeOptions } from 'nestjs-service/testing';
import { partOf, scaled } from '../helpers/in-soak.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { modulesOfBlock, rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { startHost, type Host, type Platform } from '../helpers/start-host.js';
import { startSimulator } from '../helpers/simulators.js';

let simulator: ServiceSimulator;
let host: Host | undefined;
let api: StartedModule | undefined;
beforeAll(async () => {
  simulator = await startSimulator();
});
afterEach(async () => {
  await host?.close();
  await api?.module.close();
  [host, api] = [undefined, undefined];
  simulator.clearRequests();
  simulator.clearFaults();
});
afterAll(() => simulator.stop());

interface Mode {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  face: SimulatorFace;
  /** The credentials that the simulator must receive. */
  sends: { appToken: boolean; bearer: boolean; certificate: boolean };
  more?: { clientCertificate?: boolean; oauthBaseUrl?: boolean };
}

const modes: Mode[] = [
  {
    environment: 'sandbox',
    authentication: 'app-token',
    face: 'sandbox',
    sends: { appToken: true, bearer: false, certificate: false },
  },
  {
    environment: 'sandbox',
    authentication: 'mtls',
    face: 'sandbox-mtls',
    sends: { appToken: true, bearer: false, certificate: true },
  },
  {
    environment: 'sandbox',
    authentication: 'oauth',
    face: 'sandbox',
    sends: { appToken: false, bearer: true, certificate: false },
  },
  {
    environment: 'sandbox',
    authentication: 'oauth',
    more: { clientCertificate: true },
    face: 'sandbox-mtls',
    sends: { appToken: false, bearer: true, certificate: true },
  },
  {
    environment: 'production',
    authentication: 'mtls',
    face: 'base',
    sends: { appToken: true, bearer: false, certificate: true },
  },
  {
    environment: 'production',
    authentication: 'oauth',
    more: { oauthBaseUrl: false },
    face: 'base',
    sends: { appToken: false, bearer: true, certificate: false },
  },
  {
    environment: 'production',
    authentication: 'oauth',
    more: { clientCertificate: true, oauthBaseUrl: false },
    face: 'base',
    sends: { appToken: false, bearer: true, certificate: true },
  },
  {
    environment: 'production',
    authentication: 'oauth',
    more: { clientCertificate: true },
    face: 'oauth-base',
    sends: { appToken: false, bearer: true, certificate: true },
  },
  {
    environment: 'production',
    authentication: 'oauth',
    face: 'oauth-base',
    sends: { appToken: false, bearer: true, certificate: false },
  },
];

/** The platform makes no difference to the service, so `npm test` plays only one mode on Fastify. */
const cases = (['express', 'fastify'] as Platform[]).flatMap((platform) =>
  (platform === 'express' ? modes : partOf(modes, modes.length)).map((mode): [string, Platform, Mode] => [
    `${mode.environment}/${mode.authentication}${mode.more?.clientCertificate ? ' with a client certificate' : ''}, to the ${mode.face} address, from ${platform}`,
    platform,
    mode,
  ]),
);

describe('modes of authentication', () => {
  it.each(cases)(
    'a host sends the credentials of its mode and no others: %s',
    async (_, platform, { environment, authentication, face, sends, more }) => {
      const options = simulator.moduleOptions({ environment, authentication, ...more });
      host = await startHost(ServiceModule.forRoot(options), platform);
      const banks = await host.request('GET', '/banks');
      expect(banks).toMatchObject({ status: 200, body: expect.anything() });
      const app_user_id = randomUUID();
      const customer = await host.request('POST', '/customers', { app_user_id });
      expect(customer).toMatchObject({ status: 201, body: { app_user_id } });

      const arrived = simulator.apiRequests;
      expect(arrived.map(({ method, path }) => `${method} ${path}`)).toEqual([
        'GET /banks/v1',
        'POST /customers/v1',
      ]);
      expect(arrived[1]).toMatchObject({
        body: `{"app_user_id":"${app_user_id}"}`,
        headers: { 'content-type': 'application/json' },
      });
      for (const request of arrived) {
        expect(request.face).toBe(face);
        expect(request.headers['service-app-token']).toBe(sends.appToken ? simulator.appToken : undefined);
        expect(request.headers.authorization?.startsWith('Bearer ') ?? false).toBe(sends.bearer);
        expect(request.certificateSubject).toEqual(
          sends.certificate ? simulator.application.subject : undefined,
        );
      }

      const tokenRequests = simulator.tokenRequests;
      expect(tokenRequests).toHaveLength(sends.bearer ? 1 : 0);
      if (!sends.bearer) return;
      expect(tokenRequests[0]).toMatchObject({
        environment,
        method: 'POST',
        path: '/oauth2/token',
        headers: { 'content-type': expect.stringMatching(/^application\/x-www-form-urlencoded/) },
        form: {
          client_id: simulator.clientId,
          client_secret: simulator.clientSecret,
          grant_type: 'client_credentials',
          scope: 'api',
        },
      });
      expect(tokenRequests[0]?.certificateSubject).toBeUndefined();
    },
  );

  it.each([
    ["that has the service's usual claims", 0, undefined],
    ['that is opaque', 1, () => 'opaque' as const],
    ['that has no claim but jti', 2, () => ({ jti: randomUUID() })],
  ])(
    'API calls, the replay after a 401, a LinkSDK session and a second replica work with a token %s',
    async (_, kind, tokenClaims) => {
      const service = await startSimulator({ tokenClaims });
      // Each mode is tested with one kind of token, because the library never reads the claims.
      for (const { environment, authentication, more } of modes.filter((_, index) => index % 3 === kind)) {
        const options = service.moduleOptions({ environment, authentication, oauth: true, ...more });
        const entries = new Map<string, string>();
        const tokenStore: TokenStore = {
          get: (key) => Promise.resolve(entries.get(key)),
          set: (key, value) => Promise.resolve(void entries.set(key, value)),
          delete: (key) => Promise.resolve(void entries.delete(key)),
        };
        const [one, replica] = [
          await startModule({ ...options, tokenStore }),
          await startModule({ ...options, tokenStore }),
        ];
        const calls = async () => {
          await one.banks.list();
          await one.customers.create({ app_user_id: randomUUID() });
          await one.http.get('/echo/v1');
        };
        await calls();
        service.revokeTokens();
        await calls();

        const request = { customer_id: 'c-1', permissions: ['identity'] };
        const session = await one.module.get(LinkSdkService).connectParameters(request);
        const subject = { scope: 'customer.c-1', environment };
        expect(service.issuedFor(session.access_token ?? '')).toMatchObject(subject);
        service.clearRequests();
        await replica.banks.list();
        expect(await replica.module.get(LinkSdkService).connectParameters(request)).toEqual(session);
        expect(service.tokenRequests).toEqual([]);
        await Promise.all([one.module.close(), replica.module.close()]);
      }
      await service.stop();
    },
  );

  it('sendAppTokenWithBearer sends the app token and the bearer token with every attempt, also with the replay after a 401', async () => {
    const lenient = await startSimulator({ refuseBoth: false });
    const options = lenient.moduleOptions({ authentication: 'oauth', clientCertificate: true });
    api = await startModule({ ...options, sendAppTokenWithBearer: true });
    await api.http.get('/echo/v1/configured');
    lenient.revokeTokens();
    await api.http.get(`${lenient.urls.baseUrl}/echo/v1/other`);
    const { appToken } = lenient;
    expect(
      lenient.apiRequests.map(({ status, headers }) => [
        status,
        headers['service-app-token'],
        headers.authorization?.startsWith('Bearer '),
      ]),
    ).toEqual([
      [200, appToken, true],
      [401, appToken, true],
      [200, appToken, true],
    ]);
    await lenient.stop();
  });

  it('an appToken function is called once at startup, and a call that got 403 is not replayed', async () => {
    let functionCalls = 0;
    const appToken = (): string => `wrong-${(functionCalls += 1)}`;
    api = await startModule({ ...simulator.moduleOptions(), appToken });
    for (const _ of [1, 2]) await expect(api.banks.list()).rejects.toMatchObject({ status: 403 });
    expect(simulator.apiRequests.map(({ headers }) => headers['service-app-token'])).toEqual(
      Array(2).fill('wrong-1'),
    );
    expect(functionCalls).toBe(1);
  });

  it('the hint of a 401 names appTokenHeader if the service expects the app token in another header', async () => {
    const brand = await startSimulator({ appTokenHeader: 'brand-app-token' });
    const options = brand.moduleOptions({ environment: 'sandbox' });
    api = await startModule({ ...options, appTokenHeader: undefined });
    await expect(api.banks.list()).rejects.toMatchObject({
      status: 401,
      hint: expect.stringContaining('that appTokenHeader (SERVICE_APP_TOKEN_HEADER) is the name'),
    });
    await brand.stop();
  });

  it('the hint of a 400 names sendAppTokenWithBearer if the call sent both the app token and a bearer token', async () => {
    const strict = await startSimulator({ refuseBoth: true });
    const options = strict.moduleOptions({ authentication: 'oauth' });
    api = await startModule({ ...options, sendAppTokenWithBearer: true });
    await expect(api.banks.list()).rejects.toMatchObject({
      status: 400,
      hint: expect.stringContaining('sendAppTokenWithBearer (SERVICE_SEND_APP_TOKEN_WITH_BEARER) out'),
    });
    await strict.stop();
  });

  it.each<[string, SimulatorModeOptions, ServiceModuleOptions['linkSdk'], boolean, boolean]>([
    ['only the app token without OAuth', { environment: 'sandbox' }, {}, true, false],
    [
      'both tokens in mtls mode with OAuth credentials',
      { environment: 'production', authentication: 'mtls', oauth: true },
      {},
      true,
      true,
    ],
    ['both tokens in oauth mode', { authentication: 'oauth' }, {}, true, true],
    [
      "only the customer's token with includeAppToken: false",
      { authentication: 'oauth' },
      { includeAppToken: false },
      false,
      true,
    ],
  ])('the LinkSDK parameters for the browser contain %s', async (_, mode, linkSdk, hasAppToken, hasToken) => {
    host = await startHost(ServiceModule.forRoot({ ...simulator.moduleOptions(mode), linkSdk }));
    const permissions = ['identity', 'identity', 'accounts'];
    const request = { customer_id: 'c-1', permissions, bank_identifier: 'b-1' };
    const { status, body } = await host.request('POST', '/link-session', request);
    expect(status).toBe(201);
    const { access_token, ...others } = body as { access_token?: string };
    expect(others).toEqual({
      ...(hasAppToken && { app_token: simulator.appToken }),
      ...(mode.environment === 'sandbox' && { sandbox: true }),
      customer_id: 'c-1',
      permissions: ['identity', 'accounts'],
      bank_identifier: 'b-1',
    });
    const requestedScopes = simulator.tokenRequests.map(({ form }) => form?.scope);
    expect(requestedScopes).toEqual(hasToken ? ['customer.c-1'] : []);
    const issued = access_token && simulator.issuedFor(access_token)?.scope;
    expect(issued).toBe(hasToken ? 'customer.c-1' : undefined);
  });

  describe('resource paths', () => {
    const { start, setVariables } = modulesOfBlock();

    it.each([
      [undefined, undefined, '/banks/v1 /customers/v1'],
      [undefined, true, '/banks/v1/ /customers/v1/'],
      ['banks', undefined, '/banks/v1/ /customers/v1'],
      [' customers , banks ', undefined, '/banks/v1/ /customers/v1/'],
      ['true', ['banks'], '/banks/v1/ /customers/v1'],
      ['true', 'customers', '/banks/v1 /customers/v1/'],
      ['true', [], '/banks/v1 /customers/v1'],
    ] as const)(
      'SERVICE_HTTP_TRAILING_SLASH %j with http.trailingSlash %j makes the resource paths %s',
      async (variable, trailingSlash, paths) => {
        if (variable !== undefined) setVariables({ SERVICE_HTTP_TRAILING_SLASH: variable });
        const options = simulator.moduleOptions({ environment: 'sandbox' });
        const module = await start({
          imports: [ServiceModule.forRoot({ ...options, http: { trailingSlash } })],
        });
        await module.get(BanksService).list();
        await module.get(CustomersService).create({ app_user_id: randomUUID() });
        expect(simulator.apiRequests.map(({ path }) => path).join(' ')).toBe(paths);
      },
    );
  });

  it('thousands of concurrent callers share one token request, and one more after the token is invalidated', async () => {
    api = await startModule(simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' }));
    const { auth } = api;
    const tokens = await Promise.all(Array.from({ length: scaled(1_000) }, () => auth.getApiToken()));
    expect(new Set(tokens.map(({ accessToken }) => accessToken)).size).toBe(1);
    expect(simulator.tokenRequests).toHaveLength(1);
    auth.invalidate(tokens[0]?.accessToken ?? '');
    await Promise.all(Array.from({ length: scaled(10_000) }, () => auth.getApiToken()));
    expect(simulator.tokenRequests).toHaveLength(2);
  });

  it('each of several token revocations within a minute causes one token request for 20 concurrent calls', async () => {
    api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    const { banks } = api;
    await banks.list();
    for (let revocation = 1; revocation <= 3; revocation++) {
      simulator.revokeTokens();
      await Promise.all(Array.from({ length: 20 }, () => banks.list()));
      expect(simulator.tokenRequests).toHaveLength(1 + revocation);
    }
  });
});

describe('User-Agent header', () => {
  const manifest = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
  const OWN = `nestjs-service/${(JSON.parse(manifest) as { version: string }).version}`;
  const { start, setVariables } = modulesOfBlock();

  const options = () => simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
  const sent = () =>
    simulator.requests.map(({ method, path, headers }) => [method, path, headers['user-agent']]);

  it('the User-Agent header is sent to the token endpoint and with each attempt of a call', async () => {
    api = await startModule(options());
    simulator.fail({ path: '/banks/v1', fault: { status: 503, headers: { 'retry-after': '0' } } });
    simulator.fail({ path: '/banks/v1', fault: { status: 401 } });
    await api.banks.list();
    expect(sent()).toEqual([
      ['POST', '/oauth2/token', OWN],
      ['GET', '/banks/v1', OWN],
      ['GET', '/banks/v1', OWN],
      ['POST', '/oauth2/token', OWN],
      ['GET', '/banks/v1', OWN],
    ]);
  });

  it("the User-Agent header names the application's http.userAgent before the library, also in the startup check", async () => {
    const inCode = { ...options(), startupCheck: 'fail' as const };
    for (const own of ['acme-banking/2.1 (team@acme.example; (eu) \\(1\\))', 'acme']) {
      setVariables({ SERVICE_HTTP_USER_AGENT: ` ${own} ` });
      await start({ imports: [ServiceModule.forRoot(inCode)] });
      await start({ imports: [ServiceModule.forRoot({ ...inCode, http: { userAgent: own } })] });
      expect(sent()).toHaveLength(4);
      expect(new Set(sent().map(([, , agent]) => agent))).toEqual(new Set([`${own} ${OWN}`]));
      simulator.clearRequests();
    }
  });

  it("a call's own User-Agent header replaces the configured one", async () => {
    api = await startModule({ ...options(), http: { userAgent: 'acme/1' } });
    const { banks, http } = api;
    await banks.list({ headers: { 'User-Agent': 'job/7' } });
    await http.axiosRef.get('/banks/v1', { headers: { 'user-agent': 'job/8' } });
    http.axiosRef.defaults.headers.common['User-Agent'] = 'job/9';
    await http.get('/banks/v1');
    expect(sent().map(([, , agent]) => agent)).toEqual([`acme/1 ${OWN}`, 'job/7', 'job/8', 'job/9']);
  });

  it.each(['oauth', 'mtls'] as const)(
    'in %s mode, a 403 with an HTML page makes the error, its hint and the startup check name a proxy or firewall',
    async (authentication) => {
      const fault = { status: 403, body: '<html>Denied</html>', headers: { 'content-type': 'text/html' } };
      simulator.fail({ path: '/banks/v1', times: 9, fault });
      const given = simulator.moduleOptions({ environment: 'production', authentication });
      api = await startModule(given);
      const message = expect.stringMatching(/a proxy or firewall in front of it/);
      expect(await rejection(api.banks.list())).toMatchObject({
        message,
        hint: expect.stringMatching(/firewall.*ask who runs it.*tls\.certificate/),
      });
      const error = await rejection(startModule({ ...given, startupCheck: 'fail' }));
      expect(error).toMatchObject({ faults: [{ option: expect.stringMatching(/^urls\./), message }] });
    },
  );

  it.each([
    ...['acme/2.1\r\nX-Injected: 1', 'acme/2.1\n', 'acme, Inc.', '(only a comment)', 'acme/2/1', 'bänk/1'],
    ...['', ' ', 7, 'a'.repeat(257)],
  ])('startup rejects http.userAgent %j, which is no list of product tokens', async (userAgent) => {
    const error = await rejection(startModule({ ...options(), http: { userAgent: userAgent as string } }));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect((error as ServiceConfigurationError).faults).toEqual([
      {
        option: 'http.userAgent',
        variable: 'SERVICE_HTTP_USER_AGENT',
        message: expect.stringMatching(/^must be product tokens .* RFC 9110, 10\.1\.5/),
      },
    ]);
  });
});

describe('http.requestId', () => {
  const logger = new CollectingLogger();
  const idsAt = (header = 'x-correlation-id') => simulator.apiRequests.map(({ headers }) => headers[header]);
  const options = () => simulator.moduleOptions({ authentication: 'oauth' });
  const start = async (requestId: () => string | undefined, http = {}) =>
    (api = await startModule({ ...options(), http: { requestId, ...http } }, logger));

  it('http.requestId is called once per call: all attempts send the same id, and the next call sends another', async () => {
    let count = 0;
    const { banks, customers } = await start(() => `r-${(count += 1)}`);
    simulator.fail({ path: /banks/, fault: { status: 503 } });
    simulator.fail({ path: /banks/, fault: { status: 401 } });
    await banks.list();
    await customers.create({ app_user_id: randomUUID() });
    expect(idsAt()).toEqual(['r-1', 'r-1', 'r-1', 'r-2']);
    expect(simulator.tokenRequests.every(({ headers }) => !('x-correlation-id' in headers))).toBe(true);
  });

  it("http.requestId runs in each caller's async context, also while several callers wait for one token", async () => {
    const context = new AsyncLocalStorage<string>();
    const { http } = await start(() => context.getStore());
    await Promise.all(
      ['a', 'b', 'c'].map((id) => context.run(id, () => http.get(`/${id}/v1`).catch(() => 0))),
    );
    const sent = simulator.apiRequests.map(
      ({ path, headers }) => `${path} ${String(headers['x-correlation-id'])}`,
    );
    expect(sent.sort()).toEqual(['/a/v1 a', '/b/v1 b', '/c/v1 c']);
  });

  it('http.correlationIdHeader carries the request id, unless the call has a header of that name', async () => {
    const { banks } = await start(() => 'made', { correlationIdHeader: 'X-Request-ID' });
    await banks.list();
    await banks.list({ headers: { 'X-REQUEST-ID': 'own' } });
    expect(idsAt('x-request-id')).toEqual(['made', 'own']);
  });

  it('an error has the request id as correlationId if the response has none or there is no response', async () => {
    const { auth, banks, customers } = await start(() => 'made-1');
    const failure = (headers = {}) => ({ path: /banks/, fault: { status: 404, headers } });
    simulator.fail(failure());
    expect(await rejection(banks.list())).toMatchObject({ correlationId: 'made-1' });
    simulator.fail(failure({ 'x-correlation-id': 'of-the-service' }));
    expect(await rejection(banks.list())).toMatchObject({ correlationId: 'of-the-service' });
    simulator.fail({ path: /banks/, fault: { status: 302, headers: { location: '/x' } } });
    expect(await rejection(banks.list())).toMatchObject({ kind: 'redirect', correlationId: 'made-1' });
    simulator.fail({ path: /customers/, times: 2, fault: 'reset' });
    const create = (headers = {}) => rejection(customers.create({ app_user_id: 'u' }, { headers }));
    expect(await create()).toMatchObject({ kind: 'reset', outcomeUnknown: true, correlationId: 'made-1' });
    const { accessToken } = await auth.getApiToken();
    const error = await create({ 'x-correlation-id': `own ${accessToken}` });
    expect(error).toMatchObject({ correlationId: expect.stringMatching(/^\[not shown: /) });
  });

  it('the exception filter logs the request id', async () => {
    const http = { requestId: () => 'made-2' };
    host = await startHost(ServiceModule.forRoot({ ...options(), http }), 'express', logger);
    simulator.fail({ path: /customers/, fault: 'reset' });
    await host.request('POST', '/customers', { app_user_id: randomUUID() });
    const line =
      /^502: connection_reset: .*; correlation id made-2\. The request may have been executed: find out .*$/;
    expect(logger.lines).toContainEqual(expect.stringMatching(line));
  });

  it("the log line of a retried attempt shows the response's correlation id, or else the request id", async () => {
    const { auth, banks } = await start(() => 'made-3');
    const { accessToken } = await auth.getApiToken();
    const answered = { 'x-correlation-id': `of-the-service ${accessToken}` };
    const before = logger.lines.length;
    simulator.fail({ path: /banks/, fault: { status: 503, headers: { 'x-request-id': 'svc-1' } } });
    simulator.fail({ path: /banks/, fault: 'reset-after-headers' });
    await banks.list();
    simulator.fail({ path: /banks/, fault: { status: 503, headers: answered } });
    await banks.list();
    expect(logger.lines.slice(before).filter((line) => /another/.test(String(line)))).toEqual([
      'GET /banks/v1: 503, correlation id svc-1; another attempt follows',
      'GET /banks/v1: reset, correlation id made-3; another attempt follows',
      expect.stringMatching(/^GET \/banks\/v1: 503, correlation id \[not shown: [^\]]+\]; another/),
    ]);
  });

  const fail = () => {
    throw new Error('private');
  };
  it.each<[string, () => unknown]>([
    ['throws', fail],
    ['returns a line break', () => 'a\r\nx-evil: 1'],
    ['returns an empty text', () => ''],
    ['returns 129 characters', () => 'x'.repeat(129)],
    ['returns a number', () => 7],
    ['returns undefined', () => undefined],
    ['returns a promise that rejects', () => Promise.reject(new Error('private'))],
  ])('a call is sent without an id if http.requestId %s', async (_, requestId) => {
    const { banks, customers } = await start(requestId as () => string);
    await Promise.all([banks.list(), customers.create({ app_user_id: randomUUID() })]);
    expect(idsAt()).toEqual([undefined, undefined]);
  });

  it('startup rejects an http.requestId that is not a function', async () => {
    const error = await rejection(startModule({ ...options(), http: { requestId: 'r-1' as never } }));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect(error).toMatchObject({ faults: [{ option: 'http.requestId', message: 'must be a function' }] });
  });
});
