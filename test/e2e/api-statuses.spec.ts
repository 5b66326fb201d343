import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type HttpResponse, ServiceApiError } from 'nestjs-service';
import { type FaultRule, type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

/** Over real TLS; the service counts the requests. */
describe('what the service answers', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule;

  beforeAll(async () => {
    simulator = await startSimulator();
    api = await startModule(simulator.moduleOptions({ environment: 'production', authentication: 'oauth' }));
    await api.auth.getApiToken();
    simulator.clearRequests();
  });
  afterEach(() => {
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(async () => {
    await api.module.close();
    await simulator.stop();
  });

  const list = () => api.banks.list();
  const create = () => api.customers.create({ app_user_id: 'u-1' });
  const fail = (fault: SimulatorFault) => simulator.fail({ times: 9, path: /banks|customers/, fault });

  it.each(
    [400, 403, 404, 409, 422].flatMap((status) => [
      [status, 'GET', list] as const,
      [status, 'POST', create] as const,
    ]),
  )('%d to a %s: an error at once, and no other token', async (status, method, call) => {
    const said = { status: 'REFUSED', message: 'not this one' };
    fail({ status, json: said });
    const error = await rejection(call());
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(error).toMatchObject({
      ...{ code: 'api_error', status, method, message: said.message, body: said, outcomeUnknown: false },
    });
    expect(simulator.apiRequests).toHaveLength(1);
    expect(simulator.tokenRequests).toEqual([]);
  });

  it.each([500, 502, 503, 504])('%d: a GET is tried twice more, a POST never', async (status) => {
    fail({ status, json: { message: 'broken' } });
    expect(await rejection(list())).toMatchObject({ status, outcomeUnknown: false });
    expect(simulator.apiRequests).toHaveLength(3);
    expect(await rejection(create())).toMatchObject({ status, outcomeUnknown: true });
    expect(simulator.apiRequests).toHaveLength(4);
  });

  it.each<[string, SimulatorFault, object]>([
    [
      'another status in the body: both are kept',
      { status: 409, json: { status: 200, message: 'ok' } },
      { status: 409, message: 'ok', body: { status: 200, message: 'ok' } },
    ],
    ['a body without status and message', { status: 422, json: { error: 'E1' } }, { status: 422 }],
    ['a list', { status: 422, json: ['no'] }, { status: 422 }],
    ['null', { status: 422, json: null }, { status: 422 }],
    ['a page', { status: 404, body: '<html>secret page</html>' }, { status: 404 }],
    ['no body', { status: 400, body: '' }, { status: 400 }],
    [
      'a body that is not compressed, though its headers say so',
      { status: 409, json: { message: 'taken' }, headers: { 'content-encoding': 'gzip' } },
      { status: 409, message: 'taken' },
    ],
    ['text of another kind', { status: 409, json: { message: { deep: 1 } } }, { status: 409 }],
  ])('%s', async (_, fault, expected) => {
    fail(fault);
    const error = (await rejection(list())) as ServiceApiError;
    expect(error).toMatchObject({ code: 'api_error', ...expected });
    expect(error.message).not.toMatch(/secret page|undefined|\[object/);
  });

  it('a message of a megabyte is cut', async () => {
    fail({ status: 400, json: { message: 'x'.repeat(1_000_000) } });
    const error = (await rejection(list())) as ServiceApiError;
    expect(error.message.length).toBeLessThan(1_000);
    expect(JSON.stringify(error).length).toBeLessThan(3_000);
  });

  it.each([201, 202, 204])('%d without a body to a change: a success', async (status) => {
    fail({ status, body: '' });
    expect(await create()).toBeUndefined();
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      expect(await api.http.request({ method, url: '/customers/v1/c-1' })).toBeUndefined();
    }
    expect(simulator.apiRequests).toHaveLength(4);
  });

  it.each([301, 302, 303, 307, 308])('%d to a POST: not followed, and perhaps done', async (status) => {
    fail({ status, headers: { location: '/elsewhere' } });
    expect(await rejection(create())).toMatchObject({ kind: 'redirect', outcomeUnknown: true });
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/customers/v1']);
  });
});

describe('a token endpoint that is slow', () => {
  const CUSTOMERS = 40;

  let simulator: ServiceSimulator;
  let started: StartedModule;

  beforeAll(async () => {
    simulator = await startSimulator({ delayMs: { token: 100 } });
  });
  afterEach(() => started.module.close());
  afterAll(() => simulator.stop());

  /** Requests for customer tokens never delay the api token, however many there are. */
  it('with few connections and a slow token endpoint, the api token comes before the customer tokens that wait', async () => {
    started = await startModule({
      ...simulator.moduleOptions({ authentication: 'oauth' }),
      http: { maxSockets: 2 },
    });
    const { auth, banks } = started;
    const customers = Array.from({ length: CUSTOMERS }, (_, n) => auth.getCustomerToken(`c-${n}`));
    await simulator.waitForRequest(({ face }) => face === 'token');
    await banks.list();
    const before = simulator.tokenRequests.length;
    await Promise.all(customers);
    const scopes = simulator.tokenRequests.map(({ body }) => new URLSearchParams(body).get('scope'));
    expect(scopes).toHaveLength(CUSTOMERS + 1);
    expect(before).toBeLessThan(CUSTOMERS);
    expect(scopes.indexOf('api')).toBeLessThan(before);
    // In the order of the calls, except for those that run at the same time.
    const order = scopes.filter((scope) => scope !== 'api').map((scope) => Number(scope?.split('-')[1]));
    order.forEach((customer, place) => expect(Math.abs(customer - place)).toBeLessThanOrEqual(2));
  });
});

/** What hosts write; the compiler reads it too (npm run typecheck). */
describe('http.response()', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule;
  beforeAll(async () => {
    simulator = await startSimulator();
    const http = { requestId: () => 'mine', idempotencyHeader: 'x-key' };
    api = await startModule({ ...simulator.moduleOptions({ authentication: 'oauth' }), http });
  });
  afterEach(() => simulator.clearFaults());
  afterAll(async () => {
    await api.module.close();
    await simulator.stop();
  });
  const answer = (status: number, json: unknown, headers = {}): FaultRule => ({
    path: '/payments/v1',
    fault: { status, json, headers },
  });

  it('brings the body with its status, headers and ids, and nothing else', async () => {
    simulator.fail(answer(202, { id: 1 }, { 'X-Total-Count': '7', 'X-Correlation-Id': 'of-the-service' }));
    const response: HttpResponse<{ id: number }> = await api.http.response<{ id: number }>('/payments/v1', {
      method: 'POST',
      data: {},
    });
    expect(response).toEqual({
      data: { id: 1 },
      status: 202,
      headers: expect.objectContaining({ 'content-length': '8', 'x-total-count': '7' }),
      correlationId: 'of-the-service',
      requestId: 'mine',
    });
    const total: string | undefined = response.headers['x-total-count'];
    expect(total).toBe('7');
    expect(Object.getPrototypeOf(response.headers)).toBe(Object.prototype);
  });

  it('has the id that was sent where the service sends none', async () => {
    simulator.fail(answer(200, {}));
    const headers = { 'x-correlation-id': 'of-the-call' };
    const { correlationId, requestId } = await api.http.response('/payments/v1', { headers });
    expect([correlationId, requestId]).toEqual(['of-the-call', 'of-the-call']);
  });

  it('joins headers of one name, and leaves out set-cookie, which cannot be joined', async () => {
    simulator.fail(
      answer(200, {}, { 'set-cookie': ['a=1', 'b=2'] as never, link: ['</a>', '</b>'] as never }),
    );
    const { headers } = await api.http.response('/payments/v1');
    expect(headers).toMatchObject({ link: '</a>, </b>' });
    expect(headers).not.toHaveProperty('set-cookie');
  });

  it('reads own resources, takes its arguments as request() does, and parses', async () => {
    const count = (body: unknown) => (body as unknown[]).length;
    const { data, status }: HttpResponse<number> = await api.http.response({
      url: '/banks/v1',
      params: { country: 'ae' },
      parse: count,
    });
    expect([data, status]).toEqual([10, 200]);
    expect(simulator.apiRequests.at(-1)?.path).toBe('/banks/v1?country=ae');
    const { data: other } = await api.http.response('/banks/v1', { parse: async (body) => count(body) });
    expect(other + 1).toBe(11);
    simulator.fail({ path: '/banks/v1', fault: { status: 204 } });
    expect(await api.http.response('/banks/v1')).toMatchObject({ data: undefined, status: 204 });
  });

  it('rejects as request() does', async () => {
    const refuse = (): never => {
      throw new TypeError('no');
    };
    simulator.fail(answer(404, { status: 'NOT_FOUND', message: 'none' }));
    expect(await rejection(api.http.response('/payments/v1'))).toMatchObject({
      status: 404,
      message: 'none',
    });
    simulator.fail(answer(201, {}, { 'x-correlation-id': 'c-9' }));
    const refused = api.http.response('/payments/v1', {
      method: 'POST',
      idempotencyKey: 'k-1',
      parse: refuse,
    });
    expect(await rejection(refused)).toMatchObject({
      code: 'invalid_response',
      status: 201,
      correlationId: 'c-9',
      idempotencyKey: 'k-1',
    });
    expect(await rejection(api.http.response('https://elsewhere.example/'))).toMatchObject({
      code: 'invalid_request',
    });
  });

  it("has what a host's interceptor made of the answer", async () => {
    const { axiosRef } = api.http;
    const interceptor = axiosRef.interceptors.response.use((given) => ({ ...given, data: 'other' }));
    const { data, status, headers } = await api.http.response('/banks/v1');
    expect([data, status, headers['content-type']]).toEqual(['other', 200, expect.stringContaining('json')]);
    axiosRef.interceptors.response.eject(interceptor);
  });

  it("has its ids, and an error its facts, where a host's interceptor copied the answer", async () => {
    const { axiosRef } = api.http;
    const copy = axiosRef.interceptors.response.use((given) => ({ ...given, data: { copied: true } }));
    const headers = { 'x-correlation-id': 'of-the-service', 'retry-after': '7' };
    simulator.fail({ ...answer(201, {}, headers), times: 2 });
    const call = { method: 'POST', data: {}, idempotencyKey: 'k-1' };
    expect(await api.http.response('/payments/v1', call)).toMatchObject({
      data: { copied: true },
      correlationId: 'of-the-service',
      requestId: 'mine',
    });
    const parse = (): never => {
      throw new TypeError('no');
    };
    expect(await rejection(api.http.request('/payments/v1', { ...call, parse }))).toMatchObject({
      code: 'invalid_response',
      status: 201,
      method: 'POST',
      path: '/payments/v1',
      correlationId: 'of-the-service',
      retryAfter: 7,
      idempotencyKey: 'k-1',
    });
    axiosRef.interceptors.response.eject(copy);
  });

  it.each(['normalize', 'set', 'toJSON', '__proto__', 'constructor'])(
    'is read where the service sends a header named %s',
    async (name) => {
      simulator.fail(
        answer(
          201,
          { id: 1 },
          Object.fromEntries([
            [name, '1'],
            ['x-total-count', '7'],
          ]),
        ),
      );
      const { data, headers } = await api.http.response('/payments/v1', { method: 'POST', data: {} });
      expect([data, headers['x-total-count']]).toEqual([{ id: 1 }, '7']);
      expect(Object.getPrototypeOf(headers)).toBe(Object.prototype);
    },
  );
});
