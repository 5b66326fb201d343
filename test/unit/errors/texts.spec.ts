import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { holdsSecret } from '../../../lib/errors/clean-text.js';
import {
  cleanText,
  describeError,
  explain,
  ServiceApiError,
  ServiceConnectionError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { describeOption } from '../../helpers/describe-option.js';

const NOT_SHOWN = '[not shown: it contains a secret or a part of one]';
/** Without eight letters or digits in a row. */
const SIGNS = 'Own&<secret>"of" +/more\\than=20 ü-pieces';
const ROW = 'k4Xq9ZtPb81=/+with-more';

const json = (text: string): string => JSON.stringify(text).slice(1, -1);
const html = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('/', '&#x2F;')
    .replaceAll('+', '&#43;');
const phpJson = (text: string): string =>
  json(text)
    .replace(/[&<>]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`)
    .replaceAll('/', '\\/');
const form = (text: string): string => new URLSearchParams({ s: text }).toString().slice(2);

/** How an answer may repeat what it got. */
const FORMS: [string, (text: string) => string][] = [
  ['as it is', (text) => text],
  ['in other case', (text) => text.toUpperCase()],
  ['as HTML', html],
  ['as HTML in JSON', (text) => json(html(text))],
  ['as JSON', json],
  ['as JSON with \\/ and \\u0026', phpJson],
  ['over lines', (text) => text.replace(/.{6}/g, '$&\r\n  ')],
  ['with invisible characters', (text) => text.replace(/.{3}/g, '$&\u200b')],
];
const escapedWhole = (text: string, to: (code: string) => string): string =>
  [...text].map((sign) => to(sign.charCodeAt(0).toString(16).padStart(2, '0'))).join('');

describe('cleanText shows nothing of a text', () => {
  it.each(FORMS)('with a secret %s', (_, encode) => {
    for (const secret of [SIGNS, ROW])
      for (const before of ['', 'a', 'abc']) {
        const shown = cleanText(`no ${before} ${encode(before + secret)}, here`, ['other', secret], 200);
        expect(shown).toBe(NOT_SHOWN);
      }
  });

  it.each([
    ['a form', form],
    ['an address', encodeURIComponent],
    ['an address in lower case', (text: string) => encodeURIComponent(text).toLowerCase()],
  ])('with a secret as in %s', (_, encode) => {
    for (const secret of ['Own&<secret>"of" +/more', 'a+b/c d=e&f%g-hijk', ROW])
      expect(cleanText(`no ${encode(secret)}, here`, [secret], 200)).toBe(NOT_SHOWN);
  });

  it.each<[string, (code: string) => string]>([
    ['percent signs', (code) => `%${code}`],
    ['numbers of HTML', (code) => `&#x${code};`],
    ['escapes of JSON', (code) => `\\u00${code}`],
  ])('that is in %s, whatever it says', (_, to) => {
    expect(cleanText(`no ${escapedWhole('whatever', to)} here`, [], 200)).toBe(NOT_SHOWN);
    expect(cleanText(`no ${escapedWhole('short 1', to)} here`, [], 200)).not.toBe(NOT_SHOWN);
  });

  it.each<[string, (code: string) => string]>([
    ['percent signs', (code) => `%${code}`],
    ['percent signs, twice', (code) => `%25${code}`],
    ['numbers of HTML', (code) => `&#x${code};`],
    ['decimal numbers of HTML', (code) => `&#${parseInt(code, 16)};`],
    ['escapes of JSON', (code) => `\\u00${code}`],
  ])('and a body with a secret in %s holds it', (_, to) => {
    for (const secret of [SIGNS, ROW]) {
      expect(holdsSecret(`no ${escapedWhole(secret, to)} here`, ['other', secret])).toBe(true);
      expect(holdsSecret(`no ${escapedWhole('Riyadh, and more', to)} here`, ['other', secret])).toBe(false);
    }
  });

  it('with 8 letters or digits in a row of a secret, or with a shorter one', () => {
    expect(cleanText('no 4Xq9ZtPb here', [ROW], 200)).toBe(NOT_SHOWN);
    expect(cleanText('no 4Xq9Z-tPb here', [ROW], 200)).not.toBe(NOT_SHOWN);
    expect(cleanText('no a-1 here', ['A-1'], 200)).toBe(NOT_SHOWN);
  });

  it('with a secret that is cut off', () => {
    expect(cleanText(`${'x'.repeat(195)}topsecret`, ['topsecret'], 200)).toBe(NOT_SHOWN);
  });

  it.each([
    ['PEM', '-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----'],
    ['PEM as JSON', '-----BEGIN PRIVATE KEY-----\\nMIGH'],
    ['PEM of a form', '-----BEGIN+PRIVATE+KEY-----'],
    ['a token', 'eyJhbGciOi.eyJzdWIi.c2ln'],
    ['a token, cut before its second dot', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIx'],
    ['a token, cut right after its first dot', 'eyJhbGciOiJSUzI1NiJ9.eyJ'],
    ['a token, cut before its first dot', 'eyJhbGciOiJSUzI1NiIsImtpZCI6'],
    ['a JWE', 'eyJhbGciOiJkaXIifQ.a2V5.aXY.Y2lwaGVy.dGFn'],
    ['a JWE without a key', 'eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVy.dGFn'],
  ])("with somebody else's %s", (_, token) => {
    expect(cleanText(`bad ${token} here`, [], 200)).toBe(NOT_SHOWN);
  });
});

describe('cleanText shows', () => {
  it.each([
    'eyJ',
    'eyJa.b',
    'version 1.2.3',
    'keyJournalEntryOfTheCustomer.name',
    'the-eyJournalEntryOfCustomer',
    'The client secret is wrong: 100 % of <b>it</b> &amp; more',
    '6f1c0b0e-54f2-4c5c-9a0e-1f2d3c4b5a69',
    'own&<sec',
    'a secret, and of more',
  ])('%j as it is', (text) =>
    expect(cleanText(text, ['a-secret-with-more', SIGNS.slice(1), ''], 200)).toBe(text),
  );

  it('one line of the length that is asked for', () => {
    expect(cleanText(` a\u200b\r\n\tb${'c'.repeat(300)}`, ['secret'], 10)).toBe('a bccccccc…');
    expect(cleanText('0123456789', [], 10)).toBe('0123456789');
  });
});

it.each(['eyJ', 'eyJa.', '-----BEGIN ', 'a-', '\u200b', ' ', '%25', '&amp;', '\\u0026', '\\', '%'])(
  'cleanText is done with 10 MB of %j at once, also with such secrets',
  (part) => {
    const text = part.repeat(10_000_000 / part.length);
    expect(cleanText(text, ['secret', text.slice(0, 10_000)], 500).length).toBeLessThanOrEqual(501);
  },
  2_000,
);

const HINT = 'Check oauth.clientId and oauth.clientSecret: both of the application of this environment.';
const refused = (hint: string | undefined = HINT, options = ['oauth.clientSecret', 'oauth.clientId']) =>
  new ServiceTokenError({ code: 'token_refused', message: 'It refuses them.', hint, options });

describe('a hint', () => {
  it('is data, and the line of the stack below the message; the message does without it', () => {
    const error = refused();
    expect(error.message).toBe('It refuses them.');
    expect(error.toJSON()).toMatchObject({ hint: HINT, options: ['oauth.clientSecret', 'oauth.clientId'] });
    expect(error.stack).toMatch(/^\w*Error: It refuses them\.\nCheck oauth\.clientId and [^\n]+\.\n/);
    expect(inspect(error)).toContain(HINT);
  });

  it('is about the options that it names, each with its variable once, unless its row says another', () => {
    const hint = 'Check {address} and {appToken}; {address} is for the {environment}.';
    const values = { environment: 'sandbox' };
    const names = { option: 'urls.baseUrl', describeOption: describeOption('ksa') };
    expect(explain('No answer', { hint }, values, names)).toEqual({
      message: 'No answer',
      hint: 'Check urls.baseUrl (SERVICE_KSA_BASE_URL) and appToken (SERVICE_KSA_APP_TOKEN); urls.baseUrl is for the sandbox.',
      options: ['urls.baseUrl', 'appToken'],
    });
    expect(explain('', { hint, options: ['http.proxy'] }, values, names).options).toEqual(['http.proxy']);
  });

  it('is absent where there is nothing to do', () => {
    const error = new ServiceTokenError({ code: 'token_refused', message: 'It refuses them.' });
    expect(Object.keys(error)).not.toEqual(expect.arrayContaining(['hint']));
    expect(error.stack).not.toContain('Check');
  });
});

describe('the line of the log about an error', () => {
  it('has the call, what happened, the correlation id and what to do', () => {
    const call = { method: 'GET', path: '/banks/v1', correlationId: 'id-1' };
    const message = 'GET /banks/v1: HTTP 503: the service is out of order.';
    const api = new ServiceApiError({ ...call, status: 503, message, hint: 'Try again later.' });
    expect(describeError(api)).toBe(
      'api_error: GET /banks/v1: HTTP 503: the service is out of order; correlation id id-1. Try again later.',
    );
    const parsed = new ServiceApiError({
      ...call,
      code: 'invalid_response',
      status: 200,
      message: 'Not a list.',
    });
    expect(describeError(parsed)).toBe('invalid_response: GET /banks/v1: Not a list; correlation id id-1');
    expect(describeError(refused())).toBe(`token_refused: It refuses them. ${HINT}`);
    const closed = new ServiceConnectionError({
      kind: 'closed',
      message: 'Shut down.',
      outcomeUnknown: true,
    });
    expect(describeError(closed)).toBe('connection_closed: Shut down; it may have been carried out');
  });
});
