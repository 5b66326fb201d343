import { describe, expect, it } from '@jest/globals';
import { type RequestListener } from 'node:http';
import { inspect } from 'node:util';
import { z } from 'zod';
import { describeError, ServiceApiError, ServiceRequestError } from '../../../lib/errors/index.js';
import { answerOf } from '../../../lib/http/exception-answer.js';
import { type AnswerParser } from '../../../lib/http/answer-parser.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { everyForm } from '../../helpers/secret-scan.js';
import { BEARER, errorOf, setUp, type Setup } from './setup.js';

const PRIVATE = 'private-value';

async function start(body: string, { status = 200, ...setup }: Setup & { status?: number } = {}) {
  const listener: RequestListener = (_, response) =>
    response.writeHead(status, { 'x-correlation-id': `c-1 ${BEARER}` }).end(body);
  const { axios, arrived } = await setUp({ listener, ...setup });
  return { http: new ServiceHttpService({ axiosRef: axios } as never), axios, arrived };
}

const refusing = async (body: string, parse: AnswerParser): Promise<ServiceApiError> => {
  const { http, arrived } = await start(body);
  const error = (await errorOf(http.get('/a?q=private-value', { parse }))) as ServiceApiError;
  expect(error).toBeInstanceOf(ServiceApiError);
  expect(everyForm(error)).not.toMatch(/private|planted/);
  // A parser's refusal is no reason to send a call again.
  expect(arrived).toHaveLength(1);
  return error;
};

describe('parse', () => {
  it('brings what a function returns, or promises', async () => {
    const { http } = await start('{"n":1}');
    expect(await http.get('/a', { parse: (body) => [body] })).toEqual([{ n: 1 }]);
    expect(await http.post('/a', {}, { parse: async (body) => [body] })).toEqual([{ n: 1 }]);
  });

  it('brings the output of a schema, synchronous or not; called on its own object', async () => {
    const { http } = await start('{"n":"1"}');
    const schema = z.object({ n: z.coerce.number() });
    expect(await http.get('/a', { parse: schema })).toEqual({ n: 1 });
    const later = schema.transform(async ({ n }) => n + 1);
    expect(await http.get('/a', { parse: later })).toBe(2);
  });

  it('takes a schema that is a function too (arktype) as a schema', async () => {
    const schema = Object.assign(() => 'not called', {
      '~standard': { version: 1 as const, vendor: 'x', validate: (value: unknown) => ({ value: [value] }) },
    });
    const { http } = await start('1');
    expect(await http.get('/a', { parse: schema })).toEqual([1]);
  });

  it('names the places that do not fit, the call and its correlation id, and no value', async () => {
    const banks = z.array(z.object({ bank_identifier: z.literal(PRIVATE + 2), name: z.string().email() }));
    const body = JSON.stringify([
      { bank_identifier: PRIVATE + 2, name: 'a@b.co' },
      { bank_identifier: PRIVATE, name: PRIVATE },
    ]);
    const error = await refusing(body, banks);
    expect(error.toJSON()).toMatchObject({
      code: 'invalid_response',
      message: 'The service answered 200 with a body that parse refused: [1].bank_identifier, [1].name.',
      status: 200,
      method: 'GET',
      route: '/a',
      correlationId: '[not shown: it contains a secret or a part of one]',
    });
    expect(error).not.toHaveProperty('cause');
  });

  it('names the body as a whole where it is of another kind', async () => {
    expect((await refusing(`"${PRIVATE}"`, z.array(z.string()))).message).toBe(
      'The service answered 200 with a body that parse refused.',
    );
  });

  it('takes the places out of what a schema throws in a function', async () => {
    const parse = (body: unknown) => z.object({ name: z.number() }).parse(body);
    const error = await refusing(`{"name":"${PRIVATE}"}`, parse);
    expect(error.message).toBe('The service answered 200 with a body that parse refused: name.');
  });

  it.each<[string, () => unknown, string]>([
    ['an error with a message', () => new Error(PRIVATE, { cause: PRIVATE }), 'refused.'],
    ['a fault of its code', () => new TypeError(PRIVATE), 'refused (it threw a TypeError).'],
    ['an error with a name of its own', () => Object.assign(new Error(), { name: PRIVATE }), 'refused.'],
    ['text', () => PRIVATE, 'refused.'],
    ['nothing', () => undefined, 'refused.'],
    [
      'places with getters that throw',
      () => ({
        issues: [
          {
            get path() {
              throw new Error(PRIVATE);
            },
          },
        ],
      }),
      'refused.',
    ],
    [
      'a proxy that throws',
      () =>
        new Proxy(
          {},
          {
            get: () => {
              throw new Error(PRIVATE);
            },
          },
        ),
      'refused.',
    ],
    [
      'one of our own errors',
      () => new ServiceRequestError([{ property: 'p', message: PRIVATE }]),
      'refused.',
    ],
  ])('says nothing of %s that a function throws', async (_, thrown, said) => {
    const fail = (): never => {
      throw thrown();
    };
    for (const parse of [
      fail,
      async () => fail(),
      { '~standard': { version: 1 as const, validate: async () => fail() } },
    ]) {
      const error = await refusing(`{"a":"${PRIVATE}"}`, parse);
      expect(error.message).toBe(`The service answered 200 with a body that parse ${said}`);
    }
  });

  it.each([[null], [undefined], ['x'], [{ issues: {} }], [{ issues: [] }], [{ issues: 'private' }]])(
    'takes the result %j of a schema that breaks the rules for a refusal, or for its value',
    async (result) => {
      const { http } = await start('1');
      const parse = { '~standard': { version: 1, validate: () => result } } as never;
      const outcome = await http.get('/a', { parse }).catch((error: unknown) => error);
      if (result === 'x') expect(outcome).toBeUndefined();
      else expect(outcome).toMatchObject({ code: 'invalid_response' });
      expect(inspect(outcome)).not.toContain('private');
    },
  );

  it('shows no value that hostile results of a schema bring as places', async () => {
    class Foreign extends Array<unknown> {
      override map = (): never[] => [PRIVATE] as never[];
      override slice = (): this => this;
    }
    let reads = 0;
    const results = [
      { issues: { map: () => [PRIVATE], length: 1 } },
      { issues: Foreign.from([{ path: ['a'] }]) },
      { issues: [{ path: Foreign.from(['a']) }] },
      {
        get issues() {
          reads += 1;
          return reads === 1 ? [{ path: ['a'] }] : { map: () => [PRIVATE] };
        },
      },
    ];
    for (const result of results) {
      const error = await refusing('1', { '~standard': { version: 1, validate: () => result } } as never);
      expect(error.message).toMatch(/ with a body that parse refused(: a)?\.$/);
    }
  });

  it('says of a POST that it was done, and sends it once', async () => {
    for (const method of ['POST', 'put', 'PATCH', 'DELETE']) {
      const { http, arrived } = await start('{}', { status: 201 });
      const parse = z.object({ customer_id: z.string() });
      expect(await errorOf(http.request('/a', { method, parse }))).toMatchObject({
        status: 201,
        method: method.toUpperCase(),
        message:
          'The service answered 201 with a body that parse refused: customer_id. By its status the call was carried out.',
      });
      expect(arrived).toHaveLength(1);
    }
  });

  it('is for the log of the operator, not for the callers of the host', async () => {
    const { http } = await start('{}', { status: 201 });
    const parse = z.object({ customer_id: z.string() });
    const error = (await errorOf(http.post('/a', {}, { parse }))) as ServiceApiError;
    expect(answerOf(error)).toEqual({
      code: 'invalid_response',
      status: 502,
      message: 'The service failed to answer this call. The request may have been carried out all the same.',
    });
    expect(describeError(error)).toBe(
      'invalid_response: POST /a: The service answered 201 with a body that parse refused: customer_id. By its status the call was carried out; correlation id [not shown: it contains a secret or a part of one]',
    );
  });

  it('gets the undefined of an answer without a body', async () => {
    const customer = z.object({ customer_id: z.string() });
    for (const status of [204, 201]) {
      const { http } = await start('', { status });
      expect(await http.post('/a', {}, { parse: customer.optional() })).toBeUndefined();
      expect(await errorOf(http.post('/a', {}, { parse: customer }))).toMatchObject({
        code: 'invalid_response',
        message: `The service answered ${status} without a body that parse refused. By its status the call was carried out.`,
      });
    }
  });

  it('is not asked about a failure', async () => {
    const { http } = await start('{"status":"X","message":"said"}', { status: 404 });
    const parse = (): never => {
      throw new Error('not called');
    };
    expect(await errorOf(http.get('/a', { parse }))).toMatchObject({
      code: 'api_error',
      message: 'said',
    });
  });

  it('does not say that a call was done where a host takes a failure for an answer', async () => {
    const { http, axios } = await start('{}', { status: 404 });
    axios.defaults.validateStatus = () => true;
    expect(await errorOf(http.post('/a', {}, { parse: z.array(z.string()) }))).toMatchObject({
      message: 'The service answered 404 with a body that parse refused.',
    });
  });

  it("checks what the host's interceptors made of the answer", async () => {
    const { http, axios } = await start('{"data":[1]}');
    axios.interceptors.response.use((response) => {
      response.data = (response.data as { data: unknown }).data;
      return response;
    });
    expect(await http.get('/a', { parse: z.array(z.number()) })).toEqual([1]);
  });

  it('does not reach axios: a schema is a plain object, which axios would copy', async () => {
    const { http, axios } = await start('1');
    const seen: object[] = [];
    axios.interceptors.request.use((config) => {
      seen.push(config);
      return config;
    });
    const { config } = await axios.get('/a');
    await http.get('/a', { parse: (body) => body });
    expect(seen.map((each) => 'parse' in each)).toEqual([false, false]);
    expect(config).not.toHaveProperty('parse');
  });
});
