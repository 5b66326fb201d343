import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type HttpResponse } from 'nestjs-service';
import { ServiceSimulator, type FaultRule } from 'nestjs-service/testing';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';

/** What hosts write; the compiler reads it too (npm run typecheck). */
describe('http.response()', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule;
  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
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

  it('joins headers of one name', async () => {
    simulator.fail(
      answer(200, {}, { 'set-cookie': ['a=1', 'b=2'] as never, link: ['</a>', '</b>'] as never }),
    );
    const { headers } = await api.http.response('/payments/v1');
    expect(headers).toMatchObject({ 'set-cookie': 'a=1, b=2', link: '</a>, </b>' });
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
      headers: { 'x-key': 'k-1' },
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
    const call = { method: 'POST', data: {}, headers: { 'x-key': 'k-1' } };
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
