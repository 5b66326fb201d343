import { describe, expect, it } from '@jest/globals';
import { judgeClientCertificate, judgeEnd } from '../../../../lib/cli/doctor/judge-handshake.js';

const place = {
  host: 'api.bank',
  port: 443,
  option: 'urls.baseUrl',
  url: new URL('https://api.bank'),
  server: 'api' as const,
  describeOption: (option: string) => option,
};
const judgement = { place };

it('says that there is nothing to do where a client certificate is asked for and not needed', () => {
  const facts = { established: true, certificates: [], askedForCertificate: true };
  const { status, message } = judgeClientCertificate({ ...judgement, facts });
  expect(status).toBe('skipped');
  expect(message).toMatch(/ may be optional, .* There is nothing to do here: /);
});

describe('the end of a handshake', () => {
  // As OpenSSL 3.0, 3.5 and Node over a pipe spell them.
  it.each([
    ['TLS_ALERT_70', /another version of TLS/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /another version of TLS/],
    ['TLS_ALERT_112', /no host of this name/],
    ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', /no host of this name/],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', /the server ended the TLS handshake/],
  ])('%s', (reason, words) => {
    const fault = { kind: 'tls' as const, reason, certificateRefused: false };
    const finding = judgeEnd({
      ...judgement,
      facts: { established: false, fault, peerTalks: 'tls', certificates: [], askedForCertificate: false },
    });
    expect(finding?.message).toMatch(words);
  });
});
