import { describe, expect, it } from '@jest/globals';
import { ExchangeFault, type ExchangeFaultDetails } from '../../../lib/exchange/exchange.types.js';
import { ServiceTokenError, type TokenErrorCode } from '../../../lib/errors/index.js';
import { Call } from '../../../lib/http/call.js';
import {
  outcomeFields,
  isRetryableAnswer,
  isRetryableFault,
  isOutcomeUnknown,
  RetryBudget,
} from '../../../lib/http/retry-policy.js';

const fault = (details: Partial<ExchangeFaultDetails>): ExchangeFault =>
  new ExchangeFault({
    kind: 'reset',
    phase: 'sent',
    reusedSocket: false,
    certificateRefused: false,
    ...details,
  });

const answered = (status: number, page = '') => ({
  response: {
    status,
    statusText: '',
    headers: page ? { 'content-type': 'text/html' } : {},
    body: Buffer.from(page),
    reusedSocket: false,
    untilClose: false,
  },
});

describe('the retry policy', () => {
  it.each([
    ['GET', 429, true],
    ['GET', 500, true],
    ['HEAD', 503, true],
    ['GET', 501, false],
    ['GET', 404, false],
    ['POST', 429, true],
    ['POST', 503, false],
    ['PUT', 500, false],
    ['DELETE', 502, false],
  ])('%s answered %d: %s', (method, status, again) => {
    expect(isRetryableAnswer({ method }, answered(status).response)).toBe(again);
  });

  it.each<[string, Partial<ExchangeFaultDetails>, boolean]>([
    ['GET', { kind: 'reset' }, true],
    ['GET', { kind: 'timeout', phase: 'reading' }, true],
    ['GET', { kind: 'tls', phase: 'connecting' }, false],
    ['GET', { kind: 'too_large', phase: 'reading' }, false],
    ['GET', { kind: 'protocol', phase: 'reading' }, false],
    ['GET', { kind: 'closed', phase: 'connecting' }, false],
    ['GET', { kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_TUNNEL_407' }, false],
    ['GET', { kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_SELF_SIGNED_CERT_IN_CHAIN' }, false],
    ['POST', { kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_TUNNEL_502' }, true],
    ['POST', { kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_TUNNEL_503' }, true],
    ['POST', { kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_ECONNREFUSED' }, true],
    ['POST', { kind: 'reset', phase: 'sent' }, false],
    ['POST', { kind: 'reset', phase: 'reading' }, false],
    ['POST', { kind: 'refused', phase: 'connecting' }, true],
    ['POST', { kind: 'dns', phase: 'connecting' }, true],
    ['POST', { kind: 'reset', phase: 'connecting' }, true],
    ['POST', { kind: 'refused', phase: 'sent' }, false],
    ['POST', { kind: 'dns', phase: 'sent' }, false],
    ['POST', { kind: 'timeout', phase: 'sent' }, false],
  ])('%s with %j: %s', (method, details, again) => {
    expect(isRetryableFault({ method }, fault(details))).toBe(again);
  });
});

describe('429 DUPLICATED_REQUEST, the same work is under way', () => {
  const duplicate = answered(429, '{"status":"DUPLICATED_REQUEST","message":"wait"}').response;

  it.each<[object, boolean]>([
    [{ method: 'POST' }, false],
    [{ method: 'DELETE' }, false],
    [{ method: 'POST', idempotencyKey: 'k-1' }, true],
    [{ method: 'POST', readOnly: true }, true],
    [{ method: 'GET' }, true],
  ])('to %j: tried again %s, and leaves no doubt', (call, again) => {
    expect(isRetryableAnswer(call as { method: string }, duplicate)).toBe(again);
    expect(isOutcomeUnknown(call as { method: string }, { response: duplicate })).toBe(false);
  });
});

describe('a call that only reads', () => {
  const call = { method: 'POST', readOnly: true };

  it('is like a GET', () => {
    expect(isRetryableAnswer(call, answered(503).response)).toBe(true);
    expect(isRetryableFault(call, fault({ kind: 'timeout', phase: 'reading' }))).toBe(true);
    expect(isRetryableFault(call, fault({ kind: 'tls' }))).toBe(false);
    expect(isOutcomeUnknown({ ...call, outcomeUnknown: true }, answered(503))).toBe(false);
  });
});

describe('a POST with a key', () => {
  const call = { method: 'POST', idempotencyKey: 'k-1' };

  it.each([
    [408, true],
    [429, true],
    [500, true],
    [503, true],
    [400, false],
    [409, false],
    [501, false],
  ])('answered %d: tried again %s', (status, again) => {
    expect(isRetryableAnswer(call, answered(status).response)).toBe(again);
  });

  it.each<[Partial<ExchangeFaultDetails>, boolean]>([
    [{ kind: 'reset' }, true],
    [{ kind: 'timeout', phase: 'reading' }, true],
    [{ kind: 'network' }, true],
    [{ kind: 'too_large', phase: 'reading' }, false],
    [{ kind: 'protocol', phase: 'reading' }, false],
    [{ kind: 'closed' }, false],
    [{ kind: 'tls', certificateRefused: true }, false],
  ])('after %j: %s', (details, again) => {
    expect(isRetryableFault(call, fault(details))).toBe(again);
  });
});

describe('isOutcomeUnknown', () => {
  it.each([
    [answered(200), true],
    [answered(303), true],
    [answered(408), true],
    [answered(501), true],
    [answered(403, '<html>Access denied'), true],
    [answered(400), false],
    [answered(401), false],
    [answered(409), false],
    [answered(429), false],
    [answered(495), true],
    [{ fault: fault({ phase: 'sent' }) }, true],
    [{ fault: fault({ phase: 'queued' }) }, false],
    [{ fault: fault({ phase: 'connecting' }) }, false],
    [{ fault: fault({ refusedInHandshake: true }) }, false],
  ])('%j: %s for a POST, and for one that was in doubt before in any case', (outcome, acted) => {
    expect(isOutcomeUnknown({ method: 'POST' }, outcome)).toBe(acted);
    expect(isOutcomeUnknown({ method: 'POST', outcomeUnknown: true }, outcome)).toBe(true);
    expect(isOutcomeUnknown({ method: 'GET', outcomeUnknown: true }, outcome)).toBe(false);
  });
});

describe('whether the same call may be sent again later (error.retryable)', () => {
  const DUPLICATED = JSON.stringify({ status: 'DUPLICATED_REQUEST' });
  const CALLS = {
    GET: () => new Call('GET', new URL('https://api.example/a'), 1_000),
    POST: () => new Call('POST', new URL('https://api.example/a'), 1_000),
    readOnly: () => Object.assign(CALLS.POST(), { readOnly: true }),
    'random key': () => withKey(true),
    'own key': () => withKey('k-1'),
  };
  function withKey(key: true | string): Call {
    const call = CALLS.POST();
    call.setKey(key);
    return call;
  }
  const json = (status: number, text: string) => {
    const { response } = answered(status);
    return { response: { ...response, body: Buffer.from(text) } };
  };
  const ALL = ['GET', 'POST', 'readOnly', 'random key', 'own key'];
  const READS = ['GET', 'readOnly'];

  it.each<[string, object, string[]]>([
    ...[500, 502, 503, 504, 408].map((status): [string, object, string[]] => [
      String(status),
      answered(status),
      [...READS, 'own key'],
    ]),
    ['429', answered(429), ALL],
    ['429 DUPLICATED_REQUEST', json(429, DUPLICATED), [...READS, 'own key']],
    ['a 200 that cannot be read', answered(200), ['own key']],
    ...[400, 401, 403, 404, 409, 422].map((status): [string, object, string[]] => [
      String(status),
      answered(status),
      [],
    ]),
    ...(['refused', 'dns', 'timeout', 'reset', 'network', 'closed'] as const).flatMap(
      (kind): [string, object, string[]][] => [
        [`${kind}, nothing sent`, { fault: fault({ kind, phase: 'connecting' }) }, ALL],
        [`${kind}, sent`, { fault: fault({ kind }) }, [...READS, 'own key']],
      ],
    ),
    ['no free connection', { fault: fault({ kind: 'timeout', phase: 'queued' }) }, ALL],
    ['a certificate of the server', { fault: fault({ kind: 'tls', phase: 'connecting' }) }, []],
    [
      'our certificate',
      { fault: fault({ kind: 'tls', certificateRefused: true, refusedInHandshake: true }) },
      [],
    ],
    ['a malformed answer', { fault: fault({ kind: 'protocol', phase: 'reading' }) }, ['own key']],
    ['a body too large', { fault: fault({ kind: 'too_large', phase: 'reading' }) }, ['own key']],
    [
      "a proxy's refusal",
      { fault: fault({ kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_TUNNEL_407' }) },
      [],
    ],
    [
      'a proxy that is down',
      { fault: fault({ kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_ECONNREFUSED' }) },
      ALL,
    ],
  ])('after %s', (_, outcome, expected) => {
    const may = Object.entries(CALLS).filter(([, make]) => outcomeFields(make(), outcome as never).retryable);
    expect(may.map(([name]) => name)).toEqual(ALL.filter((name) => expected.includes(name)));
  });

  it('is not so of a change that is in doubt from an earlier attempt, without a key of its caller', () => {
    for (const [name, make] of Object.entries(CALLS)) {
      const call = Object.assign(make(), { outcomeUnknown: true });
      expect([name, outcomeFields(call, answered(429)).retryable]).toEqual([
        name,
        [...READS, 'own key'].includes(name),
      ]);
    }
  });

  it('is so of a token that may come later', () => {
    const may = (code: TokenErrorCode) => new ServiceTokenError({ code, message: 'm' }).retryable;
    expect(
      (['token_unavailable', 'token_rate_limited', 'client_secret_unavailable'] as const).map(may),
    ).toEqual([true, true, true]);
    expect((['token_refused', 'invalid_token_response', 'oauth_not_configured'] as const).map(may)).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('RetryBudget', () => {
  it('allows 100 retries in a row, or 50 after time-outs', () => {
    for (const [afterTimeout, allowed] of [
      [false, 100],
      [true, 50],
    ] as const) {
      const budget = new RetryBudget();
      let retries = 0;
      while (budget.take(afterTimeout) !== undefined) retries += 1;
      expect(retries).toBe(allowed);
    }
  });

  it('gets back what a successful retry took, or one for each success, and never more than it had', () => {
    const budget = new RetryBudget();
    budget.giveBack(100);
    while (budget.take(false) !== undefined);
    budget.giveBack(5);
    expect(budget.take(false)).toBe(5);
    for (let call = 0; call < 4; call++) budget.giveBack();
    expect(budget.take(false)).toBeUndefined();
    budget.giveBack();
    expect(budget.take(false)).toBe(5);
  });
});
