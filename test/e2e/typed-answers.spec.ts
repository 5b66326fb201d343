import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import * as v from 'valibot';
import { z } from 'zod';
import {
  type AnswerParser,
  type AnswerSchema,
  type BanksBody,
  BanksService,
  type Customer,
  CustomersService,
  type HttpCallOptions,
  type HttpResponse,
  ServiceApiError,
  type ServiceHttpService,
} from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { everyForm } from '../helpers/secret-scan.js';
import { rejection, startModule, type StartedModule, startStubbed } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

interface Bank {
  bank_identifier: string;
  name: string;
}

const zodBanks = z.array(z.object({ bank_identifier: z.string(), name: z.string() }));
const valibotBanks = v.array(v.object({ bank_identifier: v.string(), name: v.string() }));

/** Compiles only where the type of the value is the given one: not any, not wider, not narrower. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isTyped = <Expected>() => ({ by: <Actual>(_: Promise<Actual>, same: Same<Actual, Expected>) => same });

/** What hosts write; the compiler reads it too (npm run typecheck). Nothing of it is called. */
export function types(banks: BanksService, customers: CustomersService, http: ServiceHttpService): void {
  const own = null as unknown as AnswerSchema<Bank>;
  // As arktype's: a function that returns the value or its errors, and a schema.
  const callable = null as unknown as AnswerSchema<Bank> & ((data: unknown) => Bank | Error);
  const transforming = z.object({ at: z.string().transform((text) => new Date(text)) });
  isTyped<Bank[]>().by(banks.list({ parse: zodBanks }), true);
  isTyped<Bank[]>().by(banks.list({ parse: valibotBanks, params: { country: 'ae' } }), true);
  isTyped<Bank>().by(banks.list({ parse: own }), true);
  isTyped<Bank>().by(banks.list({ parse: callable }), true);
  isTyped<number>().by(banks.list({ parse: () => 1 }), true);
  isTyped<number>().by(banks.list({ parse: async () => 1 }), true);
  isTyped<Bank[]>().by(banks.list({ parse: (body) => zodBanks.parse(body) }), true);
  isTyped<{ at: Date }>().by(customers.create({ app_user_id: 'u-1' }, { parse: transforming }), true);
  isTyped<Bank | undefined>().by(http.get('/a', { parse: z.custom<Bank>().optional() }), true);
  for (const send of ['post', 'put', 'patch'] as const) {
    isTyped<Bank>().by(http[send]('/a', {}, { parse: own }), true);
    isTyped<unknown>().by(http[send]('/a', {}), true);
    isTyped<Bank>().by(http[send]<Bank>('/a', {}, { timeout: 1 }), true);
  }
  isTyped<Bank>().by(http.delete('/a', { parse: own, data: {} }), true);
  isTyped<Bank>().by(http.request('/a', { parse: own, method: 'PUT' }), true);
  isTyped<Bank>().by(http.request({ url: '/a', parse: own }), true);
  isTyped<unknown>().by(http.get('/a', { parse: own as AnswerParser }), true);
  isTyped<HttpResponse<Bank>>().by(http.response('/a', { parse: own, method: 'PUT' }), true);
  isTyped<HttpResponse<Bank>>().by(http.response({ url: '/a', parse: own }), true);
  isTyped<HttpResponse<Bank>>().by(http.response<Bank>('/a'), true);
  isTyped<HttpResponse>().by(http.response({ url: '/a' }), true);
  isTyped<string>().by(http.get<string>('/a', { responseType: 'text', timeout: 1 }), true);
  isTyped<number>().by(http.get('/a', { responseType: 'text', parse: (body) => Number(body) }), true);
  isTyped<HttpResponse<Uint8Array>>().by(http.response<Uint8Array>('/a', { responseType: 'bytes' }), true);
  // Without it as before.
  isTyped<BanksBody>().by(banks.list(), true);
  isTyped<string[]>().by(banks.list<string[]>({ timeout: 1 }), true);
  isTyped<Customer | undefined>().by(customers.create({ app_user_id: 'u-1' }), true);
  isTyped<Bank>().by(http.request<Bank>({ url: '/a' }), true);
  isTyped<unknown>().by(banks.list(undefined as HttpCallOptions | undefined), true);
  // A host's own wrapper.
  const get = <T>(path: string, options?: HttpCallOptions) => http.get<T>(path, options);
  isTyped<Bank>().by(get<Bank>('/a', { timeout: 1 }), true);
  const generic = (parse: AnswerParser) => banks.list({ parse });
  isTyped<unknown>().by(generic(own), true);
  isTyped<Bank>().by(Promise.resolve({} as string), false);
  // @ts-expect-error not a parser
  void banks.list({ parse: 'x' });
  // @ts-expect-error an answer may be anything: nothing may be assumed of what a parser gets
  void banks.list({ parse: (body: Bank[]) => body });
  // @ts-expect-error not a type
  void http.get('/a', { responseType: 'stream' });
  // @ts-expect-error misspelt
  void http.get('/a', { responseType: 'text', timout: 1 });
  // @ts-expect-error misspelt
  void http.get('/a', { parse: own, timout: 1 });
  // @ts-expect-error the schema says otherwise
  const wrong: Promise<string> = banks.list({ parse: zodBanks });
  void wrong;
}

describe('typed answers', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule;

  beforeAll(async () => {
    simulator = await startSimulator();
    api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
  });
  afterEach(() => {
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(async () => {
    await api.module.close();
    await simulator.stop();
  });

  it.each<[string, AnswerParser<Bank[]>]>([
    ['zod', zodBanks],
    ['valibot', valibotBanks],
    ['a function over zod', (body) => zodBanks.parse(body)],
    ['a function over valibot', async (body) => v.parse(valibotBanks, body)],
  ])('%s: brings the banks, and names the place that does not fit', async (_, parse) => {
    const banks = await api.banks.list({ parse });
    expect(banks).toHaveLength(10);
    const json = [...banks.slice(0, 3), { bank_identifier: 4_242_424_242, name: 'private-name' }];
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json } });
    simulator.clearRequests();
    const error = (await rejection(api.banks.list({ parse }))) as ServiceApiError;
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(error).toMatchObject({
      code: 'invalid_response',
      message: 'The service answered 200 with a body that parse refused: [3].bank_identifier.',
      path: '/banks/v1',
    });
    expect(everyForm(error)).not.toMatch(/4.?242|private|Alpha/);
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it('does not name the keys of a record, which may be personal data', async () => {
    const json = { limits: { 'jane.doe@example.com': { daily: 'private' }, AE070331234567890123456: {} } };
    simulator.fail({ path: '/limits/v1', times: 2, fault: { status: 200, json } });
    const message = 'The service answered 200 with a body that parse refused: limits[…].daily.';
    const limit = { daily: z.number() };
    const records = [
      z.object({ limits: z.record(z.string(), z.object(limit)) }),
      v.object({ limits: v.record(v.string(), v.object({ daily: v.number() })) }),
    ];
    for (const parse of records) {
      const error = await rejection(api.http.get('/limits/v1', { parse }));
      expect(error).toMatchObject({ message });
      expect(everyForm(error)).not.toMatch(/jane|AE07|private/);
    }
  });

  it('customers.create: a body that does not fit says that the customer was created', async () => {
    const parse = z.object({ customer_id: z.string() });
    const { customer_id } = await api.customers.create({ app_user_id: 'u-1' }, { parse });
    expect(customer_id).toMatch(/./);
    simulator.fail({ path: '/customers/v1', times: 2, fault: { status: 201, body: '' } });
    expect(await rejection(api.customers.create({ app_user_id: 'u-2' }, { parse }))).toMatchObject({
      code: 'invalid_response',
      message:
        'The service answered 201 without a body that parse refused. By its status the call was carried out.',
    });
    const orNothing = parse.optional();
    expect(await api.customers.create({ app_user_id: 'u-3' }, { parse: orNothing })).toBeUndefined();
  });

  it("a double's answer is parsed as the service's would be", async () => {
    const { module } = await startStubbed({
      banks: { list: () => [{ bank_identifier: 7, name: 'private' }] },
      customers: { create: () => undefined },
    });
    const banks = module.get(BanksService);
    expect(await banks.list({ parse: (body) => Array.isArray(body) })).toBe(true);
    const error = await rejection(banks.list({ parse: zodBanks }));
    expect(error).toMatchObject({
      code: 'invalid_response',
      message: 'The service answered 200 with a body that parse refused: [0].bank_identifier.',
      method: 'GET',
      path: '/banks/v1',
    });
    expect(everyForm(error)).not.toContain('private');
    const parse = z.object({ customer_id: z.string() });
    expect(
      await rejection(module.get(CustomersService).create({ app_user_id: 'u-1' }, { parse })),
    ).toMatchObject({ code: 'invalid_response', status: 204, method: 'POST' });
    await module.close();
  });
});
