import { describe, expect, it } from '@jest/globals';
import { judgeEnd } from '../../../lib/diagnosis/judge-handshake.js';

describe('the end of a handshake', () => {
  // As OpenSSL 3.0, 3.5 and Node over a pipe spell them.
  it.each([
    ['TLS_ALERT_70', /another version of TLS/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /another version of TLS/],
    ['TLS_ALERT_112', /no host of this name/],
    ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', /no host of this name/],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', /the server ended it/],
  ])('%s', (reason, words) => {
    const fault = { kind: 'tls' as const, reason, certificateRefused: false };
    const finding = judgeEnd({
      place: {
        host: 'api.bank',
        port: 443,
        option: 'urls.baseUrl',
        described: 'urls.baseUrl',
        proxyDescribed: 'http.proxy',
      },
      facts: { established: false, fault, peerTalks: 'tls', certificates: [], askedForCertificate: false },
      certificateDescribed: 'tls.certificate',
      offerDescribed: '',
      now: 0,
    });
    expect(finding?.message).toMatch(words);
  });
});
