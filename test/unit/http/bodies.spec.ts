import { describe, expect, it } from '@jest/globals';
import globalAxios, { type AxiosInstance, type InternalAxiosRequestConfig } from 'axios';
import { ArrayNotEmpty, IsOptional, IsString, Length } from 'class-validator';
import { createReadStream } from 'node:fs';
import { Duplex, PassThrough, Readable, Transform } from 'node:stream';
import { lastValueFrom } from 'rxjs';
import { answerOf } from '../../../lib/answers/answer.js';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { checkTimeout } from '../../../lib/config/http.options.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { validateInput } from '../../../lib/http/validate-input.js';

// A host application may change the defaults of axios before it loads this package.
const axiosOwn = globalAxios.defaults.transformRequest;
globalAxios.defaults.transformRequest = [() => 'of the host'];
const { errorOf, failing, setUp } = await import('./setup.js');

const buffer = new TextEncoder().encode('0123456789').buffer;
const file = new File(['bytes'], 'n.txt', { type: 'text/x' });
const filled = (): FormData => {
  const form = new FormData();
  form.append('a', 'b');
  form.append('list[]', '1');
  form.append('file', file);
  return form;
};

describe('A stream as the body', () => {
  /** A class like that of the package form-data. */
  class PackageForm extends PassThrough {
    append(): void {}
    getHeaders(): object {
      return { 'content-type': 'multipart/form-data; boundary=x' };
    }
    getBoundary(): string {
      return 'x';
    }
  }

  async function* generated() {
    yield 'a';
  }

  const listeners = (value: object): unknown =>
    value instanceof Readable ? value.eventNames().map((name) => [name, value.listenerCount(name)]) : [];

  const USE_FORM = /use the global FormData/;
  const INSTEAD =
    /send a string, Buffer, FormData or Blob.*auth\.httpsAgent and auth\.authorizationHeaders\(\)/;

  it.each<[string, () => object, RegExp]>([
    ['a Readable', () => Readable.from(['a', 'b']), INSTEAD],
    ['a Readable of objects', () => Readable.from([{ a: 1 }, 2]), INSTEAD],
    ['a Duplex', () => Duplex.from(['a']), INSTEAD],
    ['a Transform', () => new Transform({ transform: (chunk, _, done) => done(null, chunk) }), INSTEAD],
    ['a file', () => createReadStream(import.meta.filename), INSTEAD],
    ['a web stream', () => new Blob(['a']).stream(), INSTEAD],
    ['an async generator', () => generated(), INSTEAD],
    ['an object that is iterated', () => ({ [Symbol.asyncIterator]: generated }), INSTEAD],
    ['anything with pipe', () => ({ pipe: () => undefined }), INSTEAD],
    ['anything with getReader', () => ({ getReader: () => undefined }), INSTEAD],
    ['a form of the form-data package', () => new PackageForm(), USE_FORM],
  ])('is refused and left untouched: %s', async (_, make, message) => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService(axios);
    const stream = make();
    const before = listeners(stream);
    for (const type of [undefined, 'application/json', 'multipart/form-data']) {
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
      for (const send of [
        () => axios.request({ url: '/a', method: 'PUT', data: stream, headers }),
        () => http.post('/a', stream, { headers }),
        () => http.delete('/a', { data: stream, headers }),
      ]) {
        const error = await errorOf(send());
        expect(error).toBeInstanceOf(ServiceRequestError);
        const faults = [{ property: 'data', message: expect.stringMatching(message) }];
        expect(error).toMatchObject({ faults });
      }
    }
    expect(listeners(stream)).toEqual(before);
    if (stream instanceof Readable) {
      const { destroyed, readableFlowing, readableDidRead } = stream;
      expect([destroyed, readableFlowing, readableDidRead]).toEqual([false, null, false]);
      stream.destroy();
    }
    if (stream instanceof ReadableStream) expect(stream.locked).toBe(false);
    expect(arrived).toHaveLength(0);
  });
});

describe('Request bodies', () => {
  class Customer {
    readonly id = 1;
  }
  const nested = { a: { b: [1, { c: 'ü' }] }, none: null, missing: undefined, at: new Date(0), yes: true };
  const odd = {
    bytes: Buffer.from('ab'),
    'x{}': { y: 1 },
    'l[]': [1, 2],
    view: new Uint8Array(buffer, 1, 2),
  };
  const BODIES: [string, unknown][] = [
    ['an object', nested],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
    ['an empty object', {}],
    ['an array', [1, 'a', null]],
    ['a Date', new Date(0)],
    ['an object with toJSON', { toJSON: () => ({ b: 1 }) }],
    ['toJSON that gives nothing', { toJSON: () => undefined }],
    ['a Map', new Map([['a', 1]])],
    ['an instance', new Customer()],
    ['an object with bytes and special keys', odd],
    ['an object with a file', { file }],
    ['a number', 5],
    ['true', true],
    ['null', null],
    ['nothing', undefined],
    ['a bigint in an object', { a: 1n }],
    ['a Buffer', Buffer.from('bytes')],
    ['a Uint8Array of a part', new Uint8Array(buffer, 2, 3)],
    ['a Uint16Array', new Uint16Array(buffer, 2, 2)],
    ['a DataView', new DataView(buffer, 1, 4)],
    ['an ArrayBuffer', buffer],
    ['a Blob', new Blob(['blob'], { type: 'text/y' })],
    ['a File', file],
  ];
  /** These bodies are sent unchanged even with a JSON content type, for which axios would serialize them as JSON. */
  const FORMS: [string, unknown][] = [
    ['URLSearchParams', new URLSearchParams({ a: '1 ü' })],
    ['a form', filled()],
  ];
  const JSON_TYPES = ['application/json', 'application/json;charset=utf-8'];
  const OTHER_TYPES = [undefined, 'application/vnd.api+json', 'text/plain'];

  it.each([...BODIES, ...FORMS])(
    'are sent as axios would encode them, with any content type: %s',
    async (what, data) => {
      const { axios, arrived } = await setUp();
      const sent = async (type: string | undefined, options: object): Promise<unknown> => {
        const headers = type === undefined ? {} : { 'Content-Type': type };
        const failure = await axios.post('/a', data, { headers, ...options }).then(
          () => undefined,
          () => 'refused',
        );
        const { body, headers: seen } = arrived.pop() ?? {};
        const boundary = /boundary=(\S+)/.exec(String(seen?.['content-type']))?.[1] ?? ' ';
        const all = [failure, seen?.['content-type'], seen?.['content-length'], body];
        return JSON.stringify(all).replaceAll(boundary, 'B');
      };
      const isForm = FORMS.some(([name]) => name === what);
      for (const type of [...OTHER_TYPES, ...(isForm ? [] : JSON_TYPES)]) {
        expect([type, await sent(type, {})]).toEqual([
          type,
          await sent(type, { transformRequest: axiosOwn }),
        ]);
      }
    },
  );

  it('contain only the bytes of a view, a buffer or a Blob', async () => {
    const { axios, arrived } = await setUp();
    const blob = new Blob(['abc'], { type: 'text/x' });
    for (const data of [new Uint8Array(buffer, 2, 3), buffer.slice(2, 5), blob]) await axios.post('/a', data);
    expect(arrived.map(({ body }) => body)).toEqual(['234', '234', 'abc']);
  });

  it("are encoded after the host application's own transforms", async () => {
    const { axios, arrived } = await setUp();
    axios.defaults.transformRequest = (data: { a: number }): unknown => ({ a: data.a + 1 });
    await axios.post('/a', { a: 1 });
    expect(arrived[0]).toMatchObject({ body: '{"a":2}', headers: { 'content-type': 'application/json' } });
    axios.defaults.transformRequest = () => 'mine';
    await axios.post('/a', {});
    await axios.post('/a', {}, { transformRequest: () => 'of the call' });
    await axios.post('/a', {}, { transformRequest: () => new Uint16Array(buffer, 2, 1) });
    expect(arrived.slice(1).map(({ body }) => body)).toEqual(['mine', 'of the call', '23']);
    const stream = axios.post('/a', {}, { transformRequest: () => new Blob(['a']).stream() });
    expect(await errorOf(stream)).toMatchObject({ faults: [{ property: 'data' }] });
  });

  it.each(['postForm', 'putForm', 'patchForm'] as const)('can be forms: %s', async (method) => {
    const { axios, arrived } = await setUp();
    const form = new FormData();
    form.set('name', 'ü');
    form.set('file', new Blob(['bytes'], { type: 'text/x' }));
    await axios[method]('/a', form);
    expect(arrived[0]?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(arrived[0]?.body).toMatch(/name="name"\r\n\r\nü[^]*bytes/);
  });

  const FORM = 'application/x-www-form-urlencoded';
  it.each<[string, string, string | undefined]>([
    ['JSON with white space around it', ' { "a": 1 }\n', 'application/json'],
    ['a JSON list', '[1, 2 ]', 'application/json'],
    ['a signed token', 'eyJhbGciOiJIUzI1NiJ9.e30.c2ln', FORM],
    ['text in quotes', '"hello"', FORM],
    ['text', 'hello ü', FORM],
    ['an empty string', '', FORM],
  ])('that are strings are sent byte for byte, whatever their content type: %s', async (_, text, type) => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService(axios);
    const given = [undefined, 'application/json', 'application/json; charset=utf-8', 'application/jose'];
    for (const own of given) {
      const headers: Record<string, string> = own === undefined ? {} : { 'content-type': own };
      await http.post('/a', text, { headers });
      await axios.post('/a', text, { headers, transformRequest: (data: string) => data });
      await axios.post('/a', text, { headers, transformRequest: null as never });
      await http.delete('/a', { data: text, headers });
      const seen = arrived
        .splice(0)
        .map(({ method, body, headers: sent }) => [
          method,
          body,
          sent['content-type'],
          sent['content-length'],
        ]);
      const length = String(Buffer.byteLength(text));
      const posted = ['POST', text, own ?? type, length];
      // Axios gives a DELETE no content type.
      const ofDelete = own ?? (type === FORM ? undefined : type);
      expect(seen).toEqual([posted, posted, posted, ['DELETE', text, ofDelete, length]]);
    }
  });

  const AS_FORM = /send URLSearchParams or FormData$/;
  it.each<[string, unknown, object, RegExp]>([
    ['as a form', { a: 1 }, { headers: { 'content-type': 'application/x-www-form-urlencoded' } }, AS_FORM],
    ['as a form with files', { a: 1 }, { headers: { 'content-type': 'multipart/form-data' } }, AS_FORM],
    ['made a function of', {}, { transformRequest: () => () => 5 }, /^is of a kind that cannot be sent$/],
    ['with a BigInt', { a: 1n }, {}, /BigInt/],
  ])('that are objects are refused with a reason: %s', async (_, data, options, message) => {
    const { axios, arrived } = await setUp();
    expect(await errorOf(axios.post('/a', data, options))).toMatchObject({
      code: 'invalid_request',
      faults: [{ property: 'data', message: expect.stringMatching(message) }],
    });
    expect(arrived).toHaveLength(0);
  });

  it("reject with the host application's own error if its transform throws", async () => {
    const { axios } = await setUp();
    const mine = new Error('mine');
    const transformRequest = () => {
      throw mine;
    };
    expect(await errorOf(axios.post('/a', {}, { transformRequest }))).toBe(mine);
  });

  const circular = (): object => {
    const value: Record<string, unknown> = { a: 1 };
    return Object.assign(value, { list: [value] });
  };
  const deep = (levels: number): unknown => {
    let value: unknown = 1;
    for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? { a: value } : [value];
    return value;
  };

  it.each<[string, () => unknown]>([
    ['circular', circular],
    ['20,000 deep', () => deep(20_000)],
  ])('and params that are %s give an error, and nothing is sent', async (_, make) => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService(axios);
    const calls = [
      http.post('/a', make()),
      http.post('/a', { a: { toJSON: make } }),
      axios.patch('/a', make()),
      http.get('/a', { params: { in: [make()] } }),
      axios.get('/a', { params: { in: [make()] } }),
    ];
    for (const call of calls) expect(await errorOf(call)).toBeInstanceOf(Error);
    expect(arrived).toEqual([]);
  });

  it('that are nested deep, or contain one object twice, are sent', async () => {
    const { axios, arrived } = await setUp();
    const shared = { a: 1 };
    for (const data of [deep(2_000), { one: shared, other: shared }]) {
      await axios.post('/a', data);
      expect(arrived.pop()?.body).toBe(JSON.stringify(data));
    }
  });
});

describe('The body of a call, on its way to the service', () => {
  /** Node 22 and later have JSON.rawJSON(). */
  const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };
  class Amount {
    constructor(readonly text: string) {}
    toJSON(): string {
      return this.text;
    }
  }
  const withHidden = (value: object): object =>
    Object.defineProperty(value, 'toJSON', { value: () => 'hidden', enumerable: false });
  const make = () => ({
    amount: new Amount('10.50'),
    hidden: { in: withHidden({ lost: 1 }) },
    list: [{ raw: rawJSON?.('10.50') }, undefined, [new Amount('1.0')]],
    raw: rawJSON?.('1.10'),
    none: undefined,
    ['__proto__']: { own: 1 },
    map: new Map(),
    at: new Date(0),
  });

  const WAYS: [string, (axios: AxiosInstance, data: unknown) => Promise<unknown>][] = [
    ['http.post', (axios, data) => new ServiceHttpService(axios).post('/a', data)],
    ['http.put', (axios, data) => new ServiceHttpService(axios).put('/a', data)],
    ['http.patch', (axios, data) => new ServiceHttpService(axios).patch('/a', data)],
    ['http.delete', (axios, data) => new ServiceHttpService(axios).delete('/a', { data })],
    ['http.request', (axios, data) => new ServiceHttpService(axios).request('/a', { method: 'POST', data })],
    [
      'http.response',
      (axios, data) => new ServiceHttpService(axios).response({ url: '/a', method: 'POST', data }),
    ],
    ['axiosRef.request', (axios, data) => axios.request({ url: '/a', method: 'POST', data })],
    ['axiosRef.post', (axios, data) => axios.post('/a', data)],
    ['axiosRef.delete', (axios, data) => axios.delete('/a', { data })],
    ['axiosRef itself', (axios, data) => axios('/a', { method: 'PUT', data })],
    [
      'httpService.put',
      (axios, data) => lastValueFrom(new ServiceHttpService(axios).httpService.put('/a', data)),
    ],
  ];

  describe.each<[string, (axios: AxiosInstance) => void]>([
    ['without interceptors', () => undefined],
    ['with an interceptor', (axios) => void axios.interceptors.request.use((config) => config)],
    [
      'with an interceptor that copies the options',
      (axios) => void axios.interceptors.request.use((config) => ({ ...config })),
    ],
    [
      'with an interceptor for some calls',
      (axios) => void axios.interceptors.request.use((config) => config, null, { runWhen: () => true }),
    ],
  ])('%s', (_, prepare) => {
    it.each(WAYS)('is what JSON.stringify() writes of it: %s', async (__, send) => {
      const { axios, arrived } = await setUp();
      prepare(axios);
      const data = make();
      await send(axios, data);
      expect(arrived[0]?.body).toBe(JSON.stringify(data));
    });

    it.each<[string, () => unknown]>([
      [
        'contains itself',
        () => Object.assign([{}], { 0: {} }).map((each) => Object.assign(each, { each }))[0],
      ],
      [
        'is 20,000 levels deep',
        () => {
          let value: object = {};
          for (let level = 0; level < 20_000; level += 1) value = { value };
          return value;
        },
      ],
    ])('is refused if it %s', async (__, makeBad) => {
      const { axios, arrived } = await setUp();
      prepare(axios);
      for (const [, send] of WAYS)
        expect(await errorOf(send(axios, makeBad()))).toMatchObject({ faults: [{ property: 'data' }] });
      expect(arrived).toHaveLength(0);
    });
  });

  it.each(WAYS)(
    "can be changed in place by the host application's functions, but not for the caller: %s",
    async (_, send) => {
      const change = (data: unknown): void => {
        const { list } = data as { list: { id: number }[] };
        list[0].id += 1;
      };
      const data = { list: [{ id: 1 }] };
      const intercepted = await setUp();
      intercepted.axios.interceptors.request.use((config) => (change(config.data), config));
      await send(intercepted.axios, data);
      const transformed = await setUp();
      transformed.axios.defaults.transformRequest = (body: unknown) => (change(body), body);
      await send(transformed.axios, data);
      expect([...intercepted.arrived, ...transformed.arrived].map(({ body }) => body)).toEqual(
        Array(2).fill('{"list":[{"id":2}]}'),
      );
      expect(data).toEqual({ list: [{ id: 1 }] });
    },
  );

  it('is the same object for each function of the host application, and never one of ours', async () => {
    const { axios, arrived } = await setUp();
    const seen: unknown[] = [];
    const see = (data: unknown): void => void seen.push(data);
    axios.interceptors.request.use((config) => (see(config.data), config));
    axios.interceptors.request.use((config) => (see(config.data), config), null, {
      runWhen: (config) => (see(config.data), true),
    });
    axios.interceptors.response.use(({ config, ...rest }) => (see(config.data), { config, ...rest }));
    const own = new Amount('1');
    const transformRequest = (data: unknown) => (see(data), data);
    await axios.request({ url: '/a', method: 'POST', data: { own }, transformRequest });
    expect(seen).toHaveLength(5);
    for (const data of seen) expect(data).toBe(seen[0]);
    expect(seen[0]).toEqual({ own });
    expect((seen[0] as { own: unknown }).own).toBe(own);
    expect(arrived[0]?.body).toBe('{"own":"1"}');
  });

  it('of a request that an interceptor sends again is that of the options that it passes', async () => {
    const { axios, arrived } = await setUp({ listener: failing(409) });
    let config: InternalAxiosRequestConfig | undefined;
    axios.interceptors.request.use((given) => (config ??= given));
    axios.interceptors.response.use(undefined, () => {
      (config!.data as { count: number }).count += 1;
      return axios.request(config!);
    });
    const data = { count: 1, amount: new Amount('2.50') };
    await axios.post('/a', data);
    expect(arrived.map(({ body }) => body)).toEqual([
      '{"count":1,"amount":"2.50"}',
      '{"count":2,"amount":"2.50"}',
    ]);
    expect(data.count).toBe(1);
  });
});

describe('The answer to a body or params that cannot be sent', () => {
  const FORM = { headers: { 'content-type': 'multipart/form-data' } };
  const deep = (): object => {
    let value: object = {};
    for (let level = 0; level < 20_000; level += 1) value = { value };
    return value;
  };
  const circular = (): object => {
    const value: { value?: object } = {};
    return Object.assign(value, { value });
  };

  it.each<[string, () => object, RegExp?]>([
    ['a BigInt', () => ({ data: { a: [1n] } }), /^Pass the number as text, or with JSON\.rawJSON/],
    ['a bare BigInt', () => ({ data: 1n }), /^Pass the number as text, or with JSON\.rawJSON/],
    ['a symbol', () => ({ data: Symbol('a') })],
    ['a circular object', () => ({ data: circular() })],
    ['a stream', () => ({ data: Readable.from(['a']) })],
    ['an object as a form', () => ({ data: { a: 1 }, ...FORM })],
    ['a symbol in params', () => ({ params: { a: Symbol('a') } })],
    ['a toJSON() that throws', () => ({ data: { toJSON: () => Promise.reject.call(undefined) } })],
  ])('is 500 for a fault of the code: %s', async (_, optionsOf, hint = /^Correct the application's code/) => {
    const { axios, arrived } = await setUp();
    const error = await errorOf(axios.request({ url: '/a', method: 'POST', ...optionsOf() }));
    expect(error).toMatchObject({ code: 'invalid_request', hint: expect.stringMatching(hint) });
    expect(answerOf(error)).toEqual({
      code: 'invalid_request',
      status: 500,
      message: 'Internal server error',
    });
    expect(arrived).toHaveLength(0);
  });

  it.each<[string, () => object]>([
    ['a body that is nested too deep', () => ({ data: deep() })],
    ['params that are nested too deep', () => ({ params: deep() })],
    ['half of a surrogate pair in params', () => ({ params: { a: '\ud83d' } })],
    ['an invalid date in params', () => ({ params: { a: new Date('soon') } })],
    ['an empty path parameter', () => ({ url: '/a/{id}', pathParams: { id: '' } })],
    ['a header that no header can be', () => ({ headers: { 'x-a': '\u4e2d' } })],
  ])('is 400 for what may come from a user: %s', async (_, optionsOf) => {
    const { axios, arrived } = await setUp();
    const error = await errorOf(axios.request({ url: '/a', method: 'POST', ...optionsOf() }));
    expect(answerOf(error)).toMatchObject({ code: 'invalid_request', status: 400 });
    expect(arrived).toHaveLength(0);
  });
});

describe('Input of resources', () => {
  class Input {
    @IsString()
    @Length(1, 5)
    name!: string;

    @IsOptional()
    @ArrayNotEmpty()
    @IsString({ each: true })
    kinds?: string[];
  }

  it('becomes an instance of its DTO class', () => {
    const input = validateInput(Input, { name: 'a', kinds: ['b'] });
    expect(input).toBeInstanceOf(Input);
    expect({ ...input }).toEqual({ name: 'a', kinds: ['b'] });
  });

  it.each<[unknown, string, string?]>([
    ['text', 'input', 'must be an object'],
    [null, 'input', 'must be an object'],
    [[], 'input', 'must be an object'],
    [{}, 'name', 'must be longer than or equal to 1 characters'],
    [{ name: 'a', other: 1 }, 'other', 'is not a known field'],
    [{ name: 'a', ['x'.repeat(99)]: 1 }, `${'x'.repeat(64)}…`, 'is not a known field'],
    [{ name: 'a', kinds: [] }, 'kinds'],
    [JSON.parse('{"name": "a", "__proto__": {}}'), 'input', 'holds a property name that is not allowed'],
  ])('is refused if it is %j', async (input, property, message = expect.any(String) as unknown as string) => {
    const refused = errorOf(Promise.resolve().then(() => validateInput(Input, input)));
    expect(await refused).toMatchObject({ code: 'invalid_request', faults: [{ property, message }] });
  });
});

describe('The timeout of a call', () => {
  it.each([
    [undefined, undefined],
    [null, undefined],
    [0, undefined],
    [1, 1],
    [86_400_000, 86_400_000],
  ])('%s means %s ms', (given, limit) => {
    expect(checkTimeout(given)).toBe(limit);
  });

  it.each([-1, 86_400_001, Infinity, NaN, '5', true, {}])('%s is refused', (given) => {
    expect(() => checkTimeout(given)).toThrow(ServiceRequestError);
  });
});
