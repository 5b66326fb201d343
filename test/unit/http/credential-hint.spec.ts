import { describe, expect, it } from '@jest/globals';
import { type CertificateSummary } from '../../../lib/errors/index.js';
import { describeOption } from '../../helpers/describe-option.js';
import { credentialHint, isCredentialFault } from '../../../lib/http/credential-hint.js';

const certificate = { subject: 'CN=app', fingerprint256: 'AA:BB' } as CertificateSummary;
const common = { describeOption: describeOption(), certificate: () => certificate };
const answer = (status: number, body = '{"status":401}') => ({
  status,
  statusText: '',
  headers: {},
  body: Buffer.from(body),
  reusedSocket: false,
  untilClose: false,
});
const PAGE = '<html>No required SSL certificate was sent</html>';

describe('credentialHint', () => {
  it.each([
    ['mtls', undefined, 401, /SERVICE_APP_TOKEN\).*tls\.certificate.*"CN=app" \(SHA-256 AA:BB\)/],
    ['mtls', 'ksa', 401, /SERVICE_KSA_APP_TOKEN\).*SERVICE_KSA_TLS_CERTIFICATE\)/],
    ['app-token', 'ksa', 401, /^(?!.*tls\.certificate).*SERVICE_KSA_APP_TOKEN\)/],
    ['oauth', undefined, 401, /^(?!.*APP_TOKEN).*OAuth is enabled/],
    ['mtls', undefined, 403, /SERVICE_APP_TOKEN\).*"CN=app".*what the application may do/],
    ['app-token', undefined, 403, /SERVICE_APP_TOKEN\).*what the application may do/],
    ['oauth', undefined, 403, /what the application may do.*OAuth is enabled/],
  ] as const)('%s, module %s, %i: says what to check', (authentication, name, status, hint) => {
    const credentials = {
      authentication,
      describeOption: describeOption(name),
      certificate: () => certificate,
    };
    expect(credentialHint(answer(status), credentials)).toMatch(hint);
    expect(isCredentialFault(answer(status))).toBe(true);
  });

  it.each([
    [400, PAGE, /A proxy.*in use is "CN=app" \(SHA-256 AA:BB\)/],
    [496, '', /A proxy.*in use is/],
    [403, '<html>Forbidden</html>', /a page, not of the service itself.*in use is/],
  ])("a proxy's %i: names the certificate in use", (status, body, hint) => {
    const credentials = { ...common, authentication: 'oauth' } as const;
    expect(credentialHint(answer(status, body), credentials)).toMatch(hint);
    expect(isCredentialFault(answer(status, body))).toBe(true);
    expect(credentialHint(answer(status, body), { ...credentials, certificate: () => undefined })).toMatch(
      /none is set/,
    );
  });

  it.each([400, 404, 409, 422, 500])('%i in JSON: nothing', (status) => {
    const credentials = { ...common, authentication: 'mtls' } as const;
    expect(credentialHint(answer(status), credentials)).toBeUndefined();
    expect(isCredentialFault(answer(status))).toBe(false);
  });
});
