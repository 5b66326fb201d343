import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { inspect } from 'node:util';
import {
  BanksService,
  getServiceToken,
  ServiceModule,
  type ServiceCallEvent,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { freePort } from '../helpers/loopback.js';
import { CollectingLogger, secretsIn } from '../helpers/secret-scan.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

let simulator: ServiceSimulator;
let started: StartedModule[] = [];

beforeAll(async () => {
  simulator = await startSimulator();
});
afterEach(async () => {
  for (const { module } of started) await module.close();
  started = [];
  simulator.clearFaults();
  simulator.clearRequests();
});
afterAll(() => simulator.stop());

const arrived = () => simulator.waitForRequest(() => true, 30_000);

describe('http.onCall', () => {
  const listener = () => {
    const events: ServiceCallEvent[] = [];
    return { events, onCall: (event: ServiceCallEvent) => void events.push(event) };
  };
  const start = async (
    authentication: 'mtls' | 'oauth' = 'mtls',
    { http, ...more }: ServiceModuleOptions = {},
    logger?: CollectingLogger,
  ) => {
    const { onCall, events } = listener();
    const options = simulator.moduleOptions({ authentication });
    const api = await startModule(
      { ...options, ...more, http: { ...options.http, onCall, ...http } },
      logger,
    );
    started.push(api);
    return { ...api, events };
  };
  const ms = expect.any(Number);
  const startedAt = expect.any(Date);
  const attemptDetails = expect.any(Array);
  const banks = {
    kind: 'api',
    method: 'GET',
    route: '/banks/v1',
    startedAt,
    durationMs: ms,
    attemptDetails,
  };
  const token = {
    kind: 'token',
    method: 'POST',
    route: '/oauth2/token',
    attempts: 1,
    attemptDetails,
    startedAt,
    durationMs: ms,
  };

  it('is called once for each call that has ended, and for each token request', async () => {
    const { banks: service, customers, events } = await start('oauth', { http: { requestId: () => 'r-1' } });
    await service.list();
    await customers.create({ app_user_id: 'u-1' });
    expect(events).toStrictEqual([
      { ...token, status: 200 },
      { ...banks, attempts: 1, requestId: 'r-1', status: 200 },
      {
        ...banks,
        method: 'POST',
        route: '/customers/v1',
        attempts: 1,
        requestId: 'r-1',
        status: 201,
      },
    ]);
  });

  it('gets the start time of the wall clock', async () => {
    const { http, events } = await start();
    simulator.fail({ path: /banks/, fault: 'hang' });
    const before = Date.now();
    await rejection(http.get('/banks/v1', { timeout: 300, retries: 0 }));
    const [event] = events;
    expect(event.durationMs).toBeGreaterThan(290);
    expect(Math.abs(event.startedAt.getTime() - before)).toBeLessThan(event.durationMs / 2);
  });

  it('gets the name of the module', async () => {
    const { onCall, events } = listener();
    const options = { ...simulator.moduleOptions({ authentication: 'oauth' }), http: { onCall } };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(options), ServiceModule.forRoot({ ...options, name: 'ksa' })],
    }).compile();
    for (const token of [BanksService, getServiceToken(BanksService, 'ksa')]) {
      await module.get<BanksService>(token).list();
    }
    await module.close();
    const each = [
      { ...token, status: 200 },
      { ...banks, attempts: 1, status: 200 },
    ];
    expect(events).toStrictEqual([...each, ...each.map((event) => ({ ...event, module: 'ksa' }))]);
  });

  it('is called once for a call that was retried, with the ids of the last response', async () => {
    const { banks: service, events } = await start();
    simulator.fail({ path: /banks/, times: 2, fault: { status: 503 } });
    await service.list({ headers: { 'x-correlation-id': 'own' } });
    expect(events).toMatchObject([{ ...banks, attempts: 3, status: 200, requestId: 'own' }]);
  });

  it.each<[string, Parameters<ServiceSimulator['fail']>[0]['fault'] | undefined, object]>([
    [
      'an error answer',
      { status: 429, headers: { 'retry-after': '3600', 'x-request-id': 'svc-1' } },
      { status: 429, error: 'api_error', correlationId: 'svc-1' },
    ],
    ['a page', 'html', { status: 200, error: 'invalid_response' }],
    [
      'a redirect',
      { status: 302, headers: { location: '/x' } },
      { status: 302, error: 'connection_redirect' },
    ],
    ['no answer', 'reset', { error: 'connection_reset' }],
    ['no connection', undefined, { attempts: 1, error: 'connection_refused' }],
  ])('is called for %s', async (_, fault, expected) => {
    const { urls } = simulator.moduleOptions();
    const baseUrl = fault ? urls.baseUrl : `https://127.0.0.1:${await freePort()}`;
    const options = { urls: { ...urls, baseUrl }, http: { retries: 0 } };
    const { banks: service, events } = await start('mtls', options);
    if (fault) simulator.fail({ path: /banks/, fault });
    await rejection(service.list());
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ ...banks, ...expected });
    expect('status' in events[0]).toBe('status' in expected);
  });

  it('is called for a call that fails in a function of the application', async () => {
    const { http, events } = await start();
    const failing = (): never => {
      throw new TypeError('of the host');
    };
    const call = http.axiosRef.get('/banks/v1', {
      signal: new AbortController().signal,
      validateStatus: failing,
    });
    await expect(call).rejects.toThrow('of the host');
    expect(events).toStrictEqual([{ ...banks, attempts: 1, status: 200, error: 'host_error' }]);
  });

  describe('is called for a call that its caller aborts', () => {
    it('before anything is sent, with no attempt, or with one that asked for a connection', async () => {
      const { banks: service, http, events } = await start();
      const reason = new Error('mine');
      const controller = new AbortController();
      const call = rejection(service.list({ signal: controller.signal }));
      controller.abort(reason);
      const signal = AbortSignal.abort(reason);
      expect(await Promise.all([call, rejection(service.list({ signal }))])).toEqual([reason, reason]);
      const late = new AbortController();
      // The transformRequest of a host application that ends the call after our interceptor has run.
      const transformRequest = (data: unknown) => (late.abort(reason), data);
      const behind = http.axiosRef.get('/banks/v1', { signal: late.signal, transformRequest });
      expect(await rejection(behind)).toBeInstanceOf(Error);
      expect(simulator.requests).toEqual([]);
      const attempts = events.map((event) => event.attempts).sort();
      expect(attempts).toEqual([0, 0, 1]);
      for (const event of events) expect(event).toMatchObject({ ...banks, error: 'aborted' });
    });

    it('while it waits for a token', async () => {
      const { banks: service, events } = await start('oauth');
      simulator.fail({ path: /token/, fault: 'hang' });
      const controller = new AbortController();
      const call = rejection(service.list({ signal: controller.signal }));
      await arrived();
      controller.abort();
      await call;
      expect(events).toContainEqual({ ...banks, attempts: 0, error: 'aborted' });
    });

    it('while the request is in flight', async () => {
      const events: ServiceCallEvent[] = [];
      const told = new EventEmitter();
      const onCall = (event: ServiceCallEvent) => {
        events.push(event);
        told.emit('event');
      };
      const { banks: service, http } = await start('mtls', { http: { onCall } });
      simulator.fail({ path: /banks/, times: 2, fault: 'hang' });
      const controller = new AbortController();
      const call = rejection(service.list({ signal: controller.signal }));
      await arrived();
      controller.abort();
      await call;
      simulator.clearRequests();
      const subscription = http.httpService.get('/banks/v1').subscribe();
      await arrived();
      const ended = once(told, 'event');
      subscription.unsubscribe();
      await ended;
      expect(events).toStrictEqual([
        { ...banks, attempts: 1, error: 'aborted' },
        { ...banks, attempts: 1, error: 'connection_closed' },
      ]);
    });

    it('in the pause before a retry', async () => {
      const controller = new AbortController();
      const warn = (line: string): void => {
        if (line.includes('another attempt follows')) setImmediate(() => controller.abort());
      };
      const logger = Object.assign(new CollectingLogger(), { warn });
      const { banks: service, events } = await start('mtls', {}, logger);
      simulator.fail({ path: /banks/, fault: { status: 503, headers: { 'retry-after': '5' } } });
      const call = rejection(service.list({ signal: controller.signal }));
      expect(controller.signal.aborted).toBe(false);
      await call;
      expect(simulator.requests).toHaveLength(1);
      expect(events).toStrictEqual([{ ...banks, attempts: 1, error: 'aborted' }]);
    });
  });

  it('is called for a call without a token, and for the token requests that failed', async () => {
    const { http, events } = await start('oauth');
    simulator.fail({ path: /token/, times: 9, fault: { status: 400 } });
    await rejection(http.delete('/orders/v1/{id}', { pathParams: { id: 'o-1' } }));
    expect(events).toStrictEqual([
      { ...token, status: 400, error: 'token_refused' },
      {
        kind: 'api',
        method: 'DELETE',
        route: '/orders/v1/{id}',
        startedAt,
        durationMs: ms,
        attempts: 0,
        attemptDetails: [],
        error: 'token_refused',
      },
    ]);
  });

  it('runs in the async context of the first caller for a token request, and in that of the start for a renewal', async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const onCall = ({ kind }: ServiceCallEvent): void => {
      if (kind === 'token') seen.push(context.getStore());
    };
    simulator.tokenLifetime = 4;
    const { banks: service } = await context.run('start', () => start('oauth', { http: { onCall } }));
    for (let call = 1; seen.length < 2 && call < 5_000; call += 1)
      await context.run(`call ${call}`, () => service.list());
    expect(seen).toEqual(['call 1', 'start']);
    simulator.tokenLifetime = 3_600;
  });

  it('is called for both token requests if the secret was rotated', async () => {
    const secrets = [simulator.clientSecret];
    const oauth = { clientId: simulator.clientId, clientSecret: () => secrets[0] };
    const { auth, events } = await start('oauth', { oauth });
    await auth.getApiToken();
    secrets[0] = simulator.rotateClientSecret();
    await auth.getCustomerToken('c-private');
    expect(events).toMatchObject([
      { ...token, status: 200 },
      { ...token, status: 401, error: 'token_refused' },
      { ...token, status: 200 },
    ]);
    expect(inspect(events)).not.toMatch(/private/);
  });

  it('is called for the calls that a shutdown ends', async () => {
    const { banks: service, module, events } = await start('mtls', { http: { shutdownTimeout: 0 } });
    simulator.fail({ path: /banks/, fault: 'hang' });
    const call = rejection(service.list());
    await arrived();
    await module.close();
    await call;
    expect(events).toStrictEqual([{ ...banks, attempts: 1, error: 'connection_closed' }]);
  });

  it('gets a route without ids and without the query', async () => {
    const { origin } = new URL(simulator.urls.baseUrl);
    const urls = { ...simulator.moduleOptions().urls, baseUrl: `${origin}/base` };
    const { http: service, events } = await start('mtls', { urls });
    const pathParams = { id: 'o-private' };
    await rejection(service.get('/orders/v1/{id}?q=private', { pathParams, params: { p: 'private' } }));
    await rejection(service.get(`${origin}/orders/v1/{id}`, { pathParams }));
    await rejection(service.get(`${origin}/base/orders/v1/{id}`, { pathParams }));
    await rejection(service.post('/orders/v1/o-private/', { private: true }));
    await rejection(service.get(`${origin}/other/c-private`));
    await rejection(service.axiosRef.get('/orders/v1/{id}', { pathParams } as object));
    await rejection(service.request({ url: '', headers: { 'x-private': 'private' } }));
    await rejection(service.get('/data/v2/accounts?q=private'));
    const route = '/orders/v1/{id}';
    const routes = [route, route, route, '/orders/v1/{}', '/other/{}', route, '/', '/data/v2/accounts'];
    expect(events.map((event) => event.route)).toEqual(routes);
    expect(inspect(events)).not.toMatch(/private/);
  });

  it('does no harm if it throws, rejects or never returns', async () => {
    const listeners: (() => unknown)[] = [
      () => {
        throw new Error('of the host');
      },
      () => Promise.reject(new Error('of the host')),
      () => new Promise(() => undefined),
    ];
    for (const onCall of listeners) {
      const { banks: service } = await start('oauth', { http: { onCall } });
      expect(await service.list()).toHaveLength(10);
      simulator.fail({ path: /banks/, fault: { status: 404 } });
      expect(await rejection(service.list())).toMatchObject({ status: 404 });
    }
  });
});

describe('http.logCalls', () => {
  /** The lines about calls, without their milliseconds. */
  async function linesOf(authentication: 'mtls' | 'oauth' | 'app-token', logCalls?: boolean) {
    const environment = authentication === 'app-token' ? 'sandbox' : 'production';
    const options = simulator.moduleOptions({ authentication, environment });
    const logger = new CollectingLogger();
    const api = await startModule({ ...options, http: { ...options.http, logCalls } }, logger);
    started.push(api);
    simulator.fail({ path: /banks/, fault: { status: 503 } });
    await api.banks.list({ headers: { 'x-correlation-id': 'own-1' } });
    await api.customers.create({ app_user_id: randomUUID() });
    await rejection(api.http.get('/orders/v1/o-42', { headers: { 'x-correlation-id': 'own-2' } }));
    const { appToken, clientSecret } = simulator;
    const bearer = simulator.apiRequests.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? appToken;
    expect(secretsIn(logger.lines.join('\n'), { appToken, clientSecret, bearer })).toEqual([]);
    const calls = logger.linesOf('ServiceModule').filter((line) => / after \d+ ms/.test(line));
    return calls.map((line) => line.replace(/(?<= (after|token|connected|byte) )\d+/g, 'N'));
  }

  it.each([
    ['mtls', 'app token, client certificate'],
    ['oauth', 'bearer'],
    ['app-token', 'app token'],
  ] as const)(
    'logs each call with %s: its route, its outcome, its attempts, and what authenticated it',
    async (mode, kinds) => {
      const words = mode === 'mtls' ? mode : `no-certificate ${mode}`;
      const token = mode === 'oauth' ? ', token N' : '';
      const last = (status: number) =>
        `${status} after N ms, reused connection${token}, connected N, first byte N`;
      expect(await linesOf(mode, true)).toEqual([
        `GET /banks/v1: 200 after N ms, 2 attempts (503 after N ms, new connection${token}, connected N, first byte N; ${last(200)}), with ${kinds}, correlation id own-1`,
        `POST /customers/v1: 201 after N ms, 1 attempt (${last(201)}), with ${kinds}`,
        `GET /orders/v1/{}: 404 after N ms, 1 attempt (${last(404)}), with ${kinds}, correlation id own-2 [api response 404 json ${words}]`,
      ]);
    },
  );

  it('is off by default, so that only calls that fail have a line', async () => {
    expect(await linesOf('mtls')).toEqual([
      'GET /orders/v1/{}: 404 after N ms, correlation id own-2 [api response 404 json mtls]',
    ]);
  });
});
