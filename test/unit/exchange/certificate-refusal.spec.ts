import { describe, expect, it } from '@jest/globals';
import { certificateVerdict } from '../../../lib/exchange/certificate-refusal.js';

const JSON_TYPE = 'application/json';
const HTML = 'text/html; charset=utf-8';

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
    expect(certificateVerdict({ status, statusText: '', headers, body: Buffer.from(text) })).toBe(verdict);
  });
});
