import { describe, expect, it } from '@jest/globals';
import { createReadStream } from 'node:fs';
import { Duplex, PassThrough, Readable, Transform } from 'node:stream';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { checkTimeout } from '../../../lib/exchange/call-limits.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { errorOf, setUp } from './setup.js';

describe('a stream as body', () => {
  /** As the form-data package's class is made. */
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
  ])('%s is refused, and stays as it is', async (_, make, message) => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService({ axiosRef: axios } as never);
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

describe('a body', () => {
  it.each(['postForm', 'putForm', 'patchForm'] as const)('may be a form: %s', async (method) => {
    const { axios, arrived } = await setUp();
    const form = new FormData();
    form.set('name', 'ü');
    form.set('file', new Blob(['bytes'], { type: 'text/x' }));
    await axios[method]('/a', form);
    expect(arrived[0]?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(arrived[0]?.body).toMatch(/name="name"\r\n\r\nü[^]*bytes/);
  });

  it('is the text as it is without transforms of axios', async () => {
    const { axios, arrived } = await setUp();
    await axios.post('/a', 'text', { transformRequest: undefined });
    await axios.post('/a', 'text', { transformRequest: null as never });
    expect(arrived.map(({ body }) => body)).toEqual(['text', 'text']);
  });

  const AS_FORM = /send URLSearchParams or FormData$/;
  it.each<[string, unknown, object, RegExp]>([
    ['as a form', { a: 1 }, { headers: { 'content-type': 'application/x-www-form-urlencoded' } }, AS_FORM],
    ['as a form with files', { a: 1 }, { headers: { 'content-type': 'multipart/form-data' } }, AS_FORM],
    ['made a function of', {}, { transformRequest: () => () => 5 }, /^is of a kind that cannot be sent$/],
    ['with a BigInt', { a: 1n }, {}, /BigInt/],
  ])('that is an object is refused, in words: %s', async (_, data, options, message) => {
    const { axios, arrived } = await setUp();
    expect(await errorOf(axios.post('/a', data, options))).toMatchObject({
      code: 'invalid_request',
      faults: [{ property: 'data', message: expect.stringMatching(message) }],
    });
    expect(arrived).toHaveLength(0);
  });

  it("of a host's transform that throws is its own error", async () => {
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
  ])('or params that are %s: an error, and nothing is sent', async (_, make) => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService({ axiosRef: axios } as never);
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

  it('that is deep, or has one object twice, is sent', async () => {
    const { axios, arrived } = await setUp();
    const shared = { a: 1 };
    for (const data of [deep(2_000), { one: shared, other: shared }]) {
      await axios.post('/a', data);
      expect(arrived.pop()?.body).toBe(JSON.stringify(data));
    }
  });
});

describe('a time limit', () => {
  it.each([
    [undefined, undefined],
    [null, undefined],
    [0, undefined],
    [1, 1],
    [86_400_000, 86_400_000],
  ])('of %s is %s ms', (given, limit) => {
    expect(checkTimeout(given)).toBe(limit);
  });

  it.each([-1, 86_400_001, Infinity, NaN, '5', true, {}])('of %s is refused', (given) => {
    expect(() => checkTimeout(given)).toThrow(ServiceRequestError);
  });
});
