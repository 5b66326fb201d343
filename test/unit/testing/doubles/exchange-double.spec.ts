import { expect, it } from '@jest/globals';
import { ExchangeFault, type ExchangeRequest } from '../../../../lib/exchange/exchange.types.js';
import { exchangeDouble } from '../../../../lib/testing/doubles/exchange-double.js';

const request = (more: Partial<ExchangeRequest> = {}): ExchangeRequest =>
  ({
    url: new URL('https://service.invalid/a'),
    method: 'GET',
    headers: { accept: 'application/json' },
    timeoutMs: 5_000,
    maxResponseBytes: 1_000,
    ...more,
  }) as ExchangeRequest;
const never = () => new Promise<never>(() => undefined);

it.each([
  [{}, 204, ''],
  [{ data: 'text' }, 200, '"text"'],
  [{ data: { at: new Date(0) }, status: 201 }, 201, '{"at":"1970-01-01T00:00:00.000Z"}'],
  [{ data: Buffer.from('<html>'), status: 502 }, 502, '<html>'],
])('answers %j as the service would send it', async (answer, status, body) => {
  const response = await exchangeDouble(() => answer)(request());
  expect([response.status, response.body.toString()]).toEqual([status, body]);
});

it('answers a text as it is where no JSON is asked for, and headers in lower case', async () => {
  const answer = { data: 'text', headers: { 'X-Total': '7', 'x-none': undefined } };
  const response = await exchangeDouble(async () => answer)(request({ headers: { accept: '*/*' } }));
  expect(response.body.toString()).toBe('text');
  expect(response.headers).toEqual({ 'content-type': 'application/json', 'x-total': '7' });
});

it('rejects with a fault that is its answer, and with what is thrown', async () => {
  const fault = new ExchangeFault({ kind: 'reset', phase: 'sent' });
  await expect(exchangeDouble(() => fault)(request())).rejects.toBe(fault);
  const thrown = new Error('of the test');
  await expect(exchangeDouble(() => Promise.reject(thrown))(request())).rejects.toBe(thrown);
});

it.each([{ timeoutMs: 5 }, { attemptTimeoutMs: 5 }])('keeps to the time limit: %j', async (limit) => {
  const expected = { kind: 'timeout', phase: 'sent', limitMs: 5 };
  await expect(exchangeDouble(never)(request(limit))).rejects.toMatchObject(expected);
});

it('keeps to the signal', async () => {
  const controller = new AbortController();
  const waiting = exchangeDouble(never)(request({ signal: controller.signal }));
  const reason = new Error('mine');
  controller.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});
