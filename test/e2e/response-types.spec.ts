import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type IncomingHttpHeaders } from 'node:http';
import { gzipSync } from 'node:zlib';
import {
  ServiceApiError,
  ServiceConnectionError,
  ServiceHttpService,
  ServiceRequestError,
} from 'nestjs-service';
import { httpServer } from '../helpers/loopback.js';
import { rejection, startModule, type StartedModule, startStubbed } from '../helpers/start-module.js';

/** Not UTF-8, and not JSON. */
const PDF = Uint8Array.from([0x25, 0x50, 0x44, 0x46, 0x00, 0xff, 0xfe, 0xc3, 0x28]);
const CSV = 'date;sum\n2026-11-24;1,5\n';
const FAILURE = { status: 'GONE', message: 'No such statement' };

describe('responseType', () => {
  let server: Awaited<ReturnType<typeof httpServer>>;
  let api: StartedModule;
  const asked: IncomingHttpHeaders[] = [];

  beforeAll(async () => {
    server = await httpServer((request, response) => {
      asked.push(request.headers);
      if (request.url === '/csv') return response.end(CSV);
      if (request.url === '/csv-of-windows') return response.end(`\ufeff${CSV}`);
      if (request.url?.startsWith('/letters')) {
        const charset = new URL(request.url, 'http://x').searchParams.get('charset');
        response.writeHead(200, { 'content-type': `text/csv; header=present; charset=${charset}` });
        return response.end(Uint8Array.from([0xe3, 0xcd]));
      }
      if (request.url === '/page') return response.end('<!doctype html>');
      if (request.url === '/json') return response.end('{"a":1}');
      if (request.url === '/none') return response.writeHead(204).end();
      if (request.url === '/gone') return response.writeHead(404).end(JSON.stringify(FAILURE));
      if (request.url === '/gone-gzip') {
        response.writeHead(404, { 'content-encoding': 'gzip' });
        return response.end(gzipSync(JSON.stringify(FAILURE)));
      }
      if (request.url === '/gone-long') return response.writeHead(404).end(' '.repeat(65_537));
      if (request.url === '/moved') {
        return response.writeHead(302, { location: 'https://elsewhere.example/' }).end(CSV);
      }
      return response.end(PDF);
    });
    api = await startModule({
      environment: 'sandbox',
      authentication: 'app-token',
      urls: { sandboxUrl: server.url },
      appToken: 'a-1',
      http: { maxResponseBytes: 23 },
    });
  });
  afterAll(async () => {
    await api.module.close();
    await server.close();
  });

  it('bytes: a Uint8Array of its own memory, as the service sent it', async () => {
    const bytes = await api.http.get<Uint8Array>('/pdf', { responseType: 'bytes' });
    expect(bytes).toStrictEqual(PDF);
    expect(bytes.buffer.byteLength).toBe(PDF.length);
    expect(asked.at(-1)?.accept).toBe('*/*');
    const { data, status } = await api.http.response('/pdf', { method: 'POST', responseType: 'bytes' });
    expect([data, status]).toStrictEqual([PDF, 200]);
    expect(await api.http.delete('/none', { responseType: 'bytes' })).toStrictEqual(new Uint8Array());
  });

  it('text: a string, also of JSON, for a parser too', async () => {
    const options = { responseType: 'text', maxResponseBytes: 100 } as const;
    expect(await api.http.get('/csv', options)).toBe(CSV);
    expect(await api.http.post('/json', {}, options)).toBe('{"a":1}');
    const lines = await api.http.get('/csv', { ...options, parse: (body) => String(body).split('\n') });
    expect(lines[1]).toBe('2026-11-24;1,5');
    expect(await api.http.put('/none', {}, options)).toBe('');
    expect(await api.http.get('/csv-of-windows', options)).toBe(CSV);
  });

  it('is named where the answer is neither JSON nor a page', async () => {
    const error = (await rejection(api.http.get('/csv', { maxResponseBytes: 100 }))) as ServiceApiError;
    expect(error.code).toBe('invalid_response');
    expect(error.hint).toMatch(/responseType 'text' or 'bytes'.*SERVICE_SANDBOX_URL/);
    const page = (await rejection(api.http.get('/page', { maxResponseBytes: 100 }))) as ServiceApiError;
    expect(page.hint).toMatch(/^Check .*SERVICE_SANDBOX_URL.*has one\.$/);
  });

  it.each([
    ['ISO-8859-1', 'ãÍ'],
    ['"windows-1256"', 'مح'],
  ])('text in %s, as the content type says', async (charset, text) => {
    expect(await api.http.get('/letters', { params: { charset }, responseType: 'text' })).toBe(text);
  });

  it('text in a charset that is not known names bytes', async () => {
    const error = await rejection(
      api.http.get('/letters', { params: { charset: 'x-own' }, responseType: 'text' }),
    );
    expect(error).toMatchObject({
      code: 'invalid_response',
      hint: expect.stringContaining("responseType 'bytes'"),
    });
  });

  it("reads an error's body as JSON all the same", async () => {
    for (const responseType of ['text', 'bytes'] as const) {
      const error = await rejection(api.http.get('/gone', { responseType, maxResponseBytes: 100 }));
      expect(error).toBeInstanceOf(ServiceApiError);
      expect(error).toMatchObject({ status: 404, message: FAILURE.message, body: FAILURE });
    }
  });

  it('ends an answer that is larger than maxResponseBytes, of the module or of the call', async () => {
    for (const options of [{}, { maxResponseBytes: 22 }]) {
      const error = await rejection(api.http.get('/csv', { ...options, responseType: 'text' }));
      expect(error).toBeInstanceOf(ServiceConnectionError);
      expect(error).toMatchObject({
        kind: 'too_large',
        message: expect.stringContaining(
          'larger than http.maxResponseBytes, or maxResponseBytes of the call',
        ),
      });
    }
    expect(await api.http.get('/csv', { maxResponseBytes: 24, responseType: 'text' })).toBe(CSV);
  });

  it('reads an error that is larger, up to 64 KiB, also after decompression', async () => {
    for (const path of ['/gone', '/gone-gzip']) {
      const error = await rejection(api.http.get(path, { maxResponseBytes: 5 }));
      expect(error).toMatchObject({ status: 404, body: FAILURE });
    }
    const error = await rejection(api.http.get('/gone-long', { maxResponseBytes: 5 }));
    expect(error).toMatchObject({ kind: 'too_large' });
  });

  it('names a redirect whose page is larger', async () => {
    const error = await rejection(api.http.get('/moved', { maxResponseBytes: 5 }));
    expect(error).toMatchObject({ kind: 'redirect', location: 'https://elsewhere.example' });
  });

  it.each<[string, object, string]>([
    [
      'a stream',
      { responseType: 'stream' },
      "responseType must be 'json', 'text' or 'bytes'; to stream, use a client of your own",
    ],
    ['a type that there is not', { responseType: 'blob' }, "responseType must be 'json', 'text' or 'bytes'"],
    [
      'a limit that is none',
      { maxResponseBytes: 0 },
      'maxResponseBytes must be a whole number from 1 to 524288000',
    ],
  ])('refuses %s before anything is sent', async (_, options, message) => {
    const before = asked.length;
    const error = await rejection(api.http.get('/pdf', options));
    expect(error).toBeInstanceOf(ServiceRequestError);
    expect((error as Error).message).toContain(message);
    expect(asked).toHaveLength(before);
  });

  it('doubles pass bytes unchanged', async () => {
    const { module } = await startStubbed({ http: { get: () => PDF, request: () => CSV } });
    const http = module.get(ServiceHttpService);
    expect(await http.get('/pdf', { responseType: 'bytes' })).toStrictEqual(PDF);
    expect(await http.post('/csv', {}, { responseType: 'text' })).toBe(CSV);
    await module.close();
  });
});
