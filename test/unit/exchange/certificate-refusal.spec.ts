import { describe, expect, it } from '@jest/globals';
import { type CertificateSummary } from '../../../lib/errors/index.js';
import {
  certificateVerdict,
  isHandshakeVerdict,
  reloadRefused,
} from '../../../lib/exchange/certificate-refusal.js';

const JSON_TYPE = 'application/json';
const HTML = 'text/html; charset=utf-8';

const answer = (
  status: number,
  headers: Record<string, string | undefined>,
  text: string,
  reusedSocket = false,
) => ({
  status,
  statusText: '',
  headers,
  body: Buffer.from(text),
  reusedSocket,
  untilClose: false,
});

describe('certificateVerdict', () => {
  it.each([
    ['nginx, missing', 400, HTML, '<center>No required SSL certificate was sent</center>', 'refused'],
    ['nginx, bad', 400, HTML, '<center>The SSL certificate error</center>', 'refused'],
    ['without a type', 400, undefined, ' \n<html>No required SSL certificate was sent', 'refused'],
    ['nginx, 495', 495, JSON_TYPE, '{}', 'refused'],
    ['nginx, 496', 496, undefined, '', 'refused'],
    ['a 403 that says why', 403, HTML, '<p>Client Certificate required</p>', 'refused'],
    ['HAProxy denies', 403, HTML, '<h1>403 Forbidden</h1>Request forbidden.', 'perhaps'],
    ['HAProxy, 401', 401, undefined, '<html><h1>401</h1>', 'perhaps'],
    ['another bad request', 400, HTML, '<h1>Bad Request</h1>', undefined],
    ['the service, 403', 403, JSON_TYPE, '{"status":"FORBIDDEN","message":"certificate"}', undefined],
    ['the service, 400', 400, JSON_TYPE, '{"message":"no certificate"}', undefined],
    ['plain text', 403, 'text/plain', 'no certificate', undefined],
    ['another status', 404, HTML, '<p>certificate</p>', undefined],
    ['far down the page', 400, HTML, `<html>${' '.repeat(5_000)}certificate`, undefined],
  ])('%s', (_, status, type, text, verdict) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    expect(certificateVerdict(answer(status, headers, text))).toBe(verdict);
  });
});

const page = (title: string): string =>
  `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n`;
const NGINX = page('400 The SSL certificate error');

describe('isHandshakeVerdict', () => {
  it.each<[string, number, string, string, boolean]>([
    ['nginx, bad', 400, HTML, NGINX, true],
    ['nginx, missing', 400, HTML, page('400 No required SSL certificate was sent'), true],
    ['nginx, 495', 495, HTML, '', true],
    ['nginx, 496', 496, JSON_TYPE, '{}', true],
    ['its page with another status', 403, HTML, NGINX, false],
    ['its page as text', 400, 'text/plain', NGINX, false],
    ['its title further down', 400, HTML, `<html><h1>Withheld</h1>${NGINX}`, false],
    ['another page of nginx', 400, HTML, page('400 Bad Request'), false],
    ['a page that speaks of certificates', 403, HTML, '<html>install our root certificate</html>', false],
    ['another error of certificates', 400, HTML, '<!DOCTYPE html><pre>Error: self-signed certificate', false],
  ])('%s: by the first answer of a connection only', (_, status, type, text, verdict) => {
    const headers = { 'content-type': type };
    expect(isHandshakeVerdict(answer(status, headers, text))).toBe(verdict);
    expect(isHandshakeVerdict(answer(status, headers, text, true))).toBe(false);
  });
});

describe('reloadRefused', () => {
  const reading = (result: Promise<boolean>) => {
    const asked: unknown[] = [];
    return { asked, reloadAfterRefusal: (used: unknown) => (asked.push(used), result) };
  };
  const { signal } = new AbortController();
  const used = { subject: 'CN=app' } as CertificateSummary;

  it('reads the certificate again, and tells whether it is another one', async () => {
    for (const isOther of [true, false]) {
      const identity = reading(Promise.resolve(isOther));
      expect(await reloadRefused(identity, used, signal)).toBe(isOther);
      expect(identity.asked).toEqual([used]);
    }
    const failing = reading(Promise.reject(new Error('no such file')));
    expect(await reloadRefused(failing, used, signal)).toBe(false);
  });

  it('reads nothing for a call that ended', async () => {
    const identity = reading(Promise.resolve(true));
    expect(await reloadRefused(identity, used, AbortSignal.abort())).toBe(false);
    expect(identity.asked).toEqual([]);
  });

  it('waits no longer than the call', async () => {
    const call = new AbortController();
    const reloaded = reloadRefused(reading(new Promise(() => undefined)), used, call.signal);
    call.abort();
    expect(await reloaded).toBe(false);
  });
});
