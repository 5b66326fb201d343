import { describe, expect, it, jest } from '@jest/globals';
import globalAxios from 'axios';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { Agent, type RequestListener } from 'node:http';
import { ExchangeFault, type ExchangeRequest } from '../../../lib/exchange/exchange.types.js';
import { type RetryBudget } from '../../../lib/http/retry-policy.js';
import { type GivenAnswer } from '../../../lib/testing/doubles/exchange-double.js';
import { nextTurn } from '../../../lib/time/immediate.js';
import { BEARER, errorOf, failing, setUp, type Setup } from './setup.js';

const KEY = 'k-1';
const config = { idempotencyKey: KEY } as object;
const keyed = (setup: Setup) => setUp({ idempotencyHeader: 'x-key', ...setup });
const page = '<html><h1>Access denied</h1></html>';

/** Answers 503, then as it is told. */
const busyThen = (listener: RequestListener): RequestListener => {
  let left = 1;
  return (request, response) => {
    if (left-- > 0) response.writeHead(503).end('{}');
    else listener(request, response);
  };
};

describe('a POST with a key, of which an earlier attempt may have been carried out', () => {
  it.each([400, 401, 403, 409, 429])('says so where the last one is answered %d', async (status) => {
    const { axios } = await keyed({ listener: failing(503, status), retries: 1 });
    expect(await errorOf(axios.post('/a', {}, config))).toMatchObject({ status, idempotencyKey: KEY });
    const sole = await keyed({ listener: failing(status), retries: 0 });
    expect(await errorOf(sole.axios.post('/a', {}, config))).toMatchObject({
      status,
      idempotencyKey: undefined,
    });
  });

  it('says so where the last one did not connect', async () => {
    const answers = [{ status: 503 }];
    const refused = new ExchangeFault({ kind: 'refused', phase: 'connecting' });
    const { axios } = await keyed({ answer: () => answers.shift() ?? refused });
    const expected = { kind: 'refused', outcomeUnknown: true, idempotencyKey: KEY };
    expect(await errorOf(axios.post('/a', {}, config))).toMatchObject(expected);
  });

  const encoded = (text: string) => Buffer.from(text).toString('base64url');
  it.each([
    'order%2F7%20b',
    `${encoded('{"alg":"none"}')}.${encoded('{"order":7}')}.c2ln`,
    encoded(`order of ${BEARER}`),
    'k'.repeat(255),
    'pay&amp;<b>',
  ])('names the key as it was sent: %s', async (key) => {
    const { axios, arrived } = await keyed({ listener: failing(500), retries: 0 });
    const error = await errorOf(axios.post('/a', {}, { idempotencyKey: key } as object));
    expect(error).toMatchObject({ status: 500, idempotencyKey: key });
    expect(arrived.map(({ headers }) => headers['x-key'])).toEqual([key]);
  });

  it('gets the answer of the service where there is no other token', async () => {
    const { axios, arrived } = await keyed({ listener: failing(503, 401), renewed: new Error('no token') });
    const expected = { status: 401, idempotencyKey: KEY };
    expect(await errorOf(axios.post('/a', {}, config))).toMatchObject(expected);
    expect(arrived).toHaveLength(2);
  });

  it('says so where a shutdown or a cancel token ends the wait for the next one', async () => {
    const waits = new EventEmitter();
    const budget = { take: () => (waits.emit('wait'), 5) } as unknown as RetryBudget;
    const listener: RequestListener = (_, response) =>
      response.writeHead(503, { 'retry-after': '60' }).end('{}');
    const { axios, inFlight } = await keyed({ listener, budget, timeoutMs: 100_000 });
    const source = globalAxios.CancelToken.source();
    const controller = new AbortController();
    const errors = [];
    for (const end of [{ cancelToken: source.token }, { signal: controller.signal }, {}]) {
      const wait = once(waits, 'wait');
      errors.push(errorOf(axios.post('/a', {}, { ...config, ...end })));
      await wait;
    }
    const reason = new Error('mine');
    source.cancel();
    controller.abort(reason);
    inFlight.close();
    const expected = expect.objectContaining({ status: 503, idempotencyKey: KEY });
    expect(await Promise.all(errors)).toEqual([expected, reason, expected]);
  });

  it('says so where one of them ends the turn before the next one, which begins beside another call', async () => {
    const closed = { kind: 'reset', phase: 'sent', reusedSocket: true } as const;
    for (const how of ['cancel', 'close'] as const) {
      const source = globalAxios.CancelToken.source();
      const paths: string[] = [];
      const { axios, inFlight } = await keyed({
        answer: ({ url: { pathname }, signal }) => {
          paths.push(pathname);
          if (pathname === '/b') return new Promise((_, reject) => signal?.addEventListener('abort', reject));
          // Before the turn of the next attempt.
          setImmediate(() => (how === 'cancel' ? source.cancel() : inFlight.close()));
          return new ExchangeFault(closed);
        },
      });
      const other = new AbortController();
      const beside = axios.get('/b', { signal: other.signal }).catch(() => undefined);
      const error = await errorOf(axios.post('/a', {}, { ...config, cancelToken: source.token }));
      expect(error).toMatchObject({ outcomeUnknown: true, idempotencyKey: KEY });
      expect(paths).toEqual(['/b', '/a']);
      other.abort();
      await beside;
    }
  });

  it('is carried out where a later attempt is', async () => {
    const { axios, arrived } = await keyed({
      listener: busyThen((_, response) => response.writeHead(201).end('{"id":1}')),
    });
    expect((await axios.post<unknown>('/a', {}, config)).data).toEqual({ id: 1 });
    expect(arrived.map(({ headers, body }) => [headers['x-key'], body])).toEqual([
      [KEY, '{}'],
      [KEY, '{}'],
    ]);
  });
});

describe('a POST with a key', () => {
  it.each([401, 403])('is replayed with other credentials after a page with %d', async (status) => {
    const html = { 'content-type': 'text/html' };
    let left = 1;
    const { axios, arrived } = await keyed({
      listener: (_, response) => {
        if (left-- > 0) response.writeHead(status, html).end(page);
        else response.end('{"ok":true}');
      },
      renewed: { Authorization: 'Bearer new' },
      identity: { reloadAfterRefusal: async () => true },
      retries: 0,
    });
    await axios.post('/a', {}, config);
    expect(arrived.map(({ headers }) => headers['x-key'])).toEqual([KEY, KEY]);
  });

  it('has all the time that is left for its last attempt', async () => {
    const limits: unknown[] = [];
    const { axios } = await keyed({
      retries: 1,
      answer: ({ attemptTimeoutMs }) => ({ status: limits.push(attemptTimeoutMs) === 1 ? 503 : 200 }),
    });
    await axios.post('/a', {}, { ...config, attemptTimeout: 500 } as typeof config);
    expect(limits).toEqual([500, undefined]);
  });

  it('is a success without a body, and not sent again', async () => {
    const { axios, arrived } = await keyed({ listener: (_, response) => response.end() });
    expect((await axios.post<unknown>('/a', {}, config)).data).toBeUndefined();
    expect(arrived).toHaveLength(1);
  });
});

const caller = new AsyncLocalStorage<string>();

/** A client whose exchanges end when the test says so. */
async function held(parts: { identity?: object } = {}) {
  const begun: { request: ExchangeRequest; caller?: string; end: () => void }[] = [];
  const answer = (request: ExchangeRequest) =>
    new Promise<GivenAnswer>((resolve) => {
      const end = (): void => resolve({ data: {} });
      begun.push({ request, caller: caller.getStore(), end });
    });
  const made = await setUp({ ...parts, answer, retries: 0 } as never);
  const paths = (): string[] => begun.map(({ request }) => request.url.pathname);
  /** Resolves when the call's exchange may have begun, in the turn in which the call was made. */
  const thisTurn = async (): Promise<void> => {
    for (let step = 0; step < 50; step += 1) await Promise.resolve();
  };
  return { ...made, begun, paths, thisTurn, endAll: () => begun.forEach(({ end }) => end()) };
}

describe('A call beside others', () => {
  it('begins its exchange with the next turn of the event loop, together with those of this one; alone, at once', async () => {
    const { axios, paths, thisTurn, endAll } = await held();
    const calls = ['/a', '/b', '/c'].map((path) => axios.get(path));
    await thisTurn();
    expect(paths()).toEqual(['/a']);
    await nextTurn();
    expect(paths()).toEqual(['/a', '/b', '/c']);
    endAll();
    await Promise.all(calls);
    const alone = axios.get('/d');
    await thisTurn();
    expect(paths()).toEqual(['/a', '/b', '/c', '/d']);
    endAll();
    await alone;
  });

  it.each([
    ['aborted by its caller', ({ abort }: Ending) => abort()],
    ['closed with the client', ({ close }: Ending) => close()],
  ])('opens nothing where it is %s in that turn', async (_, end) => {
    const { axios, paths, thisTurn, endAll, inFlight } = await held();
    const controller = new AbortController();
    const first = axios.get('/a').catch(() => undefined);
    const second = errorOf(axios.get('/b', { signal: controller.signal }));
    await thisTurn();
    end({ abort: () => controller.abort(), close: () => inFlight.close() });
    await nextTurn();
    await second;
    expect(paths()).toEqual(['/a']);
    endAll();
    await first;
  });

  it('opens nothing where its time is over after that turn', async () => {
    const { axios, paths, thisTurn, endAll } = await held();
    const first = axios.get('/a');
    const second = errorOf(axios.get('/b', { timeout: 1_000 }));
    await thisTurn();
    const now = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(now + 1_500);
    await nextTurn();
    const error = await second;
    clock.mockRestore();
    expect(error).toMatchObject({ kind: 'timeout', outcomeUnknown: false });
    expect(paths()).toEqual(['/a']);
    endAll();
    await first;
  });

  it('has the async context of its caller, and the connections that are in use by then', async () => {
    const before = new Agent();
    const identity = { reloadAfterRefusal: async () => false };
    const { axios, agent, begun, thisTurn, endAll } = await held({ identity });
    let inUse: Agent = before;
    Object.assign(identity, { agentFor: () => inUse });
    const calls = ['a', 'b'].map((name) => caller.run(name, () => axios.get(`/${name}`)));
    await thisTurn();
    inUse = agent;
    await nextTurn();
    expect(begun.map((each) => [each.caller, each.request.agent === agent])).toEqual([
      ['a', false],
      ['b', true],
    ]);
    endAll();
    await Promise.all(calls);
  });

  it('is not held by fake timers', async () => {
    const { axios, paths, thisTurn, endAll } = await held();
    jest.useFakeTimers();
    try {
      const calls = ['/a', '/b'].map((path) => axios.get(path));
      await thisTurn();
      await nextTurn();
      expect(paths()).toEqual(['/a', '/b']);
      endAll();
      await Promise.all(calls);
    } finally {
      jest.useRealTimers();
    }
  });
});

interface Ending {
  abort: () => void;
  close: () => void;
}
