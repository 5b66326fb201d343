import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import {
  ServiceModule,
  type ServiceAuthentication,
  type ServiceEnvironment,
  LinkSdkService,
  type TokenStore,
} from 'nestjs-service';
import { type ServiceSimulator, type SimulatorFace } from 'nestjs-service/testing';
import { partOf, scaled } from '../helpers/in-soak.js';
import { startModule } from '../helpers/start-module.js';
import { startHost, type Host, type Platform } from '../helpers/start-host.js';
import { startSimulator } from '../helpers/simulators.js';

interface Mode {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  face: SimulatorFace;
  /** What must arrive. */
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

/** The service sees nothing of the platform. */
const cases = (['express', 'fastify'] as Platform[]).flatMap((platform) =>
  (platform === 'express' ? modes : partOf(modes, modes.length)).map((mode): [string, Platform, Mode] => [
    `${mode.environment}/${mode.authentication} at ${mode.face} on ${platform}`,
    platform,
    mode,
  ]),
);

describe('the modes', () => {
  let simulator: ServiceSimulator;
  let host: Host | undefined;

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(async () => {
    await host?.close();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  it.each(cases)('%s', async (_, platform, { environment, authentication, face, sends, more }) => {
    host = await startHost(
      ServiceModule.forRoot(simulator.moduleOptions({ environment, authentication, ...more })),
      platform,
    );
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
  });

  it.each([
    ["of the service's own claims", undefined],
    ['that is opaque', () => 'opaque' as const],
    ['with nothing but jti', () => ({ jti: randomUUID() })],
  ])('works in every mode with a token %s: API, session, replay, another replica', async (_, tokenClaims) => {
    const service = await startSimulator({ tokenClaims });
    for (const { environment, authentication, more } of modes) {
      const options = service.moduleOptions({ environment, authentication, oauth: true, ...more });
      const entries = new Map<string, string>();
      const tokenStore: TokenStore = {
        get: (key) => Promise.resolve(entries.get(key)),
        set: (key, value) => Promise.resolve(void entries.set(key, value)),
        delete: (key) => Promise.resolve(void entries.delete(key)),
      };
      const start = () => startModule({ ...options, tokenStore });
      const [api, replica] = [await start(), await start()];
      const calls = async () => {
        await api.banks.list();
        await api.customers.create({ app_user_id: randomUUID() });
        await api.http.get('/echo/v1');
      };
      await calls();
      service.revokeTokens();
      await calls();

      const request = { customer_id: 'c-1', permissions: ['identity'] };
      const session = await api.module.get(LinkSdkService).connectParameters(request);
      const subject = { scope: 'customer.c-1', environment };
      expect(service.issuedFor(session.access_token ?? '')).toMatchObject(subject);
      service.clearRequests();
      await replica.banks.list();
      expect(await replica.module.get(LinkSdkService).connectParameters(request)).toEqual(session);
      expect(service.tokenRequests).toEqual([]);
      await Promise.all([api.module.close(), replica.module.close()]);
    }
    await service.stop();
  });

  it.each(modes)(
    'asks for one token at $environment/$authentication, in a form, and only with oauth',
    async (mode) => {
      const { environment, authentication } = mode;
      host = await startHost(
        ServiceModule.forRoot(simulator.moduleOptions({ environment, authentication, ...mode.more })),
      );
      await host.request('GET', '/banks');
      await host.request('GET', '/banks');
      const asked = simulator.tokenRequests;
      expect(asked).toHaveLength(mode.sends.bearer ? 1 : 0);
      if (!mode.sends.bearer) return;
      expect(asked[0]).toMatchObject({
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
      expect(asked[0]?.certificateSubject).toBeUndefined();
    },
  );

  it('sends both with each call to an own address where sendAppTokenWithBearer says so, also after a 401', async () => {
    const lenient = await startSimulator({ refuseBoth: false });
    const options = lenient.moduleOptions({ authentication: 'oauth', clientCertificate: true });
    const { http, module } = await startModule({ ...options, sendAppTokenWithBearer: true });
    await http.get('/echo/v1/configured');
    lenient.revokeTokens();
    await http.get(`${lenient.urls.baseUrl}/echo/v1/other`);
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
    await module.close();
    await lenient.stop();
  });

  it('reads an app token of a function once, at the start, and sends no refused call again', async () => {
    let asked = 0;
    const appToken = (): string => `wrong-${(asked += 1)}`;
    const { banks, module } = await startModule({ ...simulator.moduleOptions(), appToken });
    for (const _ of [1, 2]) await expect(banks.list()).rejects.toMatchObject({ status: 403 });
    expect(simulator.apiRequests.map(({ headers }) => headers['service-app-token'])).toEqual(
      Array(2).fill('wrong-1'),
    );
    expect(asked).toBe(1);
    await module.close();
  });

  it('names sendAppTokenWithBearer in the hint of a 400 to both', async () => {
    const strict = await startSimulator({ refuseBoth: true });
    const options = strict.moduleOptions({ authentication: 'oauth' });
    const { banks, module } = await startModule({ ...options, sendAppTokenWithBearer: true });
    await expect(banks.list()).rejects.toMatchObject({
      status: 400,
      hint: expect.stringContaining('sendAppTokenWithBearer (SERVICE_SEND_APP_TOKEN_WITH_BEARER) out'),
    });
    await module.close();
    await strict.stop();
  });

  it('gives the browser the app token and a token of the customer with OAuth credentials', async () => {
    host = await startHost(
      ServiceModule.forRoot(
        simulator.moduleOptions({ environment: 'production', authentication: 'mtls', oauth: true }),
      ),
    );
    const request = {
      customer_id: 'c-1',
      permissions: ['identity', 'identity', 'accounts'],
      bank_identifier: 'b-1',
    };
    const { status, body } = await host.request('POST', '/link-session', request);
    expect(status).toBe(201);
    const { access_token, ...rest } = body as { access_token: string };
    expect(rest).toEqual({
      app_token: simulator.appToken,
      customer_id: 'c-1',
      permissions: ['identity', 'accounts'],
      bank_identifier: 'b-1',
    });
    expect(simulator.issuedFor(access_token)).toMatchObject({ scope: 'customer.c-1' });
    expect(simulator.tokenRequests[0]?.form).toMatchObject({ scope: 'customer.c-1' });
  });

  it('gives the browser the app token alone without OAuth, and the customer token alone where the option says so', async () => {
    host = await startHost(ServiceModule.forRoot(simulator.moduleOptions({ environment: 'sandbox' })));
    const request = { customer_id: 'c-1', permissions: ['identity'] };
    expect((await host.request('POST', '/link-session', request)).body).toEqual({
      app_token: simulator.appToken,
      customer_id: 'c-1',
      permissions: ['identity'],
    });
    await host.close();
    const options = simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });
    host = await startHost(ServiceModule.forRoot({ ...options, linkSdk: { includeAppToken: false } }));
    expect((await host.request('POST', '/link-session', request)).body).toEqual({
      access_token: expect.any(String),
      customer_id: 'c-1',
      permissions: ['identity'],
    });
  });

  it('spells resource paths with a slash at the end where http.trailingSlash says so', async () => {
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    host = await startHost(ServiceModule.forRoot({ ...options, http: { trailingSlash: true } }));
    await host.request('GET', '/banks');
    await host.request('POST', '/customers', { app_user_id: randomUUID() });
    expect(simulator.apiRequests.map(({ path }) => path)).toEqual(['/banks/v1/', '/customers/v1/']);
  });

  it('spells the paths of those resources so that http.trailingSlash names', async () => {
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    const before = { ...process.env };
    const paths: string[] = [];
    for (const [variable, trailingSlash] of [
      ['banks', undefined],
      [' customers , banks ', undefined],
      ['true', ['banks']],
      ['true', 'customers'],
      ['true', []],
    ] as const) {
      process.env.SERVICE_HTTP_TRAILING_SLASH = variable;
      host = await startHost(ServiceModule.forRoot({ ...options, http: { trailingSlash } }));
      simulator.clearRequests();
      await host.request('GET', '/banks');
      await host.request('POST', '/customers', { app_user_id: randomUUID() });
      paths.push(simulator.apiRequests.map(({ path }) => path).join(' '));
      await host.close();
    }
    if (before.SERVICE_HTTP_TRAILING_SLASH === undefined) delete process.env.SERVICE_HTTP_TRAILING_SLASH;
    expect(paths).toEqual([
      '/banks/v1/ /customers/v1',
      '/banks/v1/ /customers/v1/',
      '/banks/v1/ /customers/v1',
      '/banks/v1 /customers/v1/',
      '/banks/v1 /customers/v1',
    ]);
  });

  it('makes one token request for thousands of callers at once', async () => {
    host = await startHost(
      ServiceModule.forRoot(simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' })),
    );
    const { ServiceAuthService } = await import('nestjs-service');
    const auth = host.app.get(ServiceAuthService);
    const tokens = await Promise.all(Array.from({ length: scaled(1_000) }, () => auth.getApiToken()));
    expect(new Set(tokens.map(({ accessToken }) => accessToken)).size).toBe(1);
    expect(simulator.tokenRequests).toHaveLength(1);
    auth.invalidate(tokens[0]?.accessToken ?? '');
    await Promise.all(Array.from({ length: scaled(10_000) }, () => auth.getApiToken()));
    expect(simulator.tokenRequests).toHaveLength(2);
  });

  it('answers several revocations within a minute by one refresh each', async () => {
    const { banks, module } = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    await banks.list();
    for (let revocation = 1; revocation <= 3; revocation++) {
      simulator.revokeTokens();
      await Promise.all(Array.from({ length: 20 }, () => banks.list()));
      expect(simulator.tokenRequests).toHaveLength(1 + revocation);
    }
    await module.close();
  });
});
