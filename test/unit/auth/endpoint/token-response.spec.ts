import { describe, expect, it } from '@jest/globals';
import { Agent } from 'node:http';
import { inspect } from 'node:util';
import { type TokenGrant } from '../../../../lib/auth/access-token.js';
import { readTokenResponse } from '../../../../lib/auth/endpoint/token-response.js';
import { ClientSecret } from '../../../../lib/auth/endpoint/client-secret.js';
import { TokenEndpoint } from '../../../../lib/auth/endpoint/token-endpoint.js';
import { Secret } from '../../../../lib/config/secret.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { parseJson } from '../../../../lib/exchange/decode.js';
import { type ExchangeRequest } from '../../../../lib/exchange/exchange.types.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

const SCOPE = 'customer.c1';
const whole = { access_token: 'abc', token_type: 'bearer', expires_in: 600, scope: SCOPE };

function read(json: unknown, scope = SCOPE): TokenGrant {
  return readTokenResponse(json, scope, 200, { option: 'urls.authUrl', describeOption: String });
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

  it.each([undefined, null])('scope %j as the one asked for', (scope) => {
    expect(read({ ...whole, scope }).scope).toBe(SCOPE);
  });

  const token = (claims: unknown): string =>
    ['{"alg":"RS256"}', JSON.stringify(claims), 'signature']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.');

  it.each([
    ['an opaque token', 'b7Q~x/+='],
    ['one of the longest', 'S'.repeat(16_384)],
    ['one that only looks like a JWT', 'bm90.anNvbg.x'],
    ['a JWT with nothing but jti', token({ jti: '1' })],
    ['claims of other names', token({ scope: ['customer.read', 'bank.read'], customers: [{ id: 'c1' }] })],
    ['claims that contradict the answer', token({ scope: 'api', customer_id: 'c2', iat: 900, exp: 901 })],
  ])('%s, for nobody reads the claims', (_name, access_token) => {
    expect(read({ ...whole, access_token })).toEqual({
      accessToken: access_token,
      scope: SCOPE,
      expiresIn: 600,
    });
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
  ])('%s', (_name, json) => {
    const refusal = catchError(() => read(json));
    expect(refusal).toBeInstanceOf(ServiceTokenError);
    expect(refusal).toMatchObject({ code: 'invalid_token_response', status: 200, scope: SCOPE });
    expect(inspect(refusal)).not.toMatch(/SECRET|CRET\b/);
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
        untilClose: false,
        headers: {},
        body: Buffer.from(JSON.stringify(GRANTED)),
      };
    },
    agent: new Agent(),
    clock,
  });
  const { signal } = new AbortController();
  await endpoint.request('api', { signal, timeoutMs: 5_000, accepts: () => true, isAwaited: () => true });
  expect(exchanges).toMatchObject([
    { timeoutMs: 3_000, connectTimeoutMs: 1_500, maxResponseBytes: 1_048_576, signal },
  ]);
});
