import { describe, expect, it } from '@jest/globals';
import {
  isCredentialRefusal,
  tokenConnectionError,
  tokenRefusal,
} from '../../../../lib/auth/endpoint/token-errors.js';
import { describeOption } from '../../../helpers/describe-option.js';
import { Secret } from '../../../../lib/config/secret.js';

const URL_ = new URL('https://auth.example/oauth2/token');

describe('the error without a whole answer', () => {
  it.each([
    [{ kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_407' }, /check http\.proxy \(SERVICE_KSA_HTTP_PROXY\)/],
    [{ kind: 'tls', reason: 'TLS_ALERT_116', certificateRefused: true }, /asks for the client certificate/],
    [{ kind: 'tls', reason: 'TLS_ALERT_40' }, /may ask for a client certificate/],
    [{ kind: 'tls', reason: 'CERT_HAS_EXPIRED' }, /has expired/],
    [{ kind: 'tls', reason: 'SELF_SIGNED_CERT_IN_CHAIN' }, /Node's public roots and tls\.chain/],
    [{ kind: 'redirect', reason: 'HTTP_302' }, /redirects are not followed, check urls\.authUrl/],
    [{ kind: 'dns', reason: 'ENOTFOUND' }, /; check urls\.authUrl/],
    [{ kind: 'refused', reason: 'ECONNREFUSED' }, /; check urls\.authUrl/],
  ] as const)('of %j says what to check', (fault, hint) => {
    const error = tokenConnectionError(URL_, fault, describeOption('ksa'));
    expect(error).toMatchObject({ kind: fault.kind, reason: fault.reason, method: 'POST' });
    expect(error.message).toContain(`auth.example gave no usable answer (${fault.kind}, ${fault.reason}); `);
    expect(error.message).toMatch(hint);
  });

  it.each(['reset', 'protocol'] as const)('of %s over http: names the other side of it', (kind) => {
    const plain = new URL('http://127.0.0.1:8443/oauth2/token');
    expect(tokenConnectionError(plain, { kind }, describeOption()).message).toMatch(
      /begins with http:, and a server that speaks TLS .*: check urls\.authUrl/,
    );
    expect(tokenConnectionError(plain, { kind: 'timeout' }, describeOption()).message).toMatch(
      /\(timeout\)$/,
    );
  });

  it.each(['reset', 'timeout', 'too_large'] as const)('of %s has nothing to check', (kind) => {
    expect(tokenConnectionError(URL_, { kind }, describeOption()).message).toMatch(
      new RegExp(`\\(${kind}\\)$`),
    );
  });
});

describe('the error for a refusing answer', () => {
  const refusal = (status: number, json?: unknown, more: object = {}) =>
    tokenRefusal({
      status,
      json,
      scope: 'api',
      secrets: [new Secret('s3cret')],
      describeOption: describeOption('ksa'),
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
    [401, undefined, {}, /Check oauth\.clientId/],
    [403, undefined, {}, /Check oauth\.clientId/],
    [400, 'invalid_client', {}, /Check oauth\.clientId/],
    [404, undefined, {}, /Check the address: urls\.authUrl/],
    [405, undefined, {}, /Check the address: urls\.authUrl/],
    [400, undefined, { proxy: 'refused' }, /A proxy before it asks for the client certificate/],
    [403, undefined, { proxy: 'perhaps' }, /not of the endpoint itself.*Check oauth\.clientId/],
    [400, 'invalid_scope', {}, /\(HTTP 400, invalid_scope\)$/],
  ])('of %d, %s, %j says what to check', (status, error, more, hint) => {
    expect(refusal(status, { error }, more).message).toMatch(hint);
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
