import { describe, expect, it, jest } from '@jest/globals';
import globalAxios, { type InternalAxiosRequestConfig } from 'axios';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { Agent, type RequestListener } from 'node:http';
import { ServiceTokenError, type TokenErrorCode } from '../../../lib/errors/index.js';
import { ExchangeFault, type ExchangeFaultDetails, type Outcome } from '../../../lib/exchange/fault.js';
import { type ExchangeRequest } from '../../../lib/exchange/io.js';
import { Call, type CallDetails } from '../../../lib/http/call.js';
import {
  mayHaveActed,
  isRetryableResponse,
  isRetryableFault,
  outcomeFields,
  RetryBudget,
} from '../../../lib/http/repeatability.js';
import { type GivenAnswer } from '../../../lib/testing/doubles/exchange-double.js';
import { nextTurn } from '../../../lib/time/time.js';
import { deadPort } from '../../helpers/loopback.js';
import { BEARER, errorOf, failing, firstAnswered, setUp, type Setup } from './setup.js';

/** The kinds of calls that the retry policy distinguishes. */
const CALLS = {
  GET: () => new Call('GET', new URL('https://api.example/a'), 1_000),
  readOnly: () => post({ readOnly: true }),
  POST: () => post({}),
  'random key': () => post({ idempotencyKey: 'k-1', hasCallerKey: false }),
  'own key': () => post({ idempotencyKey: 'k-1', hasCallerKey: true }),
  repeatable: () => post({ repeatable: true }),
};
function post(details: CallDetails): Call {
  return new Call('POST', new URL('https://api.example/a'), 1_000, details);
}

const NONE: string[] = [];
const READS = ['GET', 'readOnly'];
const CHANGES = ['POST', 'random key', 'own key', 'repeatable'];
const ALL = [...READS, ...CHANGES];
/** Calls that the module itself may repeat: they change nothing, have an idempotency key, or are `repeatable`. */
const REPEATABLE = [...READS, 'random key', 'own key', 'repeatable'];
/** Calls that the caller may repeat later. A generated key does not count, because it is lost when the call ends. */
const LATER = [...READS, 'own key', 'repeatable'];
const OWN = ['own key', 'repeatable'];

const answered = (status: number, text = '', headers: Record<string, string> = {}): Outcome => ({
  response: { status, statusText: '', headers, body: Buffer.from(text), untilClose: false },
});
const HTML = { 'content-type': 'text/html' };
const DENIED = '<html>Access denied';
const DUPLICATED = '{"status":"DUPLICATED_REQUEST","message":"wait"}';
const failed = (details: Partial<ExchangeFaultDetails>): Outcome => ({
  fault: new ExchangeFault({ kind: 'reset', phase: 'sent', ...details }),
});
const PASSING = ['refused', 'dns', 'timeout', 'reset', 'network'] as const;
const OURS_REFUSED = { kind: 'tls', certificateVerdict: 'refused' } as const;

interface Row {
  /** The calls that the module sends again. */
  again: string[];
  /** Whether the outcome of a change is unknown afterwards. */
  doubt: boolean;
  /** The calls that their callers may send again later (error.retryable). */
  later: string[];
}
const PROVEN: Row = { again: NONE, doubt: false, later: NONE };
const LASTING: Row = { again: NONE, doubt: true, later: OWN };
const LOST: Row = { again: REPEATABLE, doubt: true, later: LATER };
const UNDONE: Row = { again: ALL, doubt: false, later: ALL };

describe('Retry policy', () => {
  it.each<[string, Outcome, Row]>([
    ...[400, 401, 403, 404, 409, 422].map((status): [string, Outcome, Row] => [
      String(status),
      answered(status, '{}'),
      PROVEN,
    ]),
    ['429', answered(429), UNDONE],
    // The service is still working on the same request.
    ['429 DUPLICATED_REQUEST', answered(429, DUPLICATED), { again: REPEATABLE, doubt: false, later: LATER }],
    ...[408, 500, 502, 503, 504, 507, 509, 520, 521, 524, 529, 530].map((status): [string, Outcome, Row] => [
      String(status),
      answered(status),
      LOST,
    ]),
    // Too Early: nothing was done.
    ['425', answered(425, '{}'), { again: REPEATABLE, doubt: false, later: ALL }],
    ['501', answered(501), LASTING],
    ['505', answered(505), LASTING],
    ['a 200 that cannot be read', answered(200), LASTING],
    ['a redirect', answered(303), LASTING],
    ['a page of a firewall, 403', answered(403, DENIED, HTML), LASTING],
    [
      'a page with a challenge, 401',
      answered(401, DENIED, { ...HTML, 'www-authenticate': 'Bearer error="invalid_token"' }),
      PROVEN,
    ],
    ["nginx's page about our certificate, 495", answered(495), LASTING],
    ...PASSING.flatMap((kind): [string, Outcome, Row][] => [
      [`${kind}, nothing sent`, failed({ kind, phase: 'connecting' }), UNDONE],
      [`${kind}, sent`, failed({ kind }), LOST],
    ]),
    ['a time-out in the body', failed({ kind: 'timeout', phase: 'reading' }), LOST],
    ['no free connection', failed({ kind: 'timeout', phase: 'queued' }), UNDONE],
    ['a shutdown, nothing sent', failed({ kind: 'closed', phase: 'connecting' }), { ...UNDONE, again: NONE }],
    ['a shutdown, sent', failed({ kind: 'closed' }), { ...LOST, again: NONE }],
    ["the server's certificate", failed({ kind: 'tls', phase: 'connecting' }), PROVEN],
    ['our certificate, in the handshake', failed({ ...OURS_REFUSED, handshakeRefused: true }), PROVEN],
    ['our certificate, later', failed(OURS_REFUSED), LASTING],
    ['a malformed answer', failed({ kind: 'protocol', phase: 'reading' }), LASTING],
    [
      "what Node's permission model forbids",
      failed({ kind: 'network', phase: 'connecting', reason: 'ERR_ACCESS_DENIED' }),
      PROVEN,
    ],
    ['a body too large', failed({ kind: 'too_large', phase: 'reading' }), LASTING],
    ...[
      'TUNNEL_400',
      'TUNNEL_401',
      'TUNNEL_403',
      'TUNNEL_405',
      'TUNNEL_407',
      'CERT_HAS_EXPIRED',
      'SELF_SIGNED_CERT_IN_CHAIN',
    ].map((reason): [string, Outcome, Row] => [`proxy: ${reason}`, ofProxy(reason), PROVEN]),
    ...[
      'TUNNEL_404',
      'TUNNEL_500',
      'TUNNEL_502',
      'TUNNEL_503',
      'TUNNEL_504',
      'TIMEOUT',
      'ECONNREFUSED',
      'EHOSTUNREACH',
    ].map((reason): [string, Outcome, Row] => [`proxy: ${reason}`, ofProxy(reason), UNDONE]),
  ])(
    'decides about a retry, outcomeUnknown and retryable after: %s',
    (_, outcome, { again, doubt, later }) => {
      const isAgain = (call: Call) =>
        outcome.fault ? isRetryableFault(call, outcome.fault) : isRetryableResponse(call, outcome.response);
      const namesOf = (fits: (call: Call) => boolean, earlier = false) =>
        Object.entries(CALLS)
          .filter(([, make]) => fits(Object.assign(make(), { mayHaveActed: earlier })))
          .map(([name]) => name);
      expect(namesOf(isAgain)).toEqual(again);
      expect(namesOf((call) => mayHaveActed(call, outcome))).toEqual(doubt ? CHANGES : NONE);
      expect(namesOf((call) => outcomeFields(call, outcome).retryable)).toEqual(later);
      // If an earlier attempt left the outcome of a change unknown, it stays unknown. Only with the caller's own key may it be sent again later.
      expect(namesOf((call) => mayHaveActed(call, outcome), true)).toEqual(CHANGES);
      const reads = later.filter((name) => READS.includes(name));
      expect(namesOf((call) => outcomeFields(call, outcome).retryable, true)).toEqual([...reads, ...OWN]);
    },
  );

  it.each([
    ['HEAD', true],
    ['OPTIONS', true],
    ['PUT', false],
    ['PATCH', false],
    ['DELETE', false],
    ['PROPFIND', false],
  ])('treats %s as a method that changes nothing: %s', (method, isSafe) => {
    const call = new Call(method, new URL('https://api.example/a'), 1_000);
    const { response } = answered(503);
    expect(isRetryableResponse(call, response!)).toBe(isSafe);
    expect(mayHaveActed(call, { response: response! })).toBe(!isSafe);
  });

  it('decides whether a token request may succeed later', () => {
    const may = (code: TokenErrorCode) => new ServiceTokenError({ code, message: 'm' }).retryable;
    const passing = ['token_unavailable', 'token_rate_limited', 'client_secret_unavailable'] as const;
    const lasting = ['token_refused', 'invalid_token_response', 'oauth_not_configured'] as const;
    expect([...passing, ...lasting].map(may)).toEqual([true, true, true, false, false, false]);
  });
});

function ofProxy(reason: string): Outcome {
  return failed({ kind: 'proxy', phase: 'connecting', reason: `ERR_PROXY_${reason}` });
}

describe('A change that is repeatable', () => {
  it.each(['POST', 'PUT', 'PATCH', 'DELETE'])(
    'is sent again like a GET, without a key: %s',
    async (method) => {
      const { axios, arrived } = await setUp({ listener: failing(503) });
      await axios.request({ url: '/a', method, data: { b: 1 }, repeatable: true } as object);
      expect(arrived.map((request) => [request.method, request.body])).toEqual(
        Array(2).fill([method, '{"b":1}']),
      );
      expect(arrived[0]?.headers).not.toHaveProperty('idempotency-key');
    },
  );

  it('leaves the outcome unknown if it was perhaps done, and may be sent again later', async () => {
    const { axios } = await setUp({ listener: failing(503, 404), retries: 1 });
    const error = await errorOf(axios.delete('/a', { repeatable: true } as object));
    expect(error).toMatchObject({
      status: 404,
      outcomeUnknown: true,
      retryable: true,
      idempotencyKey: undefined,
      hint: expect.stringMatching(/^The request may have been executed: send it again later\./),
    });
  });

  it('can have a key, and says to use it', async () => {
    const { axios, arrived } = await setUp({ listener: failing(503), retries: 0 });
    const options = { repeatable: true, idempotencyKey: 'k-1' };
    const error = await errorOf(axios.post('/a', {}, options as object));
    expect(error).toMatchObject({
      retryable: true,
      hint: expect.stringContaining('with the same idempotencyKey'),
    });
    expect(arrived[0]?.headers['idempotency-key']).toBe('k-1');
  });

  it('stays repeatable if an interceptor sends it again', async () => {
    const { axios, arrived } = await setUp({ listener: failing(409, 503), retries: 1 });
    let config: InternalAxiosRequestConfig | undefined;
    axios.interceptors.request.use((given) => (config ??= given));
    axios.interceptors.response.use(undefined, () => axios.request(config!));
    await axios.put('/a', {}, { repeatable: true } as object);
    expect(arrived).toHaveLength(3);
  });

  it('cannot be read-only, and a GET is a GET with it', async () => {
    const { axios, arrived } = await setUp();
    const error = await errorOf(axios.post('/a', {}, { repeatable: true, readOnly: true } as object));
    expect(error).toMatchObject({ faults: [{ property: 'repeatable' }], hint: expect.any(String) });
    expect(arrived).toHaveLength(0);
    await axios.get('/a', { repeatable: true } as object);
  });
});

describe('Retry budget', () => {
  const spent = (budget: RetryBudget, afterTimeout = false) => {
    let retries = 0;
    while (retries < 1_000 && budget.take(afterTimeout) !== undefined) retries += 1;
    return retries;
  };

  it('allows 100 retries in a row, or 50 after time-outs', () => {
    expect(spent(new RetryBudget())).toBe(100);
    expect(spent(new RetryBudget(), true)).toBe(50);
  });

  it('gets back what a successful retry took, or one token for each success, and never exceeds its capacity', () => {
    const budget = new RetryBudget();
    budget.giveBack(100);
    expect(spent(budget)).toBe(100);
    budget.giveBack(5);
    expect(budget.take(false)).toBe(5);
    for (let call = 0; call < 4; call++) budget.giveBack();
    expect(budget.take(false)).toBeUndefined();
    budget.giveBack();
    expect(budget.take(false)).toBe(5);
  });

  it.each([
    [[503], [5]],
    [[503, 503], [5]],
    [[503, 503, 503], []],
    [[503, 303], []],
    [[303], []],
    [[], [undefined]],
  ])(
    'after the statuses %j gets back the tokens of the last retry if that succeeded: %j',
    async (statuses, given) => {
      const back: unknown[] = [];
      const budget = { take: () => 5, giveBack: (taken: number) => void back.push(taken) };
      const { axios } = await setUp({
        listener: failing(...statuses),
        budget: budget as unknown as RetryBudget,
      });
      await axios.get('/a').catch(() => undefined);
      expect(back).toEqual(given);
    },
  );

  it('stops the retries of the whole client when it is used up', async () => {
    const budget = new RetryBudget();
    spent(budget);
    const { axios, arrived } = await setUp({ listener: failing(503, 503), budget });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 503 });
    expect(arrived).toHaveLength(1);
  });

  it.each<[ExchangeFault['kind'], number]>([
    ['timeout', 98],
    ['reset', 99],
  ])('pays more for a retry after a time-out than after another fault: %s leaves %d', async (kind, left) => {
    const budget = new RetryBudget();
    const answer = () => new ExchangeFault({ kind, phase: 'sent' });
    const { axios } = await setUp({ answer, budget, retries: 1 });
    await errorOf(axios.get('/a'));
    expect(spent(budget)).toBe(left);
  });
});

/** An exchange that responds with 503 once, and then with success. */
async function busy(retryAfter: string | undefined, random = 0) {
  const requests: unknown[] = [];
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  const answer = (request: unknown) =>
    requests.push(request) === 1 ? { status: 503, headers } : { data: { ok: true } };
  const made = await setUp({ random, answer });
  return { ...made, requests };
}

describe('Attempts of a call', () => {
  it('end after one attempt with a final response, without a token request', async () => {
    for (const status of [400, 403, 404, 409, 422]) {
      const { axios, arrived, renewals } = await setUp({ listener: failing(status, status) });
      expect(await errorOf(axios.get('/a'))).toMatchObject({ status });
      expect([arrived.length, renewals.length]).toEqual([1, 0]);
    }
  });

  it.each<[object, number]>([
    [{}, 3],
    [{ retries: 0 }, 1],
    [{ retries: 10 }, 11],
  ])(
    'are limited by the retries of the client or of the call: %j gives %i attempts',
    async (options, attempts) => {
      const always = await setUp({ listener: failing(...Array<number>(12).fill(503)) });
      expect(await errorOf(always.axios.get('/a', options))).toMatchObject({ status: 503 });
      expect(always.arrived).toHaveLength(attempts);
    },
  );

  it('repeat a POST after a 429, but not after a 503, because it may have been executed', async () => {
    const { axios, arrived } = await setUp({ listener: failing(429) });
    await axios.post('/a', {});
    expect(arrived.map(({ body }) => body)).toEqual(['{}', '{}']);
    const lost = await setUp({ listener: failing(503) });
    expect(await errorOf(lost.axios.post('/a', {}))).toMatchObject({ status: 503, outcomeUnknown: true });
    expect(lost.arrived).toHaveLength(1);
  });

  it('repeat a GET after a reset, and end a POST with outcomeUnknown after one attempt', async () => {
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

  it('repeat every method twice if the connection is refused, because nothing was done', async () => {
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

  it.each([
    ['GET', true, 1 + 1 + 2],
    ['GET', false, 1 + 2],
    ['POST', true, 1],
  ])(
    'reconnect once without using a retry if the server had closed the reused connection, for repeatable calls only: %s, reused %s',
    async (method, reusedSocket, attempts) => {
      let sent = 0;
      const answer = () => {
        sent += 1;
        return new ExchangeFault({ kind: 'reset', phase: 'sent', reusedSocket });
      };
      const { axios } = await setUp({ answer, retries: 2 });
      const error = await errorOf(axios.request({ url: '/banks/v1', method }));
      expect(error).toMatchObject({ kind: 'reset', outcomeUnknown: method === 'POST' });
      expect(sent).toBe(attempts);
    },
  );

  it('use the current token after a pause, and after the certificate was read again', async () => {
    const page = '<html><h1>400 No required SSL certificate was sent</h1></html>';
    for (const [status, text] of [
      [503, '{}'],
      [400, page],
    ] as const) {
      const tokens = ['of the interceptor', 'first', 'second'];
      const { axios, arrived } = await setUp({
        listener: firstAnswered(status, HTML, text),
        identity: { certificate: undefined, findOther: async () => true },
        credentialsNow: () => ({ Authorization: `Bearer ${tokens.shift()}` }),
      });
      await axios.get('/a');
      expect(arrived.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer second']);
    }
  });

  it('repeat every method once with another token after a 401, and not without one', async () => {
    const renewed = { Authorization: 'Bearer new' };
    const { axios, arrived, renewals } = await setUp({ listener: failing(401), renewed });
    await axios.post('/a', {});
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${BEARER}`, 'Bearer new']);
    expect(renewals[0]?.Authorization).toBe(`Bearer ${BEARER}`);
    const replayed = await setUp({ listener: failing(401, 401, 401), renewed });
    expect(await errorOf(replayed.axios.get('/a'))).toMatchObject({ status: 401 });
    expect(replayed.arrived).toHaveLength(2);
    const bound = await setUp({ listener: failing(401, 401) });
    expect(await errorOf(bound.axios.get('/a'))).toMatchObject({ status: 401 });
    expect(bound.arrived).toHaveLength(1);
  });

  it.each<[string, number]>([
    ['12345678901234567', 86_400],
    ['9'.repeat(310), 86_400],
    ['30', 30],
  ])('end if Retry-After %s does not fit into the time limit of the call', async (value, retryAfter) => {
    const { axios, requests } = await busy(value);
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 503, retryAfter });
    expect(requests).toHaveLength(1);
  });

  it.each(['0', 'Mon, 31 Dec 2001 12:00:00 GMT'])(
    'wait at least the usual pause for Retry-After %s',
    async (value) => {
      const { axios, requests } = await busy(value);
      // This pause does not fit into the time limit of the call.
      const error = await errorOf(axios.get('/a', { timeout: 100 }));
      expect(error).toMatchObject({ status: 503, retryAfter: 0 });
      expect(requests).toHaveLength(1);
    },
  );

  it('end the pause between them if the caller aborts or the client closes', async () => {
    const reason = new Error('mine');
    const caller = new AbortController();
    const [aborted, closed, waited] = await Promise.all([busy('9'), busy('9'), busy(undefined, 0.5)]);
    const mine = errorOf(aborted.axios.get('/a', { signal: caller.signal, timeout: 60_000 }));
    const cut = errorOf(closed.axios.get('/a', { timeout: 60_000 }));
    expect((await waited.axios.get<unknown>('/a')).data).toEqual({ ok: true });
    expect([aborted, closed, waited].map(({ requests }) => requests.length)).toEqual([1, 1, 2]);
    caller.abort(reason);
    closed.inFlight.close();
    expect(await mine).toBe(reason);
    expect(await cut).toMatchObject({ kind: 'closed' });
    expect([aborted, closed].map(({ requests }) => requests.length)).toEqual([1, 1]);
  });

  it('end when the client closes, with the response that has just arrived and without another token request', async () => {
    const { axios, inFlight, renewals } = await setUp({
      answer: () => (inFlight.close(), { status: 401 }),
      renewed: { Authorization: 'Bearer new' },
    });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 401 });
    expect(renewals).toEqual([]);
  });

  it('share the deadline of the call, and the error names its time limit', async () => {
    const silent = await setUp({ listener: () => undefined });
    expect(await errorOf(silent.axios.get('/a', { timeout: 1_000 }))).toMatchObject({ kind: 'timeout' });
    expect(silent.arrived).toHaveLength(1);
    // The error shows the time limit of the call, not the rest that the last attempt had.
    let requests = 0;
    const listener: RequestListener = (request) => {
      requests += 1;
      if (requests === 1) setTimeout(() => request.socket.destroy(), 60);
    };
    const { axios } = await setUp({ listener, retries: 1 });
    const { message } = (await errorOf(axios.get('/a', { timeout: 1_500 }))) as Error;
    expect([requests, message]).toEqual([2, expect.stringMatching(/no response began within 1500 ms/)]);
  });
});

const KEY = 'k-1';
const config = { idempotencyKey: KEY } as object;
const keyed = (setup: Setup) => setUp({ idempotencyHeader: 'x-key', ...setup });

describe('A POST with a key after an attempt that may have been executed', () => {
  it.each([400, 401, 403, 409, 429])('has outcomeUnknown if the last attempt gets %d', async (status) => {
    const { axios } = await keyed({ listener: failing(503, status), retries: 1 });
    const inDoubt = { status, outcomeUnknown: true, idempotencyKey: KEY };
    expect(await errorOf(axios.post('/a', {}, config))).toMatchObject(inDoubt);
    const sole = await keyed({ listener: failing(status), retries: 0 });
    expect(await errorOf(sole.axios.post('/a', {}, config))).toMatchObject({
      status,
      outcomeUnknown: false,
      idempotencyKey: undefined,
    });
  });

  it('has outcomeUnknown if the last attempt does not connect', async () => {
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
  ])('has the key in its error as it was sent: %s', async (key) => {
    const { axios, arrived } = await keyed({ listener: failing(500), retries: 0 });
    const error = await errorOf(axios.post('/a', {}, { idempotencyKey: key } as object));
    expect(error).toMatchObject({ status: 500, idempotencyKey: key });
    expect(arrived.map(({ headers }) => headers['x-key'])).toEqual([key]);
  });

  it('gets the response of the service if there is no other token', async () => {
    const { axios, arrived } = await keyed({ listener: failing(503, 401), renewed: new Error('no token') });
    const expected = { status: 401, idempotencyKey: KEY };
    expect(await errorOf(axios.post('/a', {}, config))).toMatchObject(expected);
    expect(arrived).toHaveLength(2);
  });

  it('has outcomeUnknown if there is no token for the next attempt', async () => {
    const waits: unknown[] = [];
    const cold = async (wait: unknown) => {
      if (waits.push(wait) > 1) throw new Error('no token');
    };
    const { axios, arrived } = await keyed({ listener: failing(503), cold });
    const expected = { status: 503, outcomeUnknown: true, idempotencyKey: KEY };
    expect(await errorOf(axios.post('/a', {}, config))).toMatchObject(expected);
    expect([waits.length, arrived.length]).toEqual([2, 1]);
  });

  it('has outcomeUnknown if a shutdown or a cancel token ends the pause before the next attempt, and the reason of a signal that does', async () => {
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
    const expected = expect.objectContaining({ status: 503, outcomeUnknown: true, idempotencyKey: KEY });
    expect(await Promise.all(errors)).toEqual([expected, reason, expected]);
  });

  it('has outcomeUnknown if a shutdown or a cancel token ends the turn of the event loop before the next attempt', async () => {
    const closed = { kind: 'reset', phase: 'sent', reusedSocket: true } as const;
    for (const how of ['cancel', 'close'] as const) {
      const source = globalAxios.CancelToken.source();
      const paths: string[] = [];
      const { axios, inFlight } = await keyed({
        answer: ({ url: { pathname }, signal }) => {
          paths.push(pathname);
          if (pathname === '/b') return new Promise((_, reject) => signal?.addEventListener('abort', reject));
          // Before the turn of the event loop in which the next attempt begins.
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

  it('succeeds if a later attempt succeeds', async () => {
    const { axios, arrived } = await keyed({ listener: failing(503) });
    expect((await axios.post<unknown>('/a', {}, config)).data).toEqual({ ok: true });
    expect(arrived.map(({ headers, body }) => [headers['x-key'], body])).toEqual([
      [KEY, '{}'],
      [KEY, '{}'],
    ]);
  });
});

describe('A POST with a key', () => {
  it.each([401, 403])(
    'is replayed with other credentials after a page with %d; without a key it is not, because it may have been executed',
    async (status) => {
      const replayed = async (options: object) => {
        const { axios, arrived } = await keyed({
          listener: firstAnswered(status, HTML, DENIED),
          renewed: { Authorization: 'Bearer new' },
          identity: { findOther: async () => true },
          retries: 0,
        });
        const outcome = await axios.post('/a', {}, options).catch((error: unknown) => error);
        return [outcome, arrived.map(({ headers }) => headers['x-key'])];
      };
      expect(await replayed(config)).toMatchObject([{ status: 200 }, [KEY, KEY]]);
      expect(await replayed({})).toMatchObject([{ status, outcomeUnknown: true }, [undefined]]);
    },
  );

  it('has all the remaining time for its last attempt; a POST without a key has it for its first', async () => {
    const limits: unknown[] = [];
    const { axios } = await keyed({
      retries: 1,
      answer: ({ attemptTimeoutMs }) => ({ status: limits.push(attemptTimeoutMs) === 1 ? 503 : 200 }),
    });
    const attemptTimeout = 500;
    await axios.post('/a', {}, { ...config, attemptTimeout } as typeof config);
    await axios.post('/a', {}, { attemptTimeout } as object);
    expect(limits).toEqual([500, undefined, undefined]);
  });

  it('succeeds without a body, and is not sent again', async () => {
    const { axios, arrived } = await keyed({ listener: (_, response) => response.end() });
    expect((await axios.post<unknown>('/a', {}, config)).data).toBeUndefined();
    expect(arrived).toHaveLength(1);
  });
});

const caller = new AsyncLocalStorage<string>();

/** A client whose exchanges end when the test ends them. */
async function held(parts: { identity?: object } = {}) {
  const begun: { request: ExchangeRequest; caller?: string; end: () => void }[] = [];
  const answer = (request: ExchangeRequest) =>
    new Promise<GivenAnswer>((resolve) => {
      const end = (): void => resolve({ data: {} });
      begun.push({ request, caller: caller.getStore(), end });
    });
  const made = await setUp({ ...parts, answer, retries: 0 });
  const paths = (): string[] => begun.map(({ request }) => request.url.pathname);
  /** Resolves after the exchange of a call could have begun, if it begins in the turn in which the call was made. */
  const thisTurn = async (): Promise<void> => {
    for (let step = 0; step < 50; step += 1) await Promise.resolve();
  };
  return { ...made, begun, paths, thisTurn, endAll: () => begun.forEach(({ end }) => end()) };
}

describe('A call while others are in flight', () => {
  it('is sent in the next turn of the event loop, together with the others of this turn; alone, it is sent at once', async () => {
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
  ])('opens no connection if it is %s in that turn', async (_, end) => {
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

  it('opens no connection if its time is over after that turn', async () => {
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

  it('keeps the async context of its caller, and uses the certificate that is in use when it is sent', async () => {
    const before = new Agent();
    const identity = { findOther: async () => false };
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

  it('is not held up by fake timers', async () => {
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
