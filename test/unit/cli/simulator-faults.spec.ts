import { describe, expect, it } from '@jest/globals';
import { FAULT_WORDS, readFault } from '../../../lib/cli/simulator-faults.js';

describe('a fault in words', () => {
  it.each([
    ['/banks/v1=503', { path: '/banks/v1', times: Infinity, fault: { status: 503 } }],
    [' /banks/v1=2000ms:3 ', { path: '/banks/v1', times: 3, fault: { delayMs: 2000 } }],
    ['token=reset', { face: 'token', times: Infinity, fault: 'reset' }],
    ['base=certificate_unknown:1', { face: 'base', times: 1, fault: { tlsAlert: 'certificate_unknown' } }],
    ['sandbox-mtls=reset-handshake', { face: 'sandbox-mtls', fault: 'reset-handshake' }],
  ])('is read: %s', (text, rule) => {
    expect(readFault(text)).toMatchObject({ where: text.trim().split('=')[0], rule });
  });

  it('has each word that the help names', () => {
    for (const word of FAULT_WORDS.named) expect(readFault(`/x=${word}`)?.rule?.fault).toBe(word);
    for (const word of FAULT_WORDS.connection) expect(readFault(`base=${word}`)?.rule?.fault).toBeDefined();
  });

  it('has a word that ends others', () => {
    expect(readFault('/banks/v1=ok')).toEqual({ where: '/banks/v1' });
  });

  it.each([
    '',
    '/banks/v1',
    'banks/v1=503',
    'bse=503',
    '/banks/v1?a=503',
    '/banks/v1=200',
    '/banks/v1=503:0',
    '/banks/v1=rest',
    '/banks/v1=toString',
    '/banks/v1=unknown_ca',
    '/banks/v1=reset-handshake',
    'base=constructor',
    '/banks/v1=ok:1',
    '/banks/v1=9999999999ms',
  ])('is refused: %j', (text) => expect(readFault(text)).toBeUndefined());
});
