import { describe, expect, it } from '@jest/globals';
import { Agent } from 'node:http';
import { inspect } from 'node:util';
import { type TokenGrant } from '../../../../lib/auth/access-token.js';
import { readTokenResponse } from '../../../../lib/auth/check-token.js';
import { ClientSecret } from '../../../../lib/auth/endpoint/client-secret.js';
import { TokenEndpoint } from '../../../../lib/auth/endpoint/token-endpoint.js';
import { Secret } from '../../../../lib/config/secret.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { parseJson } from '../../../../lib/exchange/decode.js';
import { type ExchangeRequest } from '../../../../lib/exchange/exchange.types.js';
import { FakeClock } from '../../../helpers/fake-clock.js';
import { jwt } from '../fakes.js';

const SCOPE = 'customer.c1';
const NOW_S = 100_000;
const whole = { access_token: 'abc', token_type: 'bearer', expires_in: 600, scope: SCOPE };

function read(json: unknown, scope = SCOPE): TokenGrant {
  return readTokenResponse(
    json,
    scope,
    200,
    { option: 'urls.authUrl', describeOption: String },
    NOW_S * 1000,
  );
}

describe('readTokenResponse accepts', () => {
  it('the answer that docs/service.md shows', () => {
    expect(read(whole)).toEqual({ accessToken: 'abc', scope: SCOPE, expiresIn: 600 });
  });

  it.each(['Bearer', 'BEARER', 'bearer'])('token_type %s', (token_type) => {
    expect(read({ ...whole, token_type }).accessToken).toBe('abc');
  });

  it.each([
    ['600', 600],
    [undefined, 0],
    [null, 0],
    [0, 0],
    ['0', 0],
    [2.9, 2],
    [1e15, 2_147_483],
    ['9'.repeat(400), 2_147_483],
  ])('expires_in %j as %j', (expires_in, seconds) => {
    expect(read({ ...whole, expires_in }).expiresIn).toBe(seconds);
  });

  it.each([
    [{ iat: 1_000, exp: 1_300 }, 300],
    [{ iat: '1000', exp: '1300' }, 300],
    [{ iat: 1_000.5, exp: 1_002 }, 1],
    [{ iat: 1_000, exp: 1_900 }, 600],
    // It says nothing of its life, or nothing that can be.
    [{ exp: 1_300 }, 600],
    [{ iat: 1_300 }, 600],
    [{ iat: 1_300, exp: 1_300 }, 600],
    [{ iat: 1_300, exp: 1_000 }, 600],
    [{ iat: null, exp: {} }, 600],
  ])('no longer than a token with %j says itself: %s s of 600', (claims, seconds) => {
    expect(read({ ...whole, access_token: jwt(claims) }).expiresIn).toBe(seconds);
  });

  it.each([
    ['its whole life', { iat: NOW_S, exp: NOW_S + 600 }, 600],
    ['by a clock that is behind: no more than its whole life', { iat: NOW_S + 50, exp: NOW_S + 650 }, 600],
    ['out of a cache: what is left', { iat: NOW_S - 3_000, exp: NOW_S + 600 }, 600],
    ['without iat: what is left', { exp: NOW_S + 60.5 }, 60],
    ['by a clock that runs ahead: none', { iat: NOW_S - 700, exp: NOW_S - 100 }, 0],
    ['a life that cannot be: what is left', { iat: NOW_S + 900, exp: NOW_S + 600 }, 600],
    ['no end: none', { iat: NOW_S }, 0],
  ])('no expires_in: that of the token itself, %s', (_name, claims, seconds) => {
    const access_token = jwt(claims);
    expect(read({ ...whole, access_token, expires_in: undefined }).expiresIn).toBe(seconds);
    expect(read({ ...whole, access_token, expires_in: null }).expiresIn).toBe(seconds);
    expect(read({ ...whole, access_token, expires_in: 0 }).expiresIn).toBe(0);
  });

  it.each([undefined, null])('scope %j as the one asked for', (scope) => {
    expect(read({ ...whole, scope }).scope).toBe(SCOPE);
  });

  it.each([
    ['that says nothing', {}],
    ['for this customer', { customer_id: 'c1', scope: SCOPE }],
    ['with a list of scopes', { scope: [SCOPE] }],
  ])('a JWT %s', (_name, payload) => {
    expect(read({ ...whole, access_token: jwt(payload) }).scope).toBe(SCOPE);
  });

  it.each(['a.b.c', '..', 'bm90.anNvbg.x'])('%s, which only looks like a JWT', (access_token) => {
    expect(read({ ...whole, access_token }).accessToken).toBe(access_token);
  });
});

describe('readTokenResponse refuses', () => {
  it.each([
    ['HTML', parseJson('<html>SECRET</html>')],
    ['truncated JSON', parseJson('{"access_token":"SECRET')],
    ['null', null],
    ['a list', []],
    ['a text', 'SECRET'],
    ['an empty object', {}],
    ...[
      undefined,
      null,
      '',
      7,
      {},
      ['SECRET'],
      'SE\r\nCRET',
      'SE CRET',
      'SÉCRET',
      'SECRET\n',
      'S'.repeat(16_385),
    ].map((access_token): [string, unknown] => [
      `access_token ${inspect(access_token).slice(0, 30)}`,
      { ...whole, access_token },
    ]),
    ...[-1, '-1', NaN, 'NaN', '', '1e3', '6 0', {}, [], true, '2030-01-01T00:00:00Z'].map(
      (expires_in): [string, unknown] => [`expires_in ${inspect(expires_in)}`, { ...whole, expires_in }],
    ),
    ...[undefined, null, '', 'mac', 'DPoP', 7].map((token_type): [string, unknown] => [
      `token_type ${inspect(token_type)}`,
      { ...whole, token_type },
    ]),
    ...['', 'api', `${SCOPE} api`, 'customer.c', 'customer.c12', [SCOPE], 7].map(
      (scope): [string, unknown] => [`scope ${inspect(scope)}`, { ...whole, scope }],
    ),
    ['a JWT for another customer', { ...whole, access_token: jwt({ customer_id: 'c2' }) }],
    ['a JWT of another scope', { ...whole, access_token: jwt({ scope: 'api' }) }],
    ['a JWT of more scopes', { ...whole, access_token: jwt({ scope: [SCOPE, 'api'] }) }],
  ])('%s', (_name, json) => {
    const refusal = catchError(() => read(json));
    expect(refusal).toBeInstanceOf(ServiceTokenError);
    expect(refusal).toMatchObject({ code: 'invalid_token_response', status: 200, scope: SCOPE });
    expect(inspect(refusal)).not.toMatch(/SECRET|CRET\b/);
  });

  it('a customer token where api was asked for', () => {
    expect(() => read({ ...whole, scope: undefined, access_token: jwt({ scope: SCOPE }) }, 'api')).toThrow(
      ServiceTokenError,
    );
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('It did not throw');
}

const GRANTED = { access_token: 'token', token_type: 'bearer', expires_in: 600, scope: 'api' };

it('an exchange has the time that reading the secret left, half of it to connect, and 1 MiB for its answer', async () => {
  const clock = new FakeClock();
  const exchanges: ExchangeRequest[] = [];
  const endpoint = new TokenEndpoint({
    userAgent: 'spec/1',
    place: {
      url: new URL('https://auth.example/oauth2/token'),
      option: 'urls.authUrl',
      apiOption: 'urls.baseUrl',
      describeOption: String,
    },
    clientId: 'c',
    clientSecret: new ClientSecret(
      async () => {
        await clock.advance(2_000);
        return new Secret('s');
      },
      clock,
      String,
    ),
    exchange: async (request) => {
      exchanges.push(request);
      return {
        status: 200,
        statusText: '',
        reusedSocket: false,
        untilClose: false,
        headers: {},
        body: Buffer.from(JSON.stringify(GRANTED)),
      };
    },
    agent: () => new Agent(),
    clock,
  });
  const { signal } = new AbortController();
  await endpoint.request('api', { signal, timeoutMs: 5_000, accepts: () => true, isAwaited: () => true });
  expect(exchanges).toMatchObject([
    { timeoutMs: 3_000, connectTimeoutMs: 1_500, maxResponseBytes: 1_048_576, signal },
  ]);
});
