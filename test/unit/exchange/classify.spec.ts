import { describe, expect, it } from '@jest/globals';
import { classify, isProxyRefusal } from '../../../lib/exchange/classify.js';

const coded = (code: string | undefined, message = '') => Object.assign(new Error(message), { code });

describe('classify', () => {
  it.each([
    ['ECONNREFUSED', 'refused'],
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ETIMEDOUT', 'timeout'],
    ['ECONNRESET', 'reset'],
    ['EPIPE', 'reset'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
    ['HPE_INVALID_CONSTANT', 'protocol'],
    ['ERR_PROXY_TUNNEL_407', 'proxy'],
    ['ERR_AGENT_CLOSED', 'closed'],
    ['EMFILE', 'network'],
  ])('%s is %s', (code, kind) => {
    expect(classify(coded(code))).toEqual({ kind, reason: code, certificateRefused: false });
  });

  // The same alert by OpenSSL 3.0, by 3.5, and where Node only has the system's word for it.
  it.each([
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', ''],
    ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', ''],
    [
      'EPROTO',
      'write EPROTO 80:error:0A000410:SSL routines:ssl3_read_bytes:ssl/tls alert handshake failure:rec_layer_s3.c:1602:SSL alert number 40',
    ],
  ])('%s: handshake_failure', (code, message) => {
    expect(classify(coded(code, message))).toEqual({
      kind: 'tls',
      reason: 'TLS_ALERT_40',
      certificateRefused: false,
    });
  });

  it.each([
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', ''],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', ''],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', ''],
    ...[42, 43, 44, 45, 46, 48, 49, 116].map((alert) => ['EPROTO', `SSL alert number ${alert}`]),
  ])('%s %s is about our certificate', (code, message) => {
    expect(classify(coded(code, message))).toMatchObject({ kind: 'tls', certificateRefused: true });
  });

  it.each([41, 47, 50, 115])('alert %d is not', (alert) => {
    expect(classify(coded('EPROTO', `SSL alert number ${alert}`)).certificateRefused).toBe(false);
  });

  it('the first of several addresses stands for all', () => {
    const all = new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]);
    expect(classify(all)).toMatchObject({ kind: 'refused', reason: 'ECONNREFUSED' });
  });

  it.each([
    ['socket hang up', 'reset'],
    ['aborted', 'reset'],
    ['anything else', 'network'],
  ])('without a code, "%s" is %s; the text is not kept', (message, kind) => {
    expect(classify(coded(undefined, message))).toEqual({
      kind,
      reason: undefined,
      certificateRefused: false,
    });
  });

  it.each([
    ['ERR_PROXY_TUNNEL_407', true],
    ['ERR_PROXY_TUNNEL_403', true],
    ['ERR_PROXY_CERT_HAS_EXPIRED', true],
    ['ERR_PROXY_TUNNEL_503', false],
    ['ERR_PROXY_TUNNEL_ENDED', false],
    ['ERR_PROXY_TIMEOUT', false],
    ['ERR_PROXY_ECONNREFUSED', false],
    ['ERR_PROXY_EHOSTUNREACH', false],
  ])('%s would come again from the proxy: %j', (reason, refuses) => {
    expect(isProxyRefusal(classify(coded(reason)))).toBe(refuses);
    expect(isProxyRefusal({ kind: 'network', reason })).toBe(false);
  });

  it.each([undefined, null, 'a text', 7])('%p is a fault of the network', (thrown) => {
    expect(classify(thrown)).toMatchObject({ kind: 'network', certificateRefused: false });
  });
});
