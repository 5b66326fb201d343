import { expect, it } from '@jest/globals';
import { type RequestListener } from 'node:http';
import { gzipSync } from 'node:zlib';
import { errorOf, setUp } from './setup.js';

/** What a host got from its own caller, and passes on. */
const PASSED_ON = { 'Accept-Encoding': 'zstd', Range: 'bytes=0-4' };

/** A server of files: in parts, and compressed as it may. */
const files: RequestListener = ({ headers }, response) => {
  const whole = Buffer.from('{"iban":"x"}');
  const part = /^bytes=0-(\d+)$/.exec(headers.range ?? '');
  const body = part ? whole.subarray(0, Number(part[1]) + 1) : whole;
  const accepted = headers['accept-encoding'] ?? '';
  const coding = accepted.includes('gzip') ? 'gzip' : accepted.includes('zstd') ? 'zstd' : undefined;
  response.writeHead(part ? 206 : 200, coding ? { 'content-encoding': coding } : {});
  response.end(coding === 'gzip' ? gzipSync(body) : body);
};

it.each(['get', 'post'] as const)('JSON comes whole, and encoded as we can read it: %s', async (method) => {
  const { axios, arrived } = await setUp({ listener: files });
  const { data } = await axios.request<unknown>({ url: '/a', method, headers: PASSED_ON });
  expect(data).toEqual({ iban: 'x' });
  const { range, 'accept-encoding': accepted } = arrived[0]?.headers ?? {};
  expect([range, accepted]).toEqual([undefined, 'gzip, deflate, br']);
});

it('of bytes a part can be asked for, and is not compressed then', async () => {
  const { axios } = await setUp({ listener: files });
  const { status, data } = await axios.get<Buffer>('/a', { headers: PASSED_ON, responseType: 'arraybuffer' });
  expect([status, data.toString()]).toEqual([206, '{"iba']);
});

it.each([
  ['GET', '{"a":1}', false],
  ['POST', '{"a":1}', true],
  ['POST', '', true],
])('a part that nobody asked for is no answer: %s %j', async (method, body, outcomeUnknown) => {
  const { axios } = await setUp({ listener: (_, response) => response.writeHead(206).end(body) });
  const error = await errorOf(axios.request({ url: '/a', method }));
  expect(error).toMatchObject({ code: 'invalid_response', status: 206, outcomeUnknown });
  const carriedOut = outcomeUnknown ? ' By its status the call was carried out.' : '';
  const message = `${method} /a: HTTP 206, with a part of a body, which was not asked for.${carriedOut}`;
  expect((error as Error).message).toBe(message);
  expect(error).toMatchObject({ hint: expect.stringContaining('cache or proxy'), options: [] });
});

it.each(['arraybuffer', 'text'] as const)('nor is it as %s', async (responseType) => {
  const { axios } = await setUp({ listener: (_, response) => response.writeHead(206).end('%PDF') });
  const error = await errorOf(axios.get('/a', { responseType }));
  expect(error).toMatchObject({ code: 'invalid_response', status: 206 });
});
