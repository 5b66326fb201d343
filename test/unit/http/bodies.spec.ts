import { describe, expect, it } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import { createReadStream } from 'node:fs';
import { Duplex, PassThrough, Readable, Transform } from 'node:stream';
import { firstValueFrom } from 'rxjs';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { errorOf, setUp } from './setup.js';

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

const STREAMS: [string, () => object][] = [
  ['a Readable', () => Readable.from(['a', 'b'])],
  ['a Readable of objects', () => Readable.from([{ a: 1 }, 2])],
  ['a Duplex', () => Duplex.from(['a'])],
  ['a Transform', () => new Transform({ transform: (chunk, _, done) => done(null, chunk) })],
  ['a file', () => createReadStream(import.meta.filename)],
  ['a web stream', () => new Blob(['a']).stream()],
  ['an async generator', () => generated()],
  ['anything with pipe', () => ({ pipe: () => undefined })],
  ['anything with getReader', () => ({ getReader: () => undefined })],
  ['a form of the form-data package', () => new PackageForm()],
];

const listeners = (value: object): unknown =>
  value instanceof Readable ? value.eventNames().map((name) => [name, value.listenerCount(name)]) : [];

describe('a stream as body', () => {
  it.each(STREAMS)('%s is refused, and stays as it is', async (name, make) => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService({ axiosRef: axios } as never);
    const message = name.includes('form-data')
      ? /use the global FormData/
      : /send a string, Buffer, FormData or Blob.*auth\.httpsAgent and auth\.authorizationHeaders\(\)/;
    const headers: Record<string, string>[] = [
      {},
      { 'content-type': 'application/json' },
      { 'content-type': 'multipart/form-data' },
    ];
    for (const given of headers) {
      const stream = make();
      const before = listeners(stream);
      for (const send of [
        () => axios.post('/a', stream, { headers: given }),
        () => axios.request({ url: '/a', method: 'PUT', data: stream, headers: given }),
        () => http.patch('/a', stream, { headers: given }),
        () => http.delete('/a', { data: stream, headers: given }),
      ]) {
        const error = await errorOf(send());
        expect(error).toBeInstanceOf(ServiceRequestError);
        expect(error).toMatchObject({
          faults: [{ property: 'data', message: expect.stringMatching(message) }],
        });
      }
      expect(listeners(stream)).toEqual(before);
      if (stream instanceof Readable) {
        expect([stream.destroyed, stream.readableFlowing, stream.readableDidRead]).toEqual([
          false,
          null,
          false,
        ]);
        stream.destroy();
      }
      if (stream instanceof ReadableStream) expect(stream.locked).toBe(false);
    }
    expect(arrived).toHaveLength(0);
  });

  it('is refused too where an object literal is one, or a transform of the host makes one', async () => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService({ axiosRef: axios } as never);
    expect(await errorOf(http.post('/a', { [Symbol.asyncIterator]: generated }))).toBeInstanceOf(
      ServiceRequestError,
    );
    const transformRequest = () => Readable.from(['a']);
    expect(await errorOf(axios.post('/a', {}, { transformRequest }))).toMatchObject({
      faults: [{ message: expect.stringMatching(/is a stream/) }],
    });
    expect(arrived).toHaveLength(0);
  });
});

describe('forms', () => {
  it.each(['postForm', 'putForm', 'patchForm'] as const)('%s sends a FormData', async (method) => {
    const { axios, arrived } = await setUp();
    const form = new FormData();
    form.set('name', 'ü');
    form.set('file', new Blob(['bytes'], { type: 'text/x' }));
    await axios[method]('/a', form);
    expect(arrived[0]?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(arrived[0]?.body).toMatch(/name="name"\r\n\r\nü[^]*bytes/);
  });

  it.each(['application/x-www-form-urlencoded', 'multipart/form-data'])(
    'of objects are refused, in words: %s',
    async (type) => {
      const { axios, arrived } = await setUp();
      const headers = { 'content-type': type };
      expect(await errorOf(axios.post('/a', { a: '1 2' }, { headers }))).toMatchObject({
        code: 'invalid_request',
        faults: [{ property: 'data', message: expect.stringMatching(/send URLSearchParams or FormData$/) }],
      });
      await axios.post('/a', new URLSearchParams({ a: '1 2' }));
      expect(arrived).toMatchObject([
        { body: 'a=1+2', headers: { 'content-type': 'application/x-www-form-urlencoded;charset=utf-8' } },
      ]);
    },
  );
});

describe("a host's transform", () => {
  it('that throws is the outcome, with its own error', async () => {
    const { axios } = await setUp();
    const mine = new Error('mine');
    const transformRequest = () => {
      throw mine;
    };
    expect(await errorOf(axios.post('/a', {}, { transformRequest }))).toBe(mine);
  });

  it.each([
    ['URLSearchParams', () => new URLSearchParams({ a: '1 2' }), 'a=1+2'],
    ['an ArrayBuffer', () => new TextEncoder().encode('bytes').buffer, 'bytes'],
  ])('may make %s', async (_, transformRequest, body) => {
    const { axios, arrived } = await setUp();
    await axios.post('/a', {}, { transformRequest });
    expect(arrived[0]?.body).toBe(body);
  });

  it('may be left out: the body is sent as it is', async () => {
    const { axios, arrived } = await setUp();
    await axios.post('/a', 'text', { transformRequest: undefined });
    await axios.post('/a', 'text', { transformRequest: null as never });
    expect(arrived.map(({ body }) => body)).toEqual(['text', 'text']);
  });

  it('that makes something else than a body is refused', async () => {
    const { axios, arrived } = await setUp();
    expect(await errorOf(axios.post('/a', {}, { transformRequest: () => () => 5 }))).toMatchObject({
      faults: [{ property: 'data', message: 'is of a kind that cannot be sent' }],
    });
    expect(arrived).toHaveLength(0);
  });
});

describe('what contains itself or is nested deep', () => {
  const circular = (): unknown => {
    const value: Record<string, unknown> = { a: 1 };
    return Object.assign(value, { list: [value] });
  };
  const deep = (levels: number): unknown => {
    let value: unknown = 1;
    for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? { a: value } : [value];
    return value;
  };
  class Node {
    next: Node = this;
  }

  it.each<[string, () => unknown]>([
    ['circular', circular],
    ['circular, of a class', () => new Node()],
    ['circular, from toJSON', () => ({ a: { toJSON: circular } })],
    ['20,000 deep', () => deep(20_000)],
  ])('is an error as body and as params, and nothing is sent: %s', async (_, make) => {
    const { axios, arrived } = await setUp();
    const httpService = new HttpService(axios);
    const http = new ServiceHttpService(httpService);
    const calls = [
      http.post('/a', make()),
      http.request({ url: '/a', method: 'PUT', data: make() }),
      http.delete('/a', { data: make() }),
      axios.patch('/a', make()),
      axios({ url: '/a', method: 'post', data: make() }),
      firstValueFrom(httpService.post('/a', make())),
      http.get('/a', { params: { in: [make()] } }),
      axios.get('/a', { params: { in: [make()] } }),
    ];
    for (const [index, call] of calls.entries()) {
      const outcome = await call.catch((error: unknown) => error);
      // Axios writes a class's object in params as text, by its own rules.
      if (index >= 6 && _ !== 'circular' && !_.endsWith('deep')) continue;
      expect(outcome).toBeInstanceOf(Error);
    }
    expect(arrived.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  it('is sent where it can be written', async () => {
    const { axios, arrived } = await setUp();
    const value = deep(2_000);
    const shared = { a: 1 };
    await axios.post('/a', value);
    await axios.post('/a', { one: shared, other: shared });
    expect(arrived.map(({ body }) => body)).toEqual([
      JSON.stringify(value),
      '{"one":{"a":1},"other":{"a":1}}',
    ]);
  });

  it('a body of which no JSON can be made is refused', async () => {
    const { axios } = await setUp();
    expect(await errorOf(axios.post('/a', { a: 1n }))).toMatchObject({
      faults: [{ property: 'data', message: expect.stringContaining('BigInt') }],
    });
  });
});
