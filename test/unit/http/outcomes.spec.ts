import { describe, expect, it } from '@jest/globals';
import { type AxiosInstance, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { answerOf } from '../../../lib/answers/answer.js';
import { ServiceError, ServiceTokenError } from '../../../lib/errors/index.js';
import { ExchangeFault, type ExchangeFaultDetails } from '../../../lib/exchange/fault.js';
import { type ExchangeRequest } from '../../../lib/exchange/io.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { type GivenAnswer } from '../../../lib/testing/doubles/exchange-double.js';
import { nextTurn } from '../../../lib/time/time.js';
import { GUIDES } from '../../../lib/version.js';
import { soakOr } from '../../helpers/in-soak.js';
import { errorOf, setUp } from './setup.js';

type Config = InternalAxiosRequestConfig & { idempotencyKey?: unknown };
type Random = (below: number) => number;

/** A pseudo-random number generator (mulberry32). The same seed gives the same history. */
function randomFrom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const fault = (details: ExchangeFaultDetails): GivenAnswer => new ExchangeFault(details);
const HTML = { 'content-type': 'text/html' };

/** What the server does with a request: whether it executes it, and what the client gets. */
interface Behaviour {
  name: string;
  /** `either`: the server may have executed the request, and the client cannot know. */
  executes: 'yes' | 'no' | 'either';
  answer: () => GivenAnswer | Promise<GivenAnswer>;
}

const NO: Behaviour[] = [
  ...[400, 404, 409, 422, 429, 403].map((status) => ({
    name: `${status}`,
    executes: 'no' as const,
    answer: () => ({ status, data: { status: 'NO', message: 'no' } }),
  })),
  { name: '401', executes: 'no', answer: () => ({ status: 401, data: { message: 'no' } }) },
  {
    name: 'no connection',
    executes: 'no',
    answer: () => fault({ kind: 'refused', phase: 'connecting', reason: 'ECONNREFUSED' }),
  },
  {
    name: 'refused in the handshake',
    executes: 'no',
    answer: () =>
      fault({ kind: 'tls', phase: 'sent', certificateVerdict: 'refused', handshakeRefused: true }),
  },
];
const MAYBE: Behaviour[] = [
  ...[408, 500, 503].map((status) => ({
    name: `${status}`,
    executes: 'either' as const,
    answer: () => ({ status, data: { message: 'busy' } }),
  })),
  {
    name: 'a page',
    executes: 'either',
    answer: () => ({ status: 403, data: Buffer.from('<html>denied'), headers: HTML }),
  },
  { name: 'a reset', executes: 'either', answer: () => fault({ kind: 'reset', phase: 'sent' }) },
  {
    name: 'a time-out',
    executes: 'either',
    answer: () => fault({ kind: 'timeout', phase: 'sent', limitMs: 9 }),
  },
  { name: 'no answer', executes: 'either', answer: () => new Promise<never>(() => undefined) },
  {
    name: 'a broken response',
    executes: 'either',
    answer: () => fault({ kind: 'protocol', phase: 'reading' }),
  },
];
const YES: Behaviour[] = [
  { name: '200', executes: 'yes', answer: () => ({ status: 200, data: { status: 'PENDING' } }) },
  { name: '201', executes: 'yes', answer: () => ({ status: 201, data: {} }) },
  {
    name: '200 without JSON',
    executes: 'yes',
    answer: () => ({ status: 200, data: Buffer.from('<html>'), headers: HTML }),
  },
];
const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)];
const pickBehaviour = (random: Random): Behaviour => pick(random, pick(random, [NO, NO, MAYBE, YES, YES]));

const STEPS = [
  'pass',
  'pass',
  'repeat',
  'repeat',
  'read',
  'swallow',
  'own error',
  'our error',
  'wait',
  'leave behind',
  'abort',
] as const;

/** Plays one call with random interceptors against a server that knows what it has executed. Returns what is wrong. */
async function playHistory(seed: number): Promise<string[]> {
  const random = randomFrom(seed);
  const log: string[] = [];
  /** Requests that change something, by what the server did. */
  let executed = 0;
  let perhaps = 0;
  let open = 0;
  let withoutKey = 0;
  const isChange = ({ method, headers }: ExchangeRequest): boolean =>
    method !== 'GET' && headers['x-read'] === undefined;
  const answer = async (request: ExchangeRequest): Promise<GivenAnswer> => {
    const behaviour = pickBehaviour(random);
    log.push(`${request.method} ${request.url.pathname}: ${behaviour.name}`);
    if (!isChange(request)) return behaviour.answer();
    const isDone = behaviour.executes === 'yes' || (behaviour.executes === 'either' && random(2) === 0);
    if (isDone) executed += 1;
    if (behaviour.executes !== 'no') {
      perhaps += 1;
      if (request.headers['idempotency-key'] !== 'k-1') withoutKey += 1;
    }
    open += 1;
    try {
      return await behaviour.answer();
    } finally {
      open -= 1;
    }
  };
  const refusal = new ServiceTokenError({ code: 'token_unavailable', message: 'no token', status: 503 });
  const { axios, inFlight } = await setUp({
    answer,
    retries: random(2),
    renewed: random(3) === 0 ? refusal : random(2) === 0 ? { Authorization: 'Bearer other' } : undefined,
    cold: random(4) === 0 ? async () => (random(3) === 0 ? Promise.reject(refusal) : undefined) : undefined,
  });
  let steps = 6;
  const leftBehind: Promise<unknown>[] = [];
  const act = async (config: Config | undefined, outcome: () => unknown): Promise<unknown> => {
    const step = (steps -= 1) < 0 || config === undefined ? 'pass' : pick(random, STEPS);
    log.push(step);
    switch (step) {
      case 'repeat':
        return again(axios, config!);
      case 'read':
        return again(axios, {
          ...config!,
          method: 'get',
          url: '/state/v1',
          data: undefined,
          idempotencyKey: undefined,
        });
      case 'swallow':
        return pick<unknown>(random, [{ data: { made: true } }, { status: 200, data: {}, config }]);
      case 'own error':
        throw new Error('of the host');
      case 'our error':
        throw refusal;
      case 'wait':
        await nextTurn();
        return outcome();
      case 'leave behind':
        // What the host application sends after the call has ended is another call.
        steps = 0;
        leftBehind.push(again(axios, config!).catch(() => undefined));
        return outcome();
      case 'abort':
        return again(axios, { ...config!, signal: AbortSignal.timeout(1 + random(5)) });
      default:
        return outcome();
    }
  };
  if (random(3) === 0) axios.interceptors.request.use(async (config) => (await nextTurn(), config));
  let last: Config | undefined;
  axios.interceptors.request.use((config) => (last = config));
  axios.interceptors.response.use(
    (response: AxiosResponse) => act(response.config, () => response) as never,
    (error: unknown) =>
      act(last, () => {
        throw error;
      }),
  );
  const isReadOnly = random(8) === 0;
  const method = pick(random, ['POST', 'POST', 'POST', 'PATCH', 'GET']);
  const key = method === 'GET' || isReadOnly ? undefined : pick(random, [undefined, true, 'k-1']);
  const options = {
    timeout: 40,
    readOnly: isReadOnly,
    idempotencyKey: key,
    headers: isReadOnly ? { 'x-read': '1' } : {},
    ...(random(4) === 0 && { parse: () => Promise.reject(new Error('not so')) }),
  };
  log.unshift(`${method} ${JSON.stringify(options)}`);
  const http = new ServiceHttpService(axios);
  const error: unknown = await http.request('/a/v1', { method, data: {}, ...options } as object).then(
    () => undefined,
    (rejected: unknown) => rejected,
  );
  const wasOpen = open;
  const couldBeOpen = leftBehind.length > 0;
  await Promise.all(leftBehind);
  inFlight.close();
  if (!(error instanceof ServiceError)) return [];
  const { outcomeUnknown, retryable } = error;
  log.push(`${error.code} outcomeUnknown ${outcomeUnknown} retryable ${retryable}`);
  const wrong: string[] = [];
  if (executed > 0 && !outcomeUnknown) wrong.push('executed, and the error denies it');
  if (outcomeUnknown && perhaps === 0 && wasOpen === 0 && !couldBeOpen)
    wrong.push('nothing was executed, and the error is in doubt');
  if (outcomeUnknown && retryable && withoutKey > 0) wrong.push('may be repeated without its key');
  return wrong.map((what) => `HISTORIES_SEED=${seed}: ${what}\n  ${log.join('\n  ')}`);
}

function again(axios: AxiosInstance, config: Config): Promise<unknown> {
  return axios.request(config);
}

const FIND_OUT = `The request may have been executed: find out whether it was before you send it again (${GUIDES}/troubleshooting.md#an-unknown-outcome).`;
const SEND_AGAIN = 'The request may have been executed: send it again later with the same idempotencyKey.';
const NO_TOKEN = { code: 'token_unavailable', message: 'no token', status: 503, retryAfter: 30 } as const;

describe('The error of a call whose interceptors send further requests', () => {
  const pending = (request: ExchangeRequest): GivenAnswer =>
    request.method === 'GET'
      ? { status: 404, data: { status: 'NOT_FOUND', message: 'none' } }
      : { data: { status: 'PENDING' } };

  /** A client whose responses to a change are followed by this. The token has run out by then. */
  async function setUpPending(
    next: (axios: AxiosInstance, config: Config) => unknown,
    answer: (request: ExchangeRequest) => GivenAnswer | Promise<GivenAnswer> = pending,
  ) {
    let requests = 0;
    const { axios, inFlight } = await setUp({
      retries: 0,
      answer: (request) => ((requests += 1), answer(request)),
      cold: async () => {
        if (requests > 0 && isTokenGone) throw new ServiceTokenError(NO_TOKEN);
      },
    });
    let isTokenGone = false;
    axios.interceptors.response.use((response: AxiosResponse) => {
      if (response.config.method === 'get') return response;
      return next(axios, response.config) as never;
    });
    const loseToken = (): void => void (isTokenGone = true);
    return { axios, http: new ServiceHttpService(axios), inFlight, loseToken };
  }

  it.each([
    ['no key', undefined, { retryable: false, idempotencyKey: undefined, hint: FIND_OUT }],
    ['a generated key', true, { retryable: false, idempotencyKey: expect.any(String), hint: FIND_OUT }],
    ['a key of the caller', 'k-1', { retryable: true, idempotencyKey: 'k-1', hint: SEND_AGAIN }],
  ])(
    'says that the first request may have been executed if there is no token for its repetition: %s',
    async (_, idempotencyKey, fields) => {
      const { http, loseToken } = await setUpPending((axios, config) => (loseToken(), axios.request(config)));
      const error = await errorOf(http.post('/payments/v1', {}, { idempotencyKey: idempotencyKey as 'k-1' }));
      expect(error).toBeInstanceOf(ServiceTokenError);
      expect(error).toMatchObject({ code: 'token_unavailable', outcomeUnknown: true, ...fields });
      expect((error as Error).stack).toContain(`no token\n${fields.hint}`);
      expect(answerOf(error)).toEqual({
        code: 'token_unavailable',
        status: 502,
        message: expect.stringContaining('may have been executed'),
      });
    },
  );

  it('says so if the client is closed before the repetition', async () => {
    const { http, inFlight } = await setUpPending(
      (axios, config) => (inFlight.close(), axios.request(config)),
    );
    const error = await errorOf(http.post('/payments/v1', {}));
    expect(error).toMatchObject({ code: 'connection_closed', outcomeUnknown: true, retryable: false });
  });

  it.each<[string, GivenAnswer, string, number]>([
    ['is answered 404', { status: 404, data: { status: 'NOT_FOUND', message: 'none' } }, 'api_error', 502],
    ['is answered 503', { status: 503, data: { message: 'busy' } }, 'api_error', 502],
    ['is reset', fault({ kind: 'reset', phase: 'sent' }), 'connection_reset', 502],
    ['times out', fault({ kind: 'timeout', phase: 'sent', limitMs: 9 }), 'connection_timeout', 504],
  ])('says so if the request that reads the result %s', async (_, read, code, status) => {
    const { http } = await setUpPending(
      (axios, config) => axios.request({ ...config, method: 'get', url: '/payments/v1/p-1' }),
      (request) => (request.method === 'GET' ? read : pending(request)),
    );
    const error = await errorOf(http.post('/payments/v1', {}));
    expect(error).toMatchObject({ code, method: 'GET', outcomeUnknown: true, retryable: false });
    expect(answerOf(error)).toMatchObject({
      status,
      message: expect.stringContaining('may have been executed'),
    });
  });

  it('denies it if the service has refused each request', async () => {
    const statuses = [401, 409];
    const { axios } = await setUp({
      retries: 0,
      answer: () => ({ status: statuses.shift() ?? 500, data: { status: 'NO', message: 'no' } }),
      renewed: new ServiceTokenError(NO_TOKEN),
    });
    const seen: unknown[] = [];
    let config: Config | undefined;
    axios.interceptors.request.use((given) => (config ??= given));
    axios.interceptors.response.use(undefined, (error: unknown) => {
      if (seen.push(error) > 1) throw error;
      return axios.request(config!);
    });
    const error = await errorOf(axios.post('/payments/v1', {}));
    expect(error).toMatchObject({ status: 409, outcomeUnknown: false });
    expect(seen).toEqual([
      expect.objectContaining({ code: 'token_unavailable', outcomeUnknown: false }),
      error,
    ]);
  });

  it('leaves the error that an interceptor sees, and may keep, as it is', async () => {
    const kept: ServiceError[] = [];
    const { http } = await setUpPending(async (axios, config) => {
      const read = { ...config, method: 'get', url: '/payments/v1/p-1' };
      kept.push((await errorOf(axios.request(read))) as ServiceError);
      throw Object.freeze(kept[0]) as Error;
    });
    const error = await errorOf(http.post('/payments/v1', {}));
    expect(error).toMatchObject({ status: 404, outcomeUnknown: true });
    expect(kept).toMatchObject([{ status: 404, outcomeUnknown: false }]);
    expect(kept[0]).not.toBe(error);
  });

  it("does not touch the host application's own error, nor the reason of an abort", async () => {
    const theirs = new Error('of the host');
    const { http } = await setUpPending(() => Promise.reject(theirs));
    expect(await errorOf(http.post('/payments/v1', {}))).toBe(theirs);
    const controller = new AbortController();
    const reason = new ServiceTokenError(NO_TOKEN);
    const aborted = await setUpPending(() => (controller.abort(reason), new Promise(() => undefined)));
    expect(await errorOf(aborted.http.post('/payments/v1', {}, { signal: controller.signal }))).toBe(reason);
  });

  it.each<[string, (axios: AxiosInstance, config: Config) => unknown]>([
    [
      'of a later GET',
      (axios, config) =>
        axios.request({ ...config, method: 'get', url: '/state/v1', idempotencyKey: undefined } as Config),
    ],
    ['of a response that the interceptor has made', () => ({ data: { state: 'done' } })],
  ])('says so if parse refuses the body %s', async (_, next) => {
    const { http } = await setUpPending(next, (request) =>
      request.method === 'GET' ? { data: {} } : pending(request),
    );
    const parse = (): never => {
      throw new Error('not so');
    };
    const error = await errorOf(http.post('/payments/v1', {}, { idempotencyKey: 'k-1', parse }));
    expect(error).toMatchObject({
      code: 'invalid_response',
      status: 200,
      outcomeUnknown: true,
      idempotencyKey: 'k-1',
      retryable: false,
    });
  });

  it('counts a request that was aborted after it was sent, and none that never had a connection', async () => {
    const hanging = (request: ExchangeRequest) =>
      request.headers['x-second'] === undefined
        ? new Promise<never>(() => undefined)
        : fault({ kind: 'refused', phase: 'connecting' });
    for (const isSent of [true, false]) {
      const { axios } = await setUp({
        retries: 0,
        answer: hanging,
        cold: async ({ signal }) => {
          if (!isSent && !signal!.aborted) await once(signal!, 'abort');
          signal?.throwIfAborted();
        },
      });
      axios.interceptors.request.use((config) => {
        config.signal ??= AbortSignal.timeout(20);
        return config;
      });
      axios.interceptors.response.use(undefined, (error: unknown) => {
        if (error instanceof ServiceError) throw error;
        throw new ServiceTokenError(NO_TOKEN);
      });
      const error = await errorOf(axios.post('/payments/v1', {}));
      expect(error).toMatchObject({ code: 'token_unavailable', outcomeUnknown: isSent });
    }
  });

  it(
    'never denies that the service has executed one of them, and is never in doubt if it has refused all (random histories)',
    async () => {
      const first = Number(process.env.HISTORIES_SEED ?? randomInt(2 ** 31));
      const wrong: string[] = [];
      const count = process.env.HISTORIES_SEED === undefined ? soakOr(5_000, 1_000) : 1;
      const seeds = Array.from({ length: count }, (_, index) => first + index);
      const workers = Array.from({ length: 50 }, async () => {
        for (let seed = seeds.pop(); seed !== undefined; seed = seeds.pop())
          wrong.push(...(await playHistory(seed)));
      });
      await Promise.all(workers);
      expect(wrong.slice(0, 3)).toEqual([]);
    },
    soakOr(300_000, 60_000),
  );
});
