import { describe, expect, it } from '@jest/globals';
import { type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { type RequestListener } from 'node:http';
import { type ServiceConnectionError } from '../../../lib/errors/index.js';
import { type Call } from '../../../lib/http/call.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { type ServiceCallEvent } from '../../../lib/telemetry/telemetry.js';
import { nextTurn } from '../../../lib/time/time.js';
import { until } from '../../helpers/until.js';
import { errorOf, failing, setUp } from './setup.js';

const hang = (): Promise<never> => new Promise(() => undefined);
const NOT_SETTLED = 'ERR_INTERCEPTOR_TIMEOUT';
/** The type of a config as a host application declares it. */
type Config = InternalAxiosRequestConfig & { route?: string; pathParams?: object; idempotencyKey?: unknown };

describe('An interceptor that never settles', () => {
  it('cannot hold up its call: the call rejects at its time limit, and nothing is sent later', async () => {
    const { axios, arrived } = await setUp();
    let goOn: () => void = () => undefined;
    let settled = false;
    axios.interceptors.request.use(async (config) => {
      await new Promise<void>((resolve) => (goOn = resolve));
      return config;
    });
    axios.interceptors.response.use(undefined, (error: unknown) => {
      settled = true;
      throw error;
    });
    const error = await errorOf(axios.post('/a/v1', {}, { timeout: 50 }));
    expect(error).toMatchObject({
      kind: 'timeout',
      reason: NOT_SETTLED,
      outcomeUnknown: false,
      retryable: true,
      message: expect.stringMatching(
        /^POST \/a\/v1 at .*: an interceptor of the application had not settled within 50 ms/,
      ),
      hint: expect.stringContaining('a time limit of its own'),
    });
    // The caller knows that the call has failed, and may already have sent the same change again. So nothing may be sent now.
    goOn();
    await until(() => settled);
    expect(arrived).toHaveLength(0);
  });

  it("does not keep the caller's signal from ending the call, even if it was aborted before", async () => {
    const { axios, arrived, inFlight } = await setUp();
    axios.interceptors.request.use(hang);
    const controller = new AbortController();
    const call = axios.post('/a', {}, { signal: controller.signal });
    const reason = new Error('mine');
    controller.abort(reason);
    expect(await errorOf(call)).toBe(reason);
    expect(await errorOf(axios.get('/a', { signal: controller.signal }))).toBe(reason);
    expect(arrived).toHaveLength(0);
    expect(inFlight.close()).toBe(0);
  });

  it('does not keep an unsubscribed Observable from ending its call', async () => {
    const { axios, inFlight } = await setUp();
    axios.interceptors.request.use(hang);
    const subscription = new ServiceHttpService(axios).httpService.get('/a').subscribe();
    await nextTurn();
    subscription.unsubscribe();
    // drain() waits until no call is in flight.
    await inFlight.drain();
  });

  it.each(['request', 'response'] as const)(
    'does not keep close() from ending the call after the grace period: %s',
    async (which) => {
      const { axios, inFlight } = await setUp();
      let reached: () => void = () => undefined;
      const isReached = new Promise<void>((resolve) => (reached = resolve));
      axios.interceptors[which].use(() => (reached(), hang()));
      const call = errorOf(axios.post('/a', {}, { timeout: 3_600_000 }));
      await isReached;
      let drained = false;
      const draining = inFlight.drain().then(() => (drained = true));
      await nextTurn();
      expect(drained).toBe(false);
      expect(inFlight.close()).toBe(1);
      await draining;
      expect(await call).toMatchObject({ kind: 'closed', outcomeUnknown: which === 'response' });
    },
  );

  it('leaves the outcome of a change unknown if it hangs after a success', async () => {
    const { axios, arrived } = await setUp();
    axios.interceptors.response.use(hang);
    const cases = [
      [{ method: 'get' }, { outcomeUnknown: false, retryable: true }],
      [{ method: 'post' }, { outcomeUnknown: true, retryable: false }],
      [
        { method: 'post', readOnly: true },
        { outcomeUnknown: false, retryable: true },
      ],
      [
        { method: 'post', idempotencyKey: 'k-1' },
        { outcomeUnknown: true, retryable: true, idempotencyKey: 'k-1' },
      ],
    ];
    const ended = cases.map(([options]) => errorOf(axios.request({ url: '/a', timeout: 1_000, ...options })));
    const expected = cases.map(([, fields]) => ({ kind: 'timeout', reason: NOT_SETTLED, ...fields }));
    expect(await Promise.all(ended)).toMatchObject(expected);
    expect(arrived).toHaveLength(4);
  });

  it('leaves the caller with the error of the service if it hangs after that error', async () => {
    const { axios } = await setUp({ listener: failing(409) });
    axios.interceptors.response.use(undefined, hang);
    const error = await errorOf(axios.post('/a', {}, { timeout: 500 }));
    expect(error).toMatchObject({ status: 409, outcomeUnknown: false });
  });

  it('does not hide how far a request got that was in flight at the time limit', async () => {
    const { axios } = await setUp({ listener: () => undefined });
    axios.interceptors.response.use(undefined, hang);
    const error = await errorOf(axios.post('/a', {}, { timeout: 500 }));
    expect(error).toMatchObject({ kind: 'timeout', outcomeUnknown: true });
    expect((error as Error).message).toMatch(/the request was sent, but no response began within 500 ms/);
  });
});

describe('Interceptors of the host application', () => {
  it('can replace the error of a request that ended at the time limit, if they do not wait', async () => {
    const { axios } = await setUp({ listener: () => undefined });
    axios.interceptors.response.use(undefined, async (error: ServiceConnectionError) => {
      await Promise.resolve();
      return { data: `instead of ${error.kind}` };
    });
    expect((await axios.get<string>('/a', { timeout: 50 })).data).toBe('instead of timeout');
  });

  it('can repeat a request within the time limit of the call, with the same key and the same outcomeUnknown', async () => {
    const lost: RequestListener = ({ socket }) => socket.destroy();
    const listeners: RequestListener[] = [lost, failing(409)];
    const { axios, arrived } = await setUp({
      retries: 0,
      listener: (request, response) => listeners.shift()?.(request, response),
    });
    const own = new ServiceHttpService(axios);
    let config: Config | undefined;
    axios.interceptors.request.use((given) => (config ??= given));
    let isFirst = true;
    axios.interceptors.response.use(undefined, (error: unknown) => {
      if (!isFirst) throw error;
      isFirst = false;
      return axios.request(config!);
    });
    const error = await errorOf(own.post('/a', { b: 1 }, { idempotencyKey: true }));
    expect(arrived.map(({ body }) => body)).toEqual(Array(2).fill('{"b":1}'));
    const keys = arrived.map(({ headers }) => headers['idempotency-key']);
    expect(keys[0]).toBe(keys[1]);
    // The service may have executed the first request, whatever it responds to the second one.
    expect(error).toMatchObject({ status: 409, outcomeUnknown: true, idempotencyKey: keys[0] });
    expect(error).toMatchObject({ retryable: false });
  });

  it('that repeat a request get the remaining time, and can send nothing after the caller has its error', async () => {
    const { axios, arrived } = await setUp({
      listener: (_, response) =>
        response.end(JSON.stringify({ status: arrived.length === 1 ? 'PENDING' : '' })),
    });
    let repeat: () => void = () => undefined;
    let last: Promise<unknown> | undefined;
    axios.interceptors.response.use(async (answer: AxiosResponse<{ status: string }>) => {
      if (answer.data.status !== 'PENDING') return answer;
      await new Promise<void>((resolve) => (repeat = resolve));
      last = axios.request(answer.config);
      return last as never;
    });
    const error = await errorOf(axios.post('/a', {}, { timeout: 500 }));
    expect(error).toMatchObject({ reason: NOT_SETTLED, outcomeUnknown: true });
    repeat();
    await until(() => last !== undefined);
    expect(await errorOf(last!)).toBe(error);
    expect(arrived).toHaveLength(1);
  });

  it('that have settled leave a config that can be used for another call with its own time limit', async () => {
    const { axios, arrived } = await setUp();
    axios.interceptors.response.use((answer) => answer);
    const endsAt = performance.now() + 500;
    const { config } = await axios.get('/a', { timeout: 500 });
    await until(() => performance.now() > endsAt + 5);
    expect((await axios.request(config)).status).toBe(200);
    expect(arrived).toHaveLength(2);
  });

  it('do not hide by the error of another request that a change may have been executed', async () => {
    const { axios } = await setUp({
      retries: 0,
      listener: ({ method }, response) => response.writeHead(method === 'GET' ? 404 : 200).end('{}'),
    });
    axios.interceptors.response.use(
      ({ config }) => axios.request({ ...config, method: 'get', url: '/state/v1' }),
      hang,
    );
    const error = await errorOf(axios.post('/a', {}, { timeout: 500 }));
    expect(error).toMatchObject({ method: 'POST', reason: NOT_SETTLED, outcomeUnknown: true });
  });

  it('can extend the call by a longer `timeout`, and limit a request by a shorter one', async () => {
    const { axios } = await setUp({
      retries: 0,
      listener: ({ url }, response) => {
        if (url === '/slow') setTimeout(() => response.end('{"slow":true}'), 150);
      },
    });
    axios.interceptors.request.use((config) => {
      config.timeout = config.url === '/slow' ? 20_000 : 40;
      return config;
    });
    expect((await axios.get('/slow', { timeout: 20 })).data).toEqual({ slow: true });
    const error = await errorOf(axios.get('/never'));
    expect((error as Error).message).toMatch(/\b40 ms\b/);
  });

  it('end at the longer `timeout` if they have not settled by then', async () => {
    const { axios } = await setUp({
      listener: (_, response) => void setTimeout(() => response.end('{}'), 150),
    });
    axios.interceptors.request.use((config) => ({ ...config, timeout: 1_000 }));
    axios.interceptors.response.use(hang);
    const error = await errorOf(axios.get('/a', { timeout: 20 }));
    expect(error).toMatchObject({ reason: NOT_SETTLED });
    expect((error as Error).message).toMatch(/within 1000 ms/);
  });

  it.each(['the caller', 'an interceptor'])(
    'can set a signal in addition to that of the caller: %s aborts',
    async (who) => {
      const { axios, arrived } = await setUp({ listener: () => undefined });
      const ofCaller = new AbortController();
      const ofInterceptor = new AbortController();
      axios.interceptors.request.use((config) => ({ ...config, signal: ofInterceptor.signal }));
      const call = axios.get('/a', { signal: ofCaller.signal });
      await until(() => arrived.length === 1);
      const reason = new Error('mine');
      (who === 'the caller' ? ofCaller : ofInterceptor).abort(reason);
      expect(await errorOf(call)).toBe(reason);
    },
  );

  it('cause one event for a call that was never sent', async () => {
    const events: ServiceCallEvent[] = [];
    const { axios } = await setUp({ onCall: (event) => void events.push(event) });
    axios.interceptors.request.use(hang);
    await errorOf(axios.get('/a', { timeout: 30 }));
    expect(events).toEqual([
      expect.objectContaining({ route: '/a', attempts: 0, error: 'connection_timeout' }),
    ]);
  });
});

describe('Auth-headers interceptor', () => {
  const credentialsOf = (name: string) => ({ Authorization: `Bearer ${name}` });

  it('attaches the credentials that are at hand, and each attempt looks for newer ones', async () => {
    const used: string[] = [];
    const { axios, arrived } = await setUp({
      listener: failing(503),
      credentialsNow: () => credentialsOf(`token-${used.push('')}`),
    });
    let atHand: unknown;
    const transformRequest = function (this: object) {
      const [call] = Object.getOwnPropertySymbols(this).map((key) => (this as never)[key] as Call);
      atHand = { ...call.getHeaders() };
    };
    await axios.get('/a', { transformRequest });
    expect(atHand).toMatchObject({ authorization: 'Bearer token-1' });
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual(['Bearer token-2', 'Bearer token-3']);
  });

  it('does not wait for a token, and attaches nothing to a call that is refused', async () => {
    let credentialReads = 0;
    const { axios } = await setUp({ credentialsNow: () => credentialsOf(String((credentialReads += 1))) });
    await errorOf(axios.get('https://evil.example/'));
    await errorOf(axios.get('/a', { adapter: 'http' }));
    expect(credentialReads).toBe(0);
    const cold = await setUp({ cold: async () => undefined });
    let isTransformed = false;
    const transformRequest = () => void (isTransformed = true);
    const call = cold.axios.get('/a', { transformRequest });
    // In the same turn of the event loop.
    expect(isTransformed).toBe(true);
    expect((await call).status).toBe(200);
    expect(cold.arrived[0]?.headers.authorization).toBeDefined();
  });
});

describe('The path that interceptors see', () => {
  const template = '/v2/accounts/{account_id}/balances';
  const account = { account_id: 'a/b' };

  it('is the path that is sent, with the route without ids in config.route; transforms see the same', async () => {
    const { axios, arrived } = await setUp();
    const seen: unknown[][] = [];
    const see = (config: Config) => seen.push([config.url, config.route, axios.getUri(config)]);
    const transformRequest = function (this: Config) {
      seen.push([this.url]);
    };
    const send = () =>
      new ServiceHttpService(axios).post(`${template}?a=1`, undefined, {
        pathParams: account,
        params: { q: 2 },
        transformRequest,
      } as object);
    await send();
    axios.interceptors.request.use((config) => (see(config), config));
    axios.interceptors.response.use((answer) => (see(answer.config), answer));
    await send();
    const path = '/v2/accounts/a%2Fb/balances?a=1';
    const uri = `${path}&q=2`;
    expect(seen).toEqual([[path], [path, template, uri], [path], [path, template, uri]]);
    expect(arrived.map(({ url }) => url)).toEqual([uri, uri]);
    await axios.get('/customers/v1/c-1');
    expect(seen.slice(-2)).toEqual(
      Array(2).fill(['/customers/v1/c-1', '/customers/v1/{}', '/customers/v1/c-1']),
    );
  });

  it.each<[string, string, object | undefined, (config: Config) => object, string, string]>([
    [
      'a template with its values',
      '/x',
      undefined,
      () => ({ url: '/y/{id}', pathParams: { id: 'a b' } }),
      '/y/a%20b',
      '/y/{id}',
    ],
    [
      'a value that the caller left out',
      '/t/{tenant}/{id}',
      { id: 'i/1' },
      ({ pathParams }) => ({ pathParams: { ...pathParams, tenant: 't-1' } }),
      '/t/t-1/i%2F1',
      '/t/{tenant}/{id}',
    ],
    ['a prefix', '/{id}', { id: 'i-1' }, ({ url }) => ({ url: `/v3${url}` }), '/v3/i-1', '/v3/{id}'],
    ['another path', '/a/{id}', { id: 'i-1' }, () => ({ url: '/b/i-2' }), '/b/i-2', '/b/{}'],
  ])('can be changed to %s', async (_, path, pathParams, change, sent, route) => {
    const { axios, arrived } = await setUp({ listener: failing(404) });
    axios.interceptors.request.use((config) => ({ ...config, ...change(config) }));
    let seen: unknown;
    const transformRequest = function (this: Config) {
      seen = this.route;
    };
    const error = await errorOf(axios.get(path, { pathParams, transformRequest } as object));
    expect(arrived[0]?.url).toBe(sent);
    expect(error).toMatchObject({ route, path: sent });
    expect(seen).toBe(route);
  });

  it('is what the caller wrote if its values are invalid, and the error comes after the interceptors', async () => {
    const { axios, arrived } = await setUp();
    const seen: unknown[] = [];
    axios.interceptors.request.use((config: Config) => (seen.push(config.url, config.route), config));
    axios.interceptors.response.use(undefined, (error: unknown) => {
      seen.push(error);
      throw error;
    });
    const error = await errorOf(axios.get('/a/{id}', { pathParams: {} } as object));
    expect(error).toMatchObject({ code: 'invalid_request', faults: [{ property: 'id' }] });
    expect(seen).toEqual(['/a/{id}', undefined, error]);
    expect(arrived).toHaveLength(0);
  });
});
