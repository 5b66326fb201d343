import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LinkSdkService, ServiceRequestError, type Customer } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

/** What hosts write; the compiler reads it too (npm run typecheck). */
describe('the resources', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule;
  beforeAll(async () => {
    simulator = await startSimulator();
    api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
  });
  afterAll(async () => {
    await api.module.close();
    await simulator.stop();
  });
  const headers = { 'idempotency-key': 'k-1', 'x-correlation-id': 'c-1' };

  it('customers.create takes headers, and a type for what it brings', async () => {
    interface Mine {
      app_user_id: string;
    }
    const mine: Mine = await api.customers.create<Mine>({ app_user_id: 'u-1' }, { headers });
    expect(mine.app_user_id).toBe('u-1');
    expect(simulator.apiRequests.at(-1)?.headers).toMatchObject(headers);
    const customer = await api.customers.create({ app_user_id: 'u-2' }, { timeout: 5_000 });
    const id: string | undefined = customer?.customer_id;
    const other: unknown = customer?.anything_else;
    expect([typeof id === 'string' || id === undefined, other]).toEqual([true, undefined]);
    // @ts-expect-error the service shows no query for it
    await api.customers.create({ app_user_id: 'u-3' }, { params: {} });
    // @ts-expect-error headers are text
    await api.customers.create({ app_user_id: 'u-4' }, { headers: { a: 1 } });
  });

  it('customers.create is a success where the service answers without a body', async () => {
    for (const status of [200, 201]) {
      simulator.fail({ path: '/customers/v1', times: 1, fault: { status, body: '' } });
      const customer = await api.customers.create<Customer | undefined>({ app_user_id: 'u-1' });
      expect(customer).toBeUndefined();
    }
  });

  it.each([
    [0, 1],
    [5, 6],
    [undefined, 3],
  ])('a call with retries: %s is sent %i times in all', async (retries, attempts) => {
    simulator.clearRequests();
    simulator.fail({ path: '/banks/v1', times: 10, fault: { status: 503 } });
    const error = await rejection(api.banks.list({ retries }));
    simulator.clearFaults();
    expect(error).toMatchObject({ status: 503 });
    expect(simulator.apiRequests).toHaveLength(attempts);
  });

  it('numbers that cannot be are refused before anything is sent; options of a host are for its interceptors', async () => {
    simulator.clearRequests();
    for (const options of [{ retries: 11 }, { attemptTimeout: -1 }]) {
      const [name] = Object.keys(options);
      for (const call of [
        () => api.banks.list(options),
        () => api.customers.create({ app_user_id: 'u-1' }, options),
        () => api.http.request('/banks/v1', options as object),
        () => api.http.response({ url: '/banks/v1', ...(options as object) }),
      ]) {
        const refusal = await rejection(call());
        expect(refusal).toMatchObject({ code: 'invalid_request', faults: [{ property: name }] });
      }
    }
    expect(simulator.apiRequests).toEqual([]);

    const seen: unknown[] = [];
    const { interceptors } = api.http.axiosRef;
    const id = interceptors.request.use(
      (config) => (seen.push((config as { tenant?: unknown }).tenant), config),
    );
    await api.banks.list({ tenant: 't-1' } as object);
    await api.http.axiosRef.get('/banks/v1', { httpsAgent: {} });
    interceptors.request.eject(id);
    expect(seen).toEqual(['t-1', undefined]);
  });

  it('banks.list takes a query and headers', async () => {
    const banks: string[] = await api.banks.list<string[]>({
      params: { country: 'ae', page: 2 },
      headers,
      signal: new AbortController().signal,
      timeout: 5_000,
    });
    expect(banks).toBeDefined();
    expect(simulator.apiRequests.at(-1)).toMatchObject({
      path: '/banks/v1?country=ae&page=2',
      headers,
    });
  });

  it.each([
    ['identity', "must be an array of texts, for example ['identity']"],
    [[], 'should not be empty'],
    [[1], '(each value) must be a string'],
    [[' '], '(each value) must not be blank'],
  ])('connectParameters says what is wrong with the permissions %j', async (permissions, message) => {
    const session = { customer_id: 'c-1', permissions } as never;
    const error = await rejection(api.module.get(LinkSdkService).connectParameters(session));
    expect(error).toMatchObject({ message: `Nothing was sent: permissions ${message}` });
  });

  it('connectParameters takes a signal and a time-out in milliseconds', async () => {
    const sdk = api.module.get(LinkSdkService);
    const session = { customer_id: 'c-1', permissions: ['identity'] };
    const reason = new Error('mine');
    expect(await rejection(sdk.connectParameters(session, { signal: AbortSignal.abort(reason) }))).toBe(
      reason,
    );
    simulator.fail({ face: 'token', times: 1, fault: 'hang' });
    expect(await rejection(sdk.connectParameters(session, { timeout: 50 }))).toMatchObject({
      kind: 'timeout',
    });
    simulator.clearFaults();
    for (const limit of [{ timeout: -1 }, { timeout: Infinity }, { signal: {} as never }]) {
      expect(await rejection(sdk.connectParameters(session, limit))).toBeInstanceOf(ServiceRequestError);
    }
  });

  it.each([undefined, null])('connectParameters takes %j for no bank', async (bank) => {
    const session = { customer_id: 'c-2', permissions: ['identity'], bank_identifier: bank as undefined };
    const parameters = await api.module.get(LinkSdkService).connectParameters(session);
    expect(Object.keys(parameters).sort()).toEqual([
      'access_token',
      'app_token',
      'customer_id',
      'permissions',
    ]);
  });
});
