import { describe, expect, it } from '@jest/globals';
import { type CertificateSummary } from '../../../lib/errors/index.js';
import { Call } from '../../../lib/http/call.js';
import { explainAnswer, isCredentialFault } from '../../../lib/http/explain-answer.js';
import { clientOf } from './setup.js';

const certificate = { subject: 'CN=app', fingerprint256: 'AA:BB' } as CertificateSummary;
const answer = (status: number, body = '{"status":401}') => ({
  status,
  statusText: '',
  headers: {},
  body: Buffer.from(body),
  reusedSocket: false,
  untilClose: false,
});
const PAGE = '<html>No required SSL certificate was sent</html>';
const callOf = (path: string) => new Call('GET', new URL(`https://api.example${path}`), 1_000);
const common = clientOf({}, { identity: { certificate } });

describe('explainAnswer', () => {
  it.each([
    ['mtls', 401, /appToken.*tls\.certificate.*"CN=app" \(SHA-256 AA:BB\)/, 'appToken'],
    ['app-token', 401, /^(?!.*tls\.certificate).*appToken/, 'appToken'],
    ['oauth', 401, /^(?!.*appToken).*OAuth is enabled/, 'urls.baseUrl'],
    ['mtls', 403, /appToken.*"CN=app".*what the application may do/, 'appToken'],
    ['app-token', 403, /appToken.*what the application may do/, 'appToken'],
    ['oauth', 403, /what the application may do.*OAuth is enabled/, 'urls.baseUrl'],
  ] as const)('%s, %i: says what to check', (authentication, status, hint, blamed) => {
    const explained = explainAnswer(
      answer(status),
      callOf('/a'),
      clientOf({ authentication }, { identity: { certificate } }),
    );
    expect(explained.hint).toMatch(hint);
    expect(explained.options?.[0]).toBe(blamed);
    expect(isCredentialFault(answer(status))).toBe(true);
  });

  it.each([
    [400, /set sendAppTokenWithBearer to false\.$/, 'sendAppTokenWithBearer'],
    [401, /OAuth is enabled.*app token was sent too: check appToken/, 'urls.baseUrl'],
    [403, /what the application may do.*app token was sent too: check appToken/, 'urls.baseUrl'],
    [422, undefined, undefined],
  ])(
    '%i with an app token beside the bearer: says so, and not where the bearer went alone',
    (status, hint, blamed) => {
      const oauth = clientOf({ authentication: 'oauth' });
      const bearer = { Authorization: 'Bearer b' };
      const call = callOf('/a');
      call.authenticate({ ...bearer, 'service-app-token': 'a' });
      const explained = explainAnswer(answer(status), call, oauth);
      expect(explained.hint).toEqual(hint && expect.stringMatching(hint));
      expect(explained.options?.[0]).toBe(blamed);
      call.authenticate(bearer);
      expect(explainAnswer(answer(status), call, oauth).hint ?? '').not.toMatch(/app ?token/i);
    },
  );

  it.each([
    [400, PAGE, /A proxy.*in use is "CN=app" \(SHA-256 AA:BB\)/, /a page \(HTML\) of a proxy/],
    [495, '', /A proxy.*in use is/, /a proxy before the service/],
    [496, '', /A proxy.*in use is/, /a proxy before the service misses/],
    [403, '<html>Forbidden</html>', /client certificates.*in use is/, /a page, not of the service itself/],
  ])("a proxy's %i: names the certificate in use", (status, body, hint, what) => {
    const explained = explainAnswer(answer(status, body), callOf('/a'), common);
    expect(explained).toMatchObject({
      message: expect.stringMatching(what),
      hint: expect.stringMatching(hint),
      options: expect.arrayContaining(['tls.certificate', 'tls.privateKey']),
    });
    expect(isCredentialFault(answer(status, body))).toBe(true);
    const without = explainAnswer(answer(status, body), callOf('/a'), clientOf());
    expect(without.hint).toMatch(/none is set/);
  });

  it.each([
    ['mtls', 401, '{}'],
    ['mtls', 403, '{}'],
    ['mtls', 400, PAGE],
    ['oauth', 403, '<html>Forbidden</html>'],
  ] as const)(
    'over a sidecar, which has the certificate, the hint names no option of TLS: %s, %i %s',
    (authentication, status, body) => {
      const explained = explainAnswer(
        answer(status, body),
        callOf('/a'),
        clientOf({ authentication, addresses: { baseUrl: 'http://127.0.0.1:1' } }),
      );
      expect(explained.hint).toMatch(/check what the sidecar at urls\.baseUrl shows/);
      expect(JSON.stringify(explained)).not.toContain('tls.');
    },
  );

  it.each([400, 404, 409, 422])('%i in JSON: nothing to do here', (status) => {
    expect(explainAnswer(answer(status), callOf('/customers/v1/c-1'), common).hint).toBeUndefined();
    expect(isCredentialFault(answer(status))).toBe(false);
  });

  it.each([
    [404, '{}', '/api/banks/v1', /no such path/, /path in urls\.baseUrl.*http\.trailingSlash/],
    [404, '{}', '/customers/v1/', /no such path/, /path in urls\.baseUrl/],
    [404, '<html>', '/a', /a page \(HTML\), not JSON/, /Check urls\.baseUrl/],
    [429, '{}', '/a', /too often/, /Try again later/],
    [500, '{}', '/a', /out of order/, /Nothing here to correct/],
  ])('%i %s to %s: says what it means', (status, body, path, what, hint) => {
    const explained = explainAnswer(answer(status, body), callOf(path), common);
    expect(explained.message).toMatch(what);
    expect(explained.hint).toMatch(hint);
    expect(isCredentialFault(answer(status, body))).toBe(false);
  });
});
