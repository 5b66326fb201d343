import { expect, it } from '@jest/globals';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { SILENT } from '../../../../lib/exchange/io.js';
import { type Telemetry } from '../../../../lib/telemetry/telemetry.js';
import { settle } from '../../../helpers/fake-clock.js';
import { setUp } from './set-up.js';

const error = new ServiceTokenError({
  code: 'token_refused',
  message: 'It is down.',
  hint: 'Check urls.authUrl.',
  options: ['urls.authUrl'],
  scope: 'api',
});

it('logs failures that no caller gets, and no others', async () => {
  const lines: string[] = [];
  const log = { ...SILENT, warn: (line: string) => void lines.push(line) };
  const { cache, source, clock, filled } = setUp({ log });
  const waiting = cache.get('api');
  await settle();
  source.last.fail(error);
  await expect(waiting).rejects.toMatchObject({ code: 'token_refused' });
  expect(lines).toEqual([]);
  await filled();
  await clock.advance(43_000);
  for (const reason of [error, new Error('not ours, so it may hold anything')]) {
    cache.use('api');
    await settle();
    source.last.fail(reason);
    await settle();
    await clock.advance(3_000);
  }
  expect(source.requests).toHaveLength(4);
  expect(lines).toEqual([
    'A token request that no caller waits for failed: token_refused: It is down. Check urls.authUrl.',
  ]);
});

it('tells its source whether a caller waits', async () => {
  const { cache, source, clock, filled } = setUp();
  await filled();
  expect(source.last.context.isAwaited()).toBe(false);
  await clock.advance(45_000);
  cache.use('api');
  await settle();
  const { isAwaited } = source.last.context;
  expect([source.requests.length, isAwaited()]).toEqual([2, false]);
  await clock.advance(9_500);
  const waiting = cache.get('api');
  await settle();
  expect([source.requests.length, isAwaited()]).toEqual([2, true]);
  source.last.grant(60);
  await waiting;
});

it('a caller that joins a renewal at its end has all the time of a request', async () => {
  const { cache, source, clock, filled } = setUp();
  await filled();
  await clock.advance(45_000);
  cache.use('api');
  await clock.advance(9_500);
  const waiting = cache.get('api');
  await clock.advance(9_500);
  expect(source.requests).toHaveLength(3);
  source.last.grant(60, 'late');
  expect((await waiting).accessToken).toBe('late');
});

it("counts requests, failures by their code, and hits, with the module's attributes", async () => {
  const counted: unknown[] = [];
  const counter = (name: string) => ({
    add: (value: number, attributes: unknown) => counted.push([name, value, attributes]),
  });
  const attributes = { 'nestjs_service.module': 'ksa' };
  const telemetry = { attributes, tokenRequests: counter('requests'), tokenCacheHits: counter('hits') };
  const { cache, source, filled } = setUp({ telemetry: telemetry as unknown as Telemetry });
  await filled();
  for (const reason of [error, new Error('other')]) {
    const waiting = cache.get('customer.c1');
    await settle();
    source.last.fail(reason);
    await expect(waiting).rejects.toThrow(reason.message);
  }
  cache.use('api');
  // A token of another process is no request to the endpoint.
  const shared = cache.get('customer.c1');
  await settle();
  source.last.grant(3600, 'token', 0);
  await shared;
  expect(counted).toEqual([
    ['requests', 1, attributes],
    ['requests', 1, { ...attributes, 'error.type': 'token_refused' }],
    ['requests', 1, { ...attributes, 'error.type': 'unknown' }],
    ['hits', 1, attributes],
  ]);
});
