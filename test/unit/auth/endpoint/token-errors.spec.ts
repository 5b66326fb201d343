import { describe, expect, it } from '@jest/globals';
import { isVerdict, tokenConnectionError, tokenRefusal } from '../../../../lib/auth/endpoint/token-errors.js';
import { Secret } from '../../../../lib/config/secret.js';

const PLACE = {
  url: new URL('https://auth.example/oauth2/token'),
  option: 'urls.authUrl',
  apiOption: 'urls.baseUrl',
  describeOption: String,
};

describe('the error without a whole answer', () => {
  it.each([
    [{ kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_407' }, /Check http\.proxy/, 'http.proxy'],
    [{ kind: 'tls', reason: 'EPROTO', certificateRefused: true }, /Set oauth\.mtls/, 'oauth.mtls'],
    [{ kind: 'tls', reason: 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE' }, /Set oauth\.mtls/, 'oauth.mtls'],
    [{ kind: 'tls', reason: 'SELF_SIGNED_CERT_IN_CHAIN' }, /whole chain .* into tls\.chain/, 'tls.chain'],
    [{ kind: 'redirect', reason: 'HTTP_302' }, /into urls\.authUrl/, 'urls.authUrl'],
    [{ kind: 'dns', reason: 'ENOTFOUND' }, /Check the spelling in urls\.authUrl/, 'urls.authUrl'],
    [{ kind: 'refused', reason: 'ECONNREFUSED' }, /Check host and port of urls\.authUrl/, 'urls.authUrl'],
  ] as const)('of %j says what to do, and blames an option', (fault, hint, blamed) => {
    const error = tokenConnectionError(PLACE, fault);
    expect(error).toMatchObject({ kind: fault.kind, reason: fault.reason, method: 'POST' });
    expect(error.message).toMatch(/^No token from the token endpoint at auth\.example: .*\.$/);
    expect(error.message).toContain(`(${fault.reason})`);
    expect(error.hint).toMatch(hint);
    expect(error.options?.[0]).toBe(blamed);
  });

  it.each([
    ['CERT_HAS_EXPIRED', /has expired or is not valid yet \(.*clock says/],
    ['SELF_SIGNED_CERT_IN_CHAIN', /verified against: Node's public roots \(/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /for another host name, not for auth\.example/],
  ])('of %s says why', (reason, words) => {
    expect(tokenConnectionError(PLACE, { kind: 'tls', reason }).message).toMatch(words);
  });

  it("of an unknown issuer names tls.chain beside Node's public roots where it is set", () => {
    const fault = { kind: 'tls', reason: 'SELF_SIGNED_CERT_IN_CHAIN' } as const;
    expect(tokenConnectionError({ ...PLACE, hasChain: true }, fault).message).toMatch(
      /verified against: Node's public roots and tls\.chain, the service's public chain/,
    );
  });

  it.each([
    { kind: 'reset', phase: 'sent' },
    { kind: 'reset', phase: 'connecting' },
    { kind: 'timeout', phase: 'connecting' },
    { kind: 'timeout', phase: 'connecting', reason: 'ERR_CONNECT_TIMEOUT' },
    { kind: 'refused', phase: 'connecting' },
  ] as const)('over http: does not speak of TLS, which a sidecar does: %j', (fault) => {
    const plain = { ...PLACE, url: new URL('http://127.0.0.1:8443/oauth2/token') };
    const { message, hint } = tokenConnectionError(plain, fault);
    expect(message + hint).not.toMatch(/TLS|tls\./);
  });

  it.each(['reset', 'too_large'] as const)('of %s has nothing to check', (kind) => {
    expect(tokenConnectionError(PLACE, { kind, phase: 'sent' })).not.toHaveProperty('hint');
  });

  it('of a time-out has no option to check', () => {
    const { hint, options } = tokenConnectionError(PLACE, { kind: 'timeout', phase: 'sent' });
    expect([hint, options]).toEqual([expect.stringMatching(/endpoint is slow/), []]);
  });
});

describe('the error for a refusing answer', () => {
  const refusal = (status: number, json?: unknown, more: object = {}) =>
    tokenRefusal({
      status,
      json,
      scope: 'api',
      secrets: [new Secret('s3cret')],
      place: PLACE,
      ...more,
    });

  it.each<[number, string | undefined, object, string]>([
    [429, undefined, {}, 'token_rate_limited'],
    [400, undefined, {}, 'token_refused'],
    [499, undefined, {}, 'token_refused'],
    [403, 'invalid_scope', {}, 'token_refused'],
    [503, 'invalid_client', {}, 'token_refused'],
    [429, 'unauthorized_client', {}, 'token_refused'],
    [500, undefined, {}, 'token_unavailable'],
    [599, undefined, {}, 'token_unavailable'],
    [408, undefined, {}, 'token_unavailable'],
    [425, undefined, {}, 'token_unavailable'],
    [400, 'temporarily_unavailable', {}, 'token_unavailable'],
    [400, 'server_error', {}, 'token_unavailable'],
    [401, undefined, {}, 'token_unavailable'],
    [403, 'Forbidden', {}, 'token_unavailable'],
    [404, undefined, { isPage: true }, 'token_unavailable'],
    [403, undefined, { isPage: true }, 'token_unavailable'],
    [200, undefined, { isPage: true }, 'invalid_token_response'],
  ])('of %d, %s, %j has the code %s', (status, error, more, code) => {
    const refused = refusal(status, { error }, { retryAfter: 7, ...more });
    expect(refused).toMatchObject({ code, status, retryAfter: 7 });
  });

  const SWAPPED =
    /^Check urls\.authUrl and urls\.baseUrl: are they swapped\?.* without .*oauth\.mtls.*oauth\.clientId/;

  it.each([
    [401, 'Unauthorized', {}, /not the token endpoint.*\(HTTP 401, Unauthorized\)/, SWAPPED, 'urls.authUrl'],
    [403, undefined, {}, /not the token endpoint.*\(HTTP 403\)/, SWAPPED, 'urls.authUrl'],
    [418, undefined, { isPage: true }, /not the token endpoint.*\(HTML, HTTP 418\)/, SWAPPED, 'urls.authUrl'],
    [401, 'invalid_client', {}, /refuses the credentials/, /^Check oauth\.clientId/, 'oauth.clientSecret'],
    [
      503,
      'unauthorized_client',
      {},
      /\(HTTP 503, unauthorized_client\)/,
      /value with # needs quotes; docker run --env-file keeps quotes/,
      'oauth.clientSecret',
    ],
    [404, undefined, {}, /refuses a token/, /Check urls\.authUrl, .* without/, 'urls.authUrl'],
    [400, 'invalid_scope', {}, /\(HTTP 400, invalid_scope\)\.$/, /OAuth is enabled/, 'urls.authUrl'],
    [500, undefined, {}, /out of order/, /Nothing here to correct/, 'urls.authUrl'],
    [429, undefined, { retryAfter: 7 }, /asked too often/, /Try again in 7 s/, undefined],
  ])('of %d, %s, %j says what happened and what to do', (status, error, more, message, hint, blamed) => {
    const refused = refusal(status, { error }, more);
    expect(refused.message).toMatch(message);
    expect(refused.hint).toMatch(hint);
    expect(refused.options?.[0]).toBe(blamed);
  });

  it('takes over the code and the description of RFC 6749, never a secret', () => {
    const error = refusal(400, { error: 'invalid_scope', error_description: 'it is not for this client' });
    expect(error).toMatchObject({
      error: 'invalid_scope',
      error_description: 'it is not for this client',
    });
    const echo = refusal(400, { error: 'invalid_scope', error_description: 's3cret is not for it' });
    expect(echo.error_description).toMatch(/^\[not shown: /);
    expect(JSON.stringify(echo) + echo.message).not.toContain('s3cret');
    expect(refusal(400, { error: 's3cret' }).error).toBeUndefined();
    expect(refusal(400, { error: 'a b' }).error).toBeUndefined();
    expect(refusal(400, { error: 'e'.repeat(65) }).error).toBeUndefined();
    expect(refusal(400, { error: 7, error_description: 7 })).toMatchObject({
      error: undefined,
      error_description: undefined,
    });
  });

  it.each([
    ['invalid_client', 400, true],
    ['unauthorized_client', 500, true],
    [undefined, 401, false],
    ['invalid_grant', 400, false],
  ])('%s with %d: another secret may help: %s', (error, status, may) => {
    expect(isVerdict(refusal(status, { error }))).toBe(may);
  });
});
