import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ServiceApiError } from 'nestjs-service';
import { ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';

/** Over real TLS; the service counts the requests. */
describe('what the service answers', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
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
    fail({ redirect: '/elsewhere', status });
    expect(await rejection(create())).toMatchObject({ kind: 'redirect', outcomeUnknown: true });
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/customers/v1']);
  });
});
