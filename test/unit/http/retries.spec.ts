import { Agent, type RequestListener } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { ExchangeFault } from '../../../lib/exchange/exchange.types.js';
import { RetryBudget } from '../../../lib/http/retry-policy.js';
import { deadPort } from '../../helpers/loopback.js';
import { BEARER, errorOf, failing, setUp } from './setup.js';

/** An exchange that answers 503, and then with success. */
async function busy(retryAfter: string | undefined, random = 0) {
  const asked: unknown[] = [];
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  const answer = (request: unknown) =>
    asked.push(request) === 1 ? { status: 503, headers } : { data: { ok: true } };
  const made = await setUp({ random, answer });
  return { ...made, asked };
}

it.each([
  [[503], [5]],
  [[503, 503], [5]],
  [[503, 503, 503], []],
  [[503, 303], []],
  [[303], []],
  [[], [undefined]],
])('after %j the last retry gets its part of the budget back, if it succeeded', async (statuses, given) => {
  const back: unknown[] = [];
  const budget = { take: () => 5, giveBack: (taken: number) => void back.push(taken) };
  const { axios } = await setUp({
    listener: failing(...statuses),
    budget: budget as unknown as RetryBudget,
  });
  await axios.get('/a').catch(() => undefined);
  expect(back).toEqual(given);
});

describe('attempts of one call', () => {
  it.each([400, 403, 404, 409, 422])('surfaces %d at once', async (status) => {
    const { axios, arrived, renewals } = await setUp({ listener: failing(status, status) });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status });
    expect(arrived).toHaveLength(1);
    expect(renewals).toHaveLength(0);
  });

  it.each([429, 500, 502, 503, 504])('retries a GET after %d, twice at most', async (status) => {
    const once = await setUp({ listener: failing(status) });
    expect((await once.axios.get<unknown>('/a')).data).toEqual({ ok: true });
    const always = await setUp({ listener: failing(status, status, status, status) });
    expect(await errorOf(always.axios.get('/a'))).toMatchObject({ status });
    expect(always.arrived).toHaveLength(3);
  });

  it.each([500, 502, 503, 504])('surfaces %d of a POST, which may have been done', async (status) => {
    const { axios, arrived } = await setUp({ listener: failing(status) });
    expect(await errorOf(axios.post('/a', {}))).toMatchObject({ status });
    expect(arrived).toHaveLength(1);
  });

  it('retries a POST after 429', async () => {
    const { axios, arrived } = await setUp({ listener: failing(429) });
    await axios.post('/a', {});
    expect(arrived.map(({ body }) => body)).toEqual(['{}', '{}']);
  });

  it('has the token of the moment after a pause, as the one before may have ended', async () => {
    const tokens = ['first', 'second'];
    const { axios, arrived } = await setUp({
      listener: failing(503),
      credentialsNow: () => ({ Authorization: `Bearer ${tokens.shift()}` }),
    });
    await axios.get('/a');
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer second']);
  });

  it('and after the certificate was read again, which may take as long', async () => {
    const tokens = ['first', 'second'];
    const pages = ['<html><h1>400 No required SSL certificate was sent</h1></html>'];
    const { axios, arrived } = await setUp({
      listener: (_, response) => {
        const page = pages.shift();
        if (page === undefined) response.end('{}');
        else response.writeHead(400, { 'content-type': 'text/html' }).end(page);
      },
      identity: { certificate: undefined, reloadAfterRefusal: async () => true },
      credentialsNow: () => ({ Authorization: `Bearer ${tokens.shift()}` }),
    });
    await axios.get('/a');
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer second']);
  });

  it.each(['12345678901234567', '9'.repeat(310)])(
    'does not try again at once for Retry-After %s',
    async (value) => {
      const { axios, arrived } = await setUp({
        listener: (_, response) => response.writeHead(503, { 'retry-after': value }).end('{}'),
      });
      expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 503, retryAfter: 2 ** 31 });
      expect(arrived).toHaveLength(1);
    },
  );

  it('surfaces a Retry-After that does not fit into the deadline, at once', async () => {
    const { axios, arrived } = await setUp({
      listener: (_, response) => response.writeHead(503, { 'retry-after': '30' }).end('{}'),
    });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 503, retryAfter: 30 });
    expect(arrived).toHaveLength(1);
  });

  it.each(['0', 'Mon, 31 Dec 2001 12:00:00 GMT'])(
    'waits no less than the usual pause for Retry-After %s',
    async (value) => {
      const { axios, asked } = await busy(value);
      // Which does not fit into its time.
      const error = await errorOf(axios.get('/a', { timeout: 100 }));
      expect(error).toMatchObject({ status: 503, retryAfter: 0 });
      expect(asked).toHaveLength(1);
    },
  );

  it('waits before a retry; the wait ends with the caller, or with the module', async () => {
    const reason = new Error('mine');
    const caller = new AbortController();
    const [aborted, closed, waited] = await Promise.all([busy('9'), busy('9'), busy(undefined, 0.5)]);
    const mine = errorOf(aborted.axios.get('/a', { signal: caller.signal, timeout: 60_000 }));
    const cut = errorOf(closed.axios.get('/a', { timeout: 60_000 }));
    expect((await waited.axios.get<unknown>('/a')).data).toEqual({ ok: true });
    expect([aborted, closed, waited].map(({ asked }) => asked.length)).toEqual([1, 1, 2]);
    caller.abort(reason);
    closed.inFlight.close();
    expect(await mine).toBe(reason);
    expect(await cut).toMatchObject({ kind: 'closed' });
    expect([aborted, closed].map(({ asked }) => asked.length)).toEqual([1, 1]);
  });

  it('replays once with other headers after a 401, for any method', async () => {
    const { axios, arrived, renewals } = await setUp({
      listener: failing(401),
      renewed: { Authorization: 'Bearer new' },
    });
    await axios.post('/a', {});
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${BEARER}`, 'Bearer new']);
    expect(renewals[0]?.Authorization).toBe(`Bearer ${BEARER}`);
  });

  it('surfaces a 401 after one replay, and at once where there are no other headers', async () => {
    const replayed = await setUp({
      listener: failing(401, 401, 401),
      renewed: { Authorization: 'Bearer new' },
    });
    expect(await errorOf(replayed.axios.get('/a'))).toMatchObject({ status: 401 });
    expect(replayed.arrived).toHaveLength(2);
    const bound = await setUp({ listener: failing(401, 401) });
    expect(await errorOf(bound.axios.get('/a'))).toMatchObject({ status: 401 });
    expect(bound.arrived).toHaveLength(1);
  });

  it('retries a reset of a GET; a POST ends with outcomeUnknown and is counted once', async () => {
    let calls = 0;
    const listener: RequestListener = (request, response) => {
      if (calls++ === 0) request.socket.destroy();
      else response.end('{"ok":true}');
    };
    const get = await setUp({ listener });
    expect((await get.axios.get<unknown>('/a')).data).toEqual({ ok: true });
    calls = 0;
    const post = await setUp({ listener });
    expect(await errorOf(post.axios.post('/a', {}))).toMatchObject({ kind: 'reset', outcomeUnknown: true });
    expect(post.arrived).toHaveLength(1);
  });

  it('retries a refused connection for any method, and says that nothing was done', async () => {
    let attempts = 0;
    class CountingAgent extends Agent {
      override createConnection(...given: Parameters<Agent['createConnection']>) {
        attempts += 1;
        return super.createConnection(...given);
      }
    }
    const baseUrl = `http://127.0.0.1:${await deadPort()}`;
    const { axios } = await setUp({ baseUrl, agent: new CountingAgent() });
    expect(await errorOf(axios.post('/a', {}))).toMatchObject({ kind: 'refused', outcomeUnknown: false });
    expect(attempts).toBe(3);
  });

  it('ends by the deadline of the call, all attempts together', async () => {
    const { axios, arrived } = await setUp({ listener: () => undefined });
    expect(await errorOf(axios.get('/a', { timeout: 1_000 }))).toMatchObject({ kind: 'timeout' });
    expect(arrived).toHaveLength(1);
  });

  it('says the time limit of the call, not what was left of it for the last attempt', async () => {
    let requests = 0;
    const listener: RequestListener = (request) => {
      requests += 1;
      if (requests === 1) setTimeout(() => request.socket.destroy(), 60);
    };
    const { axios } = await setUp({ listener, retries: 1 });
    const { message } = (await errorOf(axios.get('/a', { timeout: 1_500 }))) as Error;
    expect([requests, message]).toEqual([2, expect.stringMatching(/no answer began within 1500 ms/)]);
  });

  it('stops retrying when the budget of the module is spent', async () => {
    const budget = new RetryBudget();
    while (budget.take(false) !== undefined);
    const { axios, arrived } = await setUp({ listener: failing(503, 503), budget });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 503 });
    expect(arrived).toHaveLength(1);
  });

  it.each<[ExchangeFault['kind'], number]>([
    ['timeout', 10],
    ['reset', 5],
  ])('takes more out of the budget after a time-out than after another fault: %s, %d', async (kind, cost) => {
    const budget = new RetryBudget();
    const answer = () => new ExchangeFault({ kind, phase: 'sent' });
    const { axios } = await setUp({ answer, budget, retries: 1 });
    await errorOf(axios.get('/a'));
    let left = 0;
    while (budget.take(false) !== undefined) left += 5;
    expect(500 - left).toBe(cost);
  });

  it('a connection lost to the race with an idle time-out is taken up again, once beside the retries', async () => {
    let sent = 0;
    const answer = () => {
      sent += 1;
      return new ExchangeFault({ kind: 'reset', phase: 'sent', reusedSocket: true });
    };
    const { axios } = await setUp({ answer, retries: 2 });
    expect(await errorOf(axios.get('/banks/v1'))).toMatchObject({ kind: 'reset' });
    expect(sent).toBe(1 + 1 + 2);
  });
});
