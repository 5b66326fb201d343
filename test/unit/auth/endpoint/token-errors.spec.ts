import { describe, expect, it } from '@jest/globals';
import {
  isCredentialRefusal,
  tokenConnectionError,
  tokenRefusal,
} from '../../../../lib/auth/endpoint/token-errors.js';
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
  /** A new secret ends the running production where only the addresses are wrong. */
  const SWAPPED =
    /^Check urls\.authUrl and urls\.baseUrl.*swapped.*Then check oauth\.clientId and oauth\.clientSecret.*Last of all.*a new secret makes the one before invalid\.$/;
  const refusal = (status: number, json?: unknown, more: object = {}) =>
    tokenRefusal({
      status,
      json,
      scope: 'api',
      secrets: [new Secret('s3cret')],
      place: PLACE,
      ...more,
    });

  it.each([
    [429, 'token_rate_limited'],
    [499, 'token_refused'],
    [500, 'token_unavailable'],
    [599, 'token_unavailable'],
    [400, 'token_refused'],
  ])('of %d has the code %s', (status, code) => {
    expect(refusal(status, undefined, { retryAfter: 7 })).toMatchObject({ code, status, retryAfter: 7 });
  });

  it.each([
    [
      401,
      'Unauthorized',
      {},
      /HTTP 401, Unauthorized\), but not with an error of OAuth/,
      SWAPPED,
      'urls.authUrl',
    ],
    [401, undefined, {}, /refuses \(HTTP 401\), but not with an error of OAuth/, SWAPPED, 'urls.authUrl'],
    [403, undefined, {}, /refuses \(HTTP 403\), but not with an error of OAuth/, SWAPPED, 'urls.authUrl'],
    [401, 'invalid_client', {}, /refuses the credentials/, /^Check oauth\.clientId/, 'oauth.clientSecret'],
    [403, 'invalid_request', {}, /refuses the credentials/, /^Check oauth\.clientId/, 'oauth.clientSecret'],
    [400, 'invalid_client', {}, /\(HTTP 400, invalid_client\)/, /Check oauth\./, 'oauth.clientSecret'],
    [404, undefined, {}, /no token endpoint/, /Check urls\.authUrl: .* without/, 'urls.authUrl'],
    [405, undefined, {}, /no token endpoint/, /Check urls\.authUrl: .* without/, 'urls.authUrl'],
    [
      400,
      undefined,
      { proxy: 'refused' },
      /asks for the client certificate/,
      /two addresses swapped\? If they are right, set oauth\.mtls/,
      'urls.authUrl',
    ],
    [
      403,
      undefined,
      { proxy: 'perhaps' },
      /not the token endpoint/,
      /swapped\?.*Check oauth\.clientId/,
      'urls.authUrl',
    ],
    [
      400,
      undefined,
      { isPage: true },
      /a page \(HTML, HTTP 400\)/,
      /swapped\?.* gets it with oauth\.mtls/,
      'urls.authUrl',
    ],
    [418, undefined, { isPage: true }, /a login page/, /Check urls\.authUrl/, 'urls.authUrl'],
    [400, 'invalid_scope', {}, /\(HTTP 400, invalid_scope\)\.$/, /OAuth enabled/, 'oauth.clientId'],
    [500, undefined, {}, /out of order/, /Nothing here to correct/, 'urls.authUrl'],
    [429, undefined, { retryAfter: 7 }, /asked too often/, /Try again in 7 s/, undefined],
    [418, undefined, {}, /refuses a token/, /oauth\.clientSecret/, 'urls.authUrl'],
  ])('of %d, %s, %j says what happened and what to do', (status, error, more, message, hint, blamed) => {
    const refused = refusal(status, { error }, more);
    expect(refused.message).toMatch(message);
    expect(refused.hint).toMatch(hint);
    expect(refused.options?.[0]).toBe(blamed);
  });

  it.each([
    ['s3cret ', 'begins or ends with a blank'],
    ["'s3cret'", 'is in quotes'],
    ['s3cret\r\n', 'begins or ends with a line break or a tab'],
    ['a secret', undefined],
  ])('of invalid_client says what is odd about the secret that was sent: %j', (secret, oddity) => {
    const secrets = [new Secret(secret), new Secret(' other')];
    const { hint } = refusal(401, { error: 'invalid_client' }, { secrets });
    const said = oddity && `enabled for the application. The secret that was sent ${oddity}: `;
    if (said) expect(hint).toContain(said);
    else expect(hint).toMatch(/enabled for the application\.$/);
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
    [{ error: 'invalid_client', status: 400 }, true],
    [{ status: 401 }, true],
    [{ status: 403 }, true],
    [{ status: 400, error: 'invalid_grant' }, false],
  ])('%j: another secret may help: %s', (error, may) => {
    expect(isCredentialRefusal(error)).toBe(may);
  });
});
