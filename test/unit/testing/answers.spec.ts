import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ServiceSimulator } from '../../../lib/testing/simulator.js';
import { call, type CallOptions } from '../../helpers/plain-client.js';
import { startSimulator } from '../../helpers/simulators.js';

describe('the answers of simulator.answer()', () => {
  let simulator: ServiceSimulator;
  beforeAll(async () => {
    simulator = await startSimulator({ basePath: '/api' });
  });
  afterAll(() => simulator.stop());

  const send = (method: string, path: string, options: CallOptions = {}) =>
    call(simulator, simulator.urls.sandboxUrl + path, {
      method,
      headers: { 'service-app-token': simulator.appToken, 'content-type': 'application/json' },
      ...options,
    });

  it('have what stands in the path, the query and the body', async () => {
    simulator.answer('put', '/accounts/v1/{id}/notes/{note}', async ({ pathParams, params, data }) => ({
      status: 202,
      headers: { 'x-page': String(params.page) },
      json: { ...pathParams, ids: params.id, data },
    }));
    const reply = await send('PUT', '/accounts/v1/a%2Fb%20c/notes/%C3%BC/?page=2&id=1&id=2', {
      body: '{"text":"x"}',
    });
    expect(reply).toMatchObject({ status: 202, headers: { 'x-page': '2' } });
    expect(reply.json).toEqual({ id: 'a/b c', note: 'ü', ids: ['1', '2'], data: { text: 'x' } });
    expect(simulator.requests.at(-1)).toMatchObject({ status: 202 });
  });

  it('come after the check of the credentials', async () => {
    const asked: string[] = [];
    simulator.answer('GET', '/secret/v1', ({ path }) => ({ json: asked.push(path) }));
    expect((await send('GET', '/secret/v1', { headers: {} })).status).toBe(401);
    expect(asked).toEqual([]);
    expect((await send('GET', '/secret/v1')).status).toBe(200);
  });

  it('are bytes or nothing too', async () => {
    const headers = { 'content-type': 'application/pdf' };
    simulator.answer('GET', '/statements/v1/{id}', { body: Uint8Array.from([37, 80, 68, 70]), headers });
    simulator.answer('DELETE', '/statements/v1/{id}', { status: 204 });
    expect(await send('GET', '/statements/v1/1')).toMatchObject({ status: 200, body: '%PDF', headers });
    expect(await send('DELETE', '/statements/v1/1')).toMatchObject({ status: 204, body: '' });
    expect(await send('POST', '/statements/v1/1')).toMatchObject({
      status: 405,
      headers: { allow: 'DELETE, GET' },
    });
    expect((await send('GET', '/statements/v1')).status).toBe(404);
    expect((await send('GET', '/statements/v1/%E0')).status).toBe(404);
  });

  it('take the place of earlier ones and of those of the simulator, method by method', async () => {
    simulator.answer('GET', '/banks/v1', { json: ['One'] });
    simulator.answer('GET', '/banks/v1', { json: ['Two'] });
    simulator.answer('GET', '/customers/v1', { json: [] });
    simulator.answer('GET', '/customers/v1/me', { json: 'me' });
    simulator.answer('GET', '/customers/v1/{id}', ({ pathParams }) => ({ json: pathParams }));
    simulator.answer('GET', '/{any}/v1/{thing}.pdf', ({ pathParams }) => ({ json: pathParams }));
    expect((await send('GET', '/banks/v1/')).json).toEqual(['Two']);
    expect((await send('GET', '/customers/v1')).json).toEqual([]);
    expect((await send('GET', '/customers/v1/me/')).json).toBe('me');
    expect((await send('GET', '/customers/v1/you')).json).toEqual({ id: 'you' });
    expect((await send('GET', '/files/v1/a.pdf')).json).toEqual({ any: 'files', thing: 'a' });
    expect((await send('POST', '/customers/v1', { body: '{"app_user_id":"u"}' })).status).toBe(201);
  });

  it('are those of GET to HEAD too, without the body', async () => {
    simulator.answer('GET', '/pages/v1', { json: ['One'], headers: { 'x-pages': '1' } });
    const head = { status: 200, body: '', headers: { 'content-length': '7', 'x-pages': '1' } };
    expect(await send('HEAD', '/pages/v1')).toMatchObject(head);
    simulator.answer('HEAD', '/pages/v1', { status: 204 });
    expect((await send('HEAD', '/pages/v1')).status).toBe(204);
    expect(simulator.requests.at(-1)).toMatchObject({ method: 'HEAD', status: 204 });
  });

  it('fail as others do', async () => {
    simulator.answer('GET', '/late/v1', { json: 'late' });
    simulator.fail({ path: '/api/late/v1', fault: { delayMs: 1 } });
    expect((await send('GET', '/late/v1')).json).toBe('late');
    simulator.fail({ path: '/api/late/v1', fault: { status: 503 } });
    expect((await send('GET', '/late/v1')).status).toBe(503);
  });

  it('show a mistake in a function to the test', async () => {
    const mistakes: [string, () => object][] = [
      ['of the test', () => Promise.reject(new Error('of the test'))],
      ["'no Error'", () => ({ json: AbortSignal.abort('no Error').throwIfAborted() })],
      ["and not with 'id'", () => ({ id: 1 })],
      ["and not with 'undefined'", () => undefined as unknown as object],
      ["from 200 to 599, and not '201'", () => ({ status: '201' })],
    ];
    for (const [message, mistake] of mistakes) {
      simulator.answer('GET', '/wrong/v1', mistake);
      expect(await send('GET', '/wrong/v1')).toMatchObject({
        status: 500,
        json: { status: 'SIMULATOR_FAULT', message: expect.stringContaining(message) },
      });
      const { error } = simulator.requests.at(-1) ?? {};
      expect(error).toContain(message);
      expect(error).toMatch(/^The simulator's route GET \/wrong\/v1 failed: /);
    }
  });

  it.each<[string, string, object, string]>([
    ['GET', 'accounts/v1', {}, "a path is as '/accounts/v1/{id}'"],
    ['GET', '/accounts/v1?a=1', {}, 'a path is as'],
    ['GET', '/accounts/:id', {}, 'a path is as'],
    ['GET', '/accounts/{}', {}, 'a path is as'],
    ['GET /x', '/x', {}, "there is no method 'GET /x'"],
    ['FETCH', '/x', {}, "there is no method 'FETCH'"],
    ['GET', '/x', { jsn: 1 }, "and not with 'jsn'"],
    ['GET', '/x', { json: null, body: '' }, 'an answer has json or body, and not both'],
    ['GET', '/x', { body: { a: 1 } }, 'body is text or bytes. What is to be sent as JSON stands in json'],
    ['GET', '/x/*', {}, 'where {id} stands for any text'],
    ['GET', '/x', { status: 42 }, 'a status is a whole number from 200 to 599, and not 42'],
    ['GET', '/x', { status: 200.5 }, 'and not 200.5'],
    ['GET', '/x', { status: '201' }, "and not '201'"],
  ])('refuse %s %s %j', (method, path, answer, message) => {
    const add = () => simulator.answer(method, path, answer);
    expect(add).toThrow(TypeError);
    expect(add).toThrow(`simulator.answer(): `);
    expect(add).toThrow(message);
  });

  it.each<Record<string, string>>([{ 'x a': '1' }, { 'x-a': 'one\ntwo' }])(
    'refuse the headers %j',
    (headers) => {
      expect(() => simulator.answer('GET', '/x', { headers })).toThrow(
        /: (Header name must|Invalid character in header)/,
      );
    },
  );
});
