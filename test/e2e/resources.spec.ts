import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { validateSync } from 'class-validator';
import { randomUUID } from 'node:crypto';
import {
  answerOf,
  ConnectDto,
  CreateCustomerDto,
  LinkSdkService,
  ServiceHttpService,
  ServiceModule,
  ServiceRequestError,
  type Customer,
  type ServiceHttpOptions,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { serviceErrors, type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { resolveOptions } from '../../lib/config/resolve-options.js';
import { validateInput } from '../../lib/http/validate-input.js';
import { LinkSessionDto } from '../../lib/link-sdk/link-sdk.service.js';
import { inputsBySchema } from '../helpers/inputs-by-schema.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';
import { startHost } from '../helpers/start-host.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const CUSTOMERS = '/customers/v1';

let simulator: ServiceSimulator;
/** A module with OAuth, and one with mTLS only. */
let api: StartedModule;
let mtls: StartedModule;
const closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  simulator = await startSimulator();
  api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
  mtls = await startModule(simulator.moduleOptions({ authentication: 'mtls' }));
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  simulator.clearFaults();
  simulator.clearRequests();
});
afterAll(async () => {
  await Promise.all([api.module.close(), mtls.module.close()]);
  await simulator.stop();
});

const optionsWith = (http: ServiceHttpOptions) => ({
  ...simulator.moduleOptions({ authentication: 'mtls' }),
  http,
});
async function start(http: ServiceHttpOptions): Promise<StartedModule> {
  const started = await startModule(optionsWith(http));
  closing.push(() => started.module.close());
  return started;
}

/** Calls as hosts write them. `npm run typecheck` checks their types too. */
describe('resource methods', () => {
  const headers = { 'idempotency-key': 'k-1', 'x-correlation-id': 'c-1' };

  it('customers.create accepts headers and a type for its result', async () => {
    interface Mine {
      app_user_id: string;
    }
    const mine: Mine = await api.customers.create<Mine>({ app_user_id: 'u-1' }, { headers });
    expect(mine.app_user_id).toBe('u-1');
    expect(simulator.apiRequests.at(-1)?.headers).toMatchObject(headers);
    const customer = await api.customers.create({ app_user_id: 'u-2' }, { timeout: 5_000 });
    // @ts-expect-error a 2xx may be empty
    const unchecked: string = customer.customer_id;
    const fields: [string, string, unknown] = [
      customer!.customer_id,
      customer!.app_user_id,
      customer!.anything_else,
    ];
    expect(fields).toEqual([unchecked, 'u-2', undefined]);
    simulator.fail({ path: CUSTOMERS, fault: { status: 201, body: '' } });
    expect(await api.customers.create<Customer | undefined>({ app_user_id: 'u-1' })).toBeUndefined();
    // @ts-expect-error the service shows no query for it
    await api.customers.create({ app_user_id: 'u-3' }, { params: {} });
    // @ts-expect-error headers are text
    await api.customers.create({ app_user_id: 'u-4' }, { headers: { a: 1 } });
  });

  it('banks.list accepts a query, headers, a signal and a timeout', async () => {
    const banks: string[] = await api.banks.list<string[]>({
      params: { country: 'ae', page: 2 },
      headers,
      signal: new AbortController().signal,
      timeout: 5_000,
    });
    expect(banks).toBeDefined();
    expect(simulator.apiRequests.at(-1)).toMatchObject({ path: '/banks/v1?country=ae&page=2', headers });
  });

  it("calls reject an invalid option before anything is sent, and pass a host's own options to its interceptors", async () => {
    for (const call of [
      api.banks.list({ retries: 11 }),
      api.customers.create({ app_user_id: 'u-1' }, { retries: 11 }),
      api.http.request('/banks/v1', { retries: 11 }),
      api.http.response({ url: '/banks/v1', retries: 11 }),
    ]) {
      const refusal = { code: 'invalid_request', faults: [{ property: 'retries' }] };
      expect(await rejection(call)).toMatchObject(refusal);
    }
    expect(simulator.apiRequests).toEqual([]);

    const seen: unknown[] = [];
    const { interceptors } = api.http.axiosRef;
    const id = interceptors.request.use(
      (config) => (seen.push((config as { tenant?: unknown }).tenant), config),
    );
    await api.banks.list({ tenant: 't-1' } as object);
    await api.http.axiosRef.get('/banks/v1', { httpsAgent: api.auth.httpsAgent });
    interceptors.request.eject(id);
    expect(seen).toEqual(['t-1', undefined]);
  });

  it('customers.create accepts exactly the input that its Swagger schema allows', () => {
    const { accepted, rejected } = inputsBySchema(CreateCustomerDto._OPENAPI_METADATA_FACTORY());
    for (const input of accepted) expect(validateInput(CreateCustomerDto, input)).toEqual(input);
    for (const input of rejected)
      expect(() => validateInput(CreateCustomerDto, input)).toThrow('app_user_id');
    for (const app_user_id of [1, null, ['u-1']]) {
      const check = () => validateInput(CreateCustomerDto, { app_user_id });
      expect(check).toThrow('app_user_id must be a string');
    }
  });

  it('customers.create rejects an unknown field with a message that names http.post, which sends it', async () => {
    const customer = { app_user_id: randomUUID(), locale: 'ar' };
    const error = await rejection(api.customers.create(customer));
    expect((error as Error).message).toMatch(
      /locale is not a known field; to send other fields, use ServiceHttpService: http\.post\('\/customers\/v1', data\)/,
    );
    // The callers of the application do not get that advice.
    expect(answerOf(error)).toMatchObject({ status: 400, message: 'locale is not a known field' });
    expect(simulator.apiRequests).toEqual([]);
    await api.http.post(CUSTOMERS, customer);
    expect(JSON.parse(simulator.apiRequests[0].body)).toEqual(customer);
  });
});

describe('LinkSDK session', () => {
  const session = { customer_id: 'c-1', permissions: ['identity'] };
  const sdk = () => api.module.get(LinkSdkService);

  const production: ServiceModuleOptions = {
    environment: 'production',
    urls: { baseUrl: 'https://api.example', authUrl: 'https://auth.example' },
    appToken: 'app-token',
    tls: { certificate: 'PEM', privateKey: 'PEM' },
  };
  const oauth = { clientId: randomUUID(), clientSecret: 'client-secret' };
  const withOAuth: ServiceModuleOptions = { ...production, authentication: 'oauth', oauth };
  const linkSdk = { includeAppToken: false };
  const [app_token, access_token] = ['app-token', 'jwt'];

  it.each<[string, ServiceModuleOptions, object]>([
    ['mtls', production, { app_token }],
    ['mtls with OAuth credentials', { ...production, oauth }, { app_token, access_token }],
    ['oauth', withOAuth, { app_token, access_token }],
    ['oauth without an app token', { ...withOAuth, appToken: undefined }, { access_token }],
    ['oauth, includeAppToken false', { ...withOAuth, linkSdk }, { access_token }],
    ['mtls, includeAppToken false', { ...production, linkSdk }, { app_token }],
  ])('the LinkSDK parameters contain the credentials of the mode: %s', async (_, given, credentials) => {
    const { options } = await resolveOptions(given);
    const token = { accessToken: 'jwt', tokenType: 'bearer' as const, scope: 'x', expiresAt: new Date() };
    const made = new LinkSdkService(options!, { getCustomerToken: async () => token });
    const ofCustomer = { ...credentials, customer_id: 'c-1' };
    expect(await made.sessionParameters({ customer_id: 'c-1' })).toEqual(ofCustomer);
    expect(await made.connectParameters(session)).toEqual({ ...ofCustomer, ...session });
  });

  it.each([
    ['production', {}],
    ['sandbox', { sandbox: true }],
  ] as const)(
    'LinkSdkService.environment is %s, and the LinkSDK parameters say so',
    async (environment, field) => {
      const mode = { environment, authentication: 'oauth' } as const;
      const { module } = await startModule(simulator.moduleOptions(mode));
      closing.push(() => module.close());
      const made = module.get(LinkSdkService);
      expect(made.environment).toBe(environment);
      const credentials = { app_token: expect.any(String), access_token: expect.any(String) };
      const ofCustomer = { ...credentials, customer_id: 'c-1', ...field };
      expect(await made.sessionParameters({ customer_id: 'c-1' })).toEqual(ofCustomer);
      expect(await made.connectParameters(session)).toEqual({ ...ofCustomer, ...session });
    },
  );

  it('the input of a LinkSDK session is accepted exactly if its Swagger schema allows it', () => {
    const { accepted, rejected } = inputsBySchema({
      ...LinkSessionDto._OPENAPI_METADATA_FACTORY(),
      ...ConnectDto._OPENAPI_METADATA_FACTORY(),
    });
    for (const input of accepted) expect(validateInput(ConnectDto, input)).toEqual(input);
    for (const input of rejected) expect(() => validateInput(ConnectDto, input)).toThrow('Nothing was sent');
    const permissions = ['x'.repeat(256)];
    expect(validateInput(ConnectDto, { ...session, permissions })).toEqual({ ...session, permissions });
  });

  it.each<[object, string]>([
    [{ customer_id: 'a b' }, 'customer_id must be 1 to 128'],
    [{ permissions: 'identity' }, "permissions must be an array of texts, for example ['identity']"],
    [{ permissions: [] }, 'permissions should not be empty'],
    [{ permissions: [1] }, 'permissions (each value) must be a string'],
    [{ permissions: [' '] }, 'permissions (each value) must not be blank'],
    [{ permissions: ['x'.repeat(257)] }, 'permissions (each value) must be shorter than or equal to 256'],
    [{ bank_identifier: 5 }, 'bank_identifier must be a string'],
    [{ bank_identifier: '   ' }, 'bank_identifier must not be blank'],
    [{ bank_identifier: 'a\nb' }, 'bank_identifier must not contain control characters'],
    [
      { payment_intent_id: 'p-1' },
      'payment_intent_id is not a known field; add it to what the method returns',
    ],
  ])(
    'a LinkSDK session with %j is rejected with a message that says what is wrong',
    async (wrong, message) => {
      const error = await rejection(sdk().connectParameters({ ...session, ...wrong }));
      expect((error as Error).message).toContain(`Nothing was sent: ${message}`);
      const { permissions: _, bank_identifier: __, ...ofSession } = wrong as Partial<ConnectDto>;
      if (Object.keys(ofSession).length === 0) return;
      const again = await rejection(sdk().sessionParameters({ customer_id: 'c-1', ...ofSession }));
      expect(again).toMatchObject({ message: (error as Error).message });
    },
  );

  it("a host's own ValidationPipe gets the name of the violated rule isCustomerId", () => {
    const [{ constraints }] = validateSync(Object.assign(new ConnectDto(), session, { customer_id: 'a b' }));
    expect(constraints).toEqual({ isCustomerId: expect.stringMatching(/^customer_id must be 1 to 128/) });
  });

  it('connectParameters accepts an AbortSignal and a timeout in milliseconds, and rejects invalid ones', async () => {
    const reason = new Error('mine');
    const aborted = sdk().connectParameters(session, { signal: AbortSignal.abort(reason) });
    expect(await rejection(aborted)).toBe(reason);
    simulator.fail({ face: 'token', times: 1, fault: 'hang' });
    const late = sdk().connectParameters(session, { timeout: 50 });
    expect(await rejection(late)).toMatchObject({ kind: 'timeout' });
    for (const limit of [{ timeout: -1 }, { timeout: Infinity }, { signal: {} as never }]) {
      expect(await rejection(sdk().connectParameters(session, limit))).toBeInstanceOf(ServiceRequestError);
    }
  });

  it.each([undefined, null])(
    'connectParameters accepts %j as bank_identifier and leaves the field out',
    async (bank) => {
      const withoutBank = { ...session, customer_id: 'c-2', bank_identifier: bank as undefined };
      const names = Object.keys(await sdk().connectParameters(withoutBank)).sort();
      expect(names).toEqual(['access_token', 'app_token', 'customer_id', 'permissions']);
    },
  );
});

/** These calls go over real TLS, and the simulator records each request. */
describe('idempotency key', () => {
  const fail = (fault: SimulatorFault, times = 1) => simulator.fail({ path: CUSTOMERS, times, fault });
  const create = ({ customers }: StartedModule, idempotencyKey: true | string = true) =>
    customers.create({ app_user_id: randomUUID() }, { idempotencyKey });
  const keys = (header = 'idempotency-key') => simulator.apiRequests.map(({ headers }) => headers[header]);

  it.each<[string, SimulatorFault]>([
    ['no response', 'hang'],
    ['a response body that does not end', { trickleMs: 20 }],
    ['a connection reset after the request', 'reset'],
    ['a 503 response', { status: 503 }],
  ])(
    'after %s, a POST with an idempotency key is retried with the same key, and the next call has another',
    async (_, fault) => {
      const isEndless = fault === 'hang' || (typeof fault === 'object' && 'trickleMs' in fault);
      const started = await start({ timeout: 20_000, ...(isEndless && { attemptTimeout: 400 }) });
      fail(fault, 2);
      expect(await create(started)).toMatchObject({ app_user_id: expect.any(String) });
      const [key] = keys();
      expect(key).toMatch(UUID);
      expect(keys()).toEqual([key, key, key]);
      await create(started);
      expect(keys()[3]).toMatch(UUID);
      expect(keys()[3]).not.toBe(key);
    },
  );

  it('idempotencyKey: true adds a key to a PATCH, and calls without the option have none', async () => {
    await rejection(mtls.http.patch(CUSTOMERS, {}, { idempotencyKey: true }));
    await mtls.customers.create({ app_user_id: randomUUID() });
    await mtls.http.get('/banks/v1');
    expect(keys()).toEqual([expect.stringMatching(UUID), undefined, undefined]);
  });

  it("all attempts send the caller's own idempotency key in http.idempotencyHeader", async () => {
    const started = await start({ idempotencyHeader: 'X-Key' });
    fail({ status: 503 });
    await create(started, 'of-the-caller');
    expect(keys('x-key')).toEqual(['of-the-caller', 'of-the-caller']);
  });

  it('an Idempotency-Key header without the option idempotencyKey does not make a POST repeatable', async () => {
    fail({ status: 503 });
    const headers = { 'Idempotency-Key': 'mine' };
    const customer = { app_user_id: randomUUID() };
    const error = await rejection(mtls.customers.create(customer, { headers }));
    expect(error).toMatchObject({ status: 503, outcomeUnknown: true, idempotencyKey: undefined });
    await mtls.customers.create(customer, { headers, idempotencyKey: 'mine' });
    expect(keys()).toEqual(['mine', 'mine']);
  });

  it('a readOnly POST is retried without an idempotency key and its outcome is never in doubt', async () => {
    simulator.fail({ path: '/search/v1', times: 9, fault: 'reset' });
    const error = await rejection(mtls.http.post('/search/v1', {}, { readOnly: true }));
    expect(error).toMatchObject({ outcomeUnknown: false });
    expect(keys()).toEqual([undefined, undefined, undefined]);
  });

  it('a POST is retried after 429 DUPLICATED_REQUEST only with an idempotency key, after other 429s also without', async () => {
    const busy = (status: string): SimulatorFault => ({
      status: 429,
      json: { status, message: 'wait' },
      headers: { 'retry-after': '0' },
    });
    fail(busy('DUPLICATED_REQUEST'));
    const error = await rejection(mtls.customers.create({ app_user_id: randomUUID() }));
    expect(error).toMatchObject({ status: 429, outcomeUnknown: false });
    expect(keys()).toHaveLength(1);
    fail(busy('DUPLICATED_REQUEST'));
    await create(mtls);
    fail(busy('TOO_MANY_REQUESTS'));
    await mtls.customers.create({ app_user_id: randomUUID() });
    expect(keys()).toHaveLength(5);
  });

  it('the replay with another token keeps the idempotency key', async () => {
    await create(api);
    simulator.revokeTokens();
    await create(api);
    const [, refused, replayed] = keys();
    expect(simulator.apiRequests.map(({ status }) => status)).toEqual([201, 401, 201]);
    expect(replayed).toBe(refused);
  });

  it.each<[string, SimulatorFault, object]>([
    ['a reset connection', 'reset', { kind: 'reset', outcomeUnknown: true }],
    ['a 503 response', { status: 503 }, { status: 503 }],
    ['an HTML page', 'html', { code: 'invalid_response' }],
    [
      'a redirect',
      { status: 302, headers: { location: '/elsewhere' } },
      { kind: 'redirect', outcomeUnknown: true },
    ],
  ])(
    'a POST that fails with %s rejects with an error that carries its idempotency key',
    async (_, fault, expected) => {
      fail(fault, 9);
      const error = await rejection(create(mtls));
      expect(error).toMatchObject({ ...expected, idempotencyKey: keys()[0] });
      simulator.clearFaults();
      // The caller repeats the call later, with the key from the error.
      const { idempotencyKey } = error as { idempotencyKey: string };
      await create(mtls, idempotencyKey);
      expect(keys().at(-1)).toBe(idempotencyKey);
      fail({ status: 400 });
      expect(JSON.stringify(await rejection(create(mtls)))).not.toContain('idempotencyKey');
    },
  );

  it.each(['express', 'fastify'] as const)(
    'a host on %s shows an idempotency key neither to its callers nor in its log',
    async (platform) => {
      const logger = new CollectingLogger();
      const host = await startHost(ServiceModule.forRoot(optionsWith({})), platform, logger);
      closing.push(() => host.close());
      const { axiosRef } = host.app.get(ServiceHttpService);
      axiosRef.interceptors.request.use((config) => Object.assign(config, { idempotencyKey: true }));
      for (const fault of ['reset', { status: 503 }] as SimulatorFault[]) {
        simulator.clearRequests();
        fail(fault, 9);
        const { body } = await host.request('POST', '/customers', { app_user_id: randomUUID() });
        expect(keys()[0]).toMatch(UUID);
        expect(JSON.stringify([body, logger.lines])).not.toContain(keys()[0]);
        simulator.clearFaults();
      }
    },
  );

  it('errors from serviceErrors carry the idempotency key only if the request may have been executed', () => {
    const call = { method: 'POST', path: CUSTOMERS, idempotencyKey: 'k-1' };
    const key = { idempotencyKey: 'k-1' };
    expect(serviceErrors.connection('timeout', call)).toMatchObject({ ...key, outcomeUnknown: true });
    expect(serviceErrors.connection('redirect', call)).toMatchObject(key);
    expect(serviceErrors.api(503, call)).toMatchObject({ ...key, retryable: true });
    expect(serviceErrors.invalidResponse(call)).toMatchObject(key);
    expect(serviceErrors.connection('refused', call).idempotencyKey).toBeUndefined();
    expect(serviceErrors.api(409, call).idempotencyKey).toBeUndefined();
  });

  it.each(['authorization', 'content-length', 'two words'])(
    'startup rejects %j as http.idempotencyHeader',
    async (idempotencyHeader) => {
      const option = 'http.idempotencyHeader';
      const variable = 'SERVICE_HTTP_IDEMPOTENCY_HEADER';
      const message = expect.stringMatching(/a header's name/);
      const error = await rejection(startModule(optionsWith({ idempotencyHeader })));
      expect(error).toMatchObject({ faults: [{ option, variable, message }] });
    },
  );
});
