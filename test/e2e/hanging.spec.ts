import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { type ServiceHttpOptions, ServiceModule, type ServiceModuleOptions } from 'nestjs-service';
import {
  type ServiceSimulator,
  type SimulatorFault,
  type SimulatorModuleOptions,
} from 'nestjs-service/testing';
import { hangingRelay, type HangingRelay } from '../helpers/hanging-relay.js';
import { type Platform, startHost } from '../helpers/start-host.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

/** What hangs first and answers then, over real TLS. */
describe('an attempt that hangs', () => {
  let simulator: ServiceSimulator;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  async function start(options: ServiceModuleOptions, http: ServiceHttpOptions): Promise<StartedModule> {
    const started = await startModule({ ...options, http });
    closing.push(() => started.module.close());
    return started;
  }

  /** The module's way to the API, or to the token endpoint, leads through a relay. */
  async function through(
    place: 'baseUrl' | 'authUrl',
    http: ServiceHttpOptions,
    mode: SimulatorModuleOptions = simulator.moduleOptions({ authentication: 'mtls', oauth: true }),
  ): Promise<StartedModule & { relay: HangingRelay }> {
    const url = new URL(mode.urls[place] ?? '');
    const relay = await hangingRelay(Number(url.port));
    closing.push(() => relay.close());
    url.port = String(relay.port);
    const urls = { ...mode.urls, [place]: url.href };
    return { ...(await start({ ...mode, urls }, http)), relay };
  }

  const mtls = (http: ServiceHttpOptions) => start(simulator.moduleOptions({ authentication: 'mtls' }), http);
  const create = ({ customers }: StartedModule) => customers.create({ app_user_id: randomUUID() });
  const fail = (fault: SimulatorFault, times = 1) =>
    simulator.fail({ path: /^\/(banks|customers)/, times, fault });

  it('GET: an answer that takes nearly all the time arrives, by default', async () => {
    const api = await mtls({ timeout: 3_000 });
    fail({ delayMs: 2_000 });
    await api.banks.list();
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it('GET: one for each of http.retries', async () => {
    const api = await mtls({ timeout: 10_000, attemptTimeout: 1_500 });
    fail('hang', 2);
    await api.banks.list();
    expect(simulator.apiRequests).toHaveLength(3);
  });

  it('GET: as long as its own limit for an attempt, and as often as its own retries, allow', async () => {
    const api = await mtls({ timeout: 20_000, retries: 0 });
    fail('hang', 3);
    await api.banks.list({ retries: 3, attemptTimeout: 300 });
    expect(simulator.apiRequests).toHaveLength(4);
  });

  it('GET: the last attempt has all the time that is left', async () => {
    const api = await mtls({ timeout: 10_000, attemptTimeout: 1_500, retries: 1 });
    fail('hang');
    fail({ delayMs: 2_000 });
    await api.banks.list();
    expect(simulator.apiRequests).toHaveLength(2);
  });

  it('GET: a body that does not end is within the time of its attempt', async () => {
    const api = await mtls({ timeout: 10_000, attemptTimeout: 1_500 });
    fail({ trickleMs: 20 });
    await api.banks.list();
    expect(simulator.apiRequests).toHaveLength(2);
  });

  it('POST that was sent: it has all the time, and is not sent again', async () => {
    const api = await mtls({ timeout: 1_500, attemptTimeout: 300 });
    fail({ delayMs: 600 });
    await create(api);
    expect(simulator.apiRequests).toHaveLength(1);
    fail('hang');
    expect(await rejection(create(api))).toMatchObject({ kind: 'timeout', outcomeUnknown: true });
    expect(simulator.apiRequests).toHaveLength(2);
  });

  it.each(['GET', 'POST'])(
    '%s: a server that accepts and says nothing; the next connection is answered',
    async (method) => {
      const api = await through('baseUrl', { connectTimeout: 500 });
      api.relay.hang = 1;
      await (method === 'GET' ? api.banks.list() : create(api));
      expect(api.relay.connections).toBe(2);
      expect(simulator.apiRequests).toHaveLength(1);
    },
  );

  it('POST: connecting leaves time for another attempt, also where the call has little', async () => {
    const api = await through('baseUrl', { timeout: 2_000 });
    api.relay.hang = 1;
    await create(api);
    expect(api.relay.connections).toBe(2);
  });

  it('no connection at all: says so, and that nothing was done', async () => {
    const api = await through('baseUrl', { connectTimeout: 100 });
    api.relay.hang = Infinity;
    expect(await rejection(create(api))).toMatchObject({
      kind: 'timeout',
      reason: 'ERR_CONNECT_TIMEOUT',
      outcomeUnknown: false,
      hint: expect.stringContaining('http.connectTimeout'),
    });
    expect(api.relay.connections).toBe(3);
  });

  it('a proxy that never answers CONNECT; the next connection to it is answered', async () => {
    const options = simulator.moduleOptions({ authentication: 'mtls' });
    const proxy = await hangingRelay(Number(new URL(options.urls.baseUrl ?? '').port), { proxy: true });
    closing.push(() => proxy.close());
    const api = await start(options, { proxy: proxy.url, connectTimeout: 500 });
    proxy.hang = 1;
    await create(api);
    expect(proxy.connections).toBe(2);
    proxy.hang = Infinity;
    await api.module.close();
    const other = await start(options, { proxy: proxy.url, connectTimeout: 100, retries: 0 });
    // The tunnel's limit and the call's are the same: on a busy machine either may be seen first.
    const kind: unknown = expect.stringMatching(/^(timeout|proxy)$/);
    expect(await rejection(create(other))).toMatchObject({ kind, outcomeUnknown: false });
  });

  it('waiting for a free connection is neither connecting nor hanging', async () => {
    const api = await mtls({ maxSockets: 1, connectTimeout: 500, attemptTimeout: 1_200 });
    fail({ delayMs: 600 }, 4);
    await Promise.all([create(api), create(api), api.banks.list(), api.banks.list()]);
    expect(simulator.apiRequests).toHaveLength(4);
  });

  it('a kept-alive connection needs no connecting', async () => {
    const api = await through('baseUrl', { connectTimeout: 500 });
    await create(api);
    fail({ delayMs: 800 });
    await create(api);
    expect(api.relay.connections).toBe(1);
  });

  it("with http.idleTimeout: 0 each call connects, also the application's own", async () => {
    const api = await through('baseUrl', { idleTimeout: 0 });
    await create(api);
    await create(api);
    expect(api.relay.connections).toBe(2);
    const own = get(`https://127.0.0.1:${api.relay.port}`, { agent: api.auth.httpsAgent });
    const [answer] = (await once(own, 'response')) as [IncomingMessage];
    await once(answer.resume(), 'end');
    await create(api);
    expect(api.relay.connections).toBe(4);
  });

  it('the token request: another connection follows one that says nothing; an answer may take longer', async () => {
    const api = await through('authUrl', { connectTimeout: 500 });
    api.relay.hang = 1;
    simulator.fail({ face: 'token', fault: { delayMs: 800 } });
    await api.auth.getApiToken();
    expect(api.relay.connections).toBe(2);
    expect(simulator.tokenRequests).toHaveLength(1);
  });
});

describe('a shutdown meanwhile', () => {
  let simulator: ServiceSimulator;
  afterEach(() => simulator.stop());

  it.each<Platform>(['express', 'fastify'])(
    'inbound requests that a shutdown ends: 503, and 502 with the doubt where a change was sent (%s)',
    async (platform) => {
      simulator = await startSimulator();
      const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
      const http = { timeout: 600_000, shutdownTimeout: 50 };
      const host = await startHost(ServiceModule.forRoot({ ...options, http }), platform);
      simulator.fail({ path: /banks|customers/, times: 9, fault: 'hang' });
      simulator.fail({ when: ({ form }) => form?.scope === 'customer.c-1', times: 9, fault: 'hang' });
      const session = { customer_id: 'c-1', permissions: ['identity'] };
      const answers = [
        host.request('GET', '/banks'),
        host.request('POST', '/link-session', session),
        host.request('POST', '/customers', { app_user_id: 'u-1' }),
      ];
      await Promise.all(
        [/^\/banks/, /^\/customers/].map((path) =>
          simulator.waitForRequest((request) => path.test(request.path)),
        ),
      );
      await simulator.waitForRequest(({ form }) => form?.scope === 'customer.c-1');
      await host.close();
      const [list, connect, create] = await Promise.all(answers);
      for (const { headers } of [list, connect, create]) {
        expect([headers.get('connection'), headers.get('retry-after')]).toEqual(['close', null]);
      }
      const unavailable = 'The service cannot be reached at the moment.';
      for (const { status, body } of [list, connect]) {
        expect(status).toBe(503);
        expect(body).toEqual({ statusCode: 503, message: unavailable, code: 'connection_closed' });
      }
      expect(create.status).toBe(502);
      expect(create.body).toEqual({
        statusCode: 502,
        message:
          'The service failed to answer this call. The request may have been carried out all the same.',
        code: 'connection_closed',
      });
    },
  );
});
