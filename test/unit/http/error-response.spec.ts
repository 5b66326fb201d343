import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { copyOf, describeError, ServiceApiError, type ApiErrorResponse } from '../../../lib/errors/index.js';
import { errorResponse } from '../../../lib/http/error-response.js';

const BEARER = 'opaque/bearer+token=with%signs';

function responseOf(body: string, headers: Record<string, string | string[]> = {}): ApiErrorResponse {
  const answer = {
    status: 422,
    statusText: '',
    body: Buffer.from(body),
    headers,
    reusedSocket: false,
    untilClose: false,
  };
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    // None.
  }
  return errorResponse(answer, json, [BEARER], 'Service-App-Token')();
}

const dataOf = (body: string): unknown => responseOf(body).data;

describe('the response of an error', () => {
  it('has the JSON as it is, of any form', () => {
    const body = {
      errors: [{ field: 'a', n: 1.5, ok: true, no: null }],
      detail: 'two\nlines ',
      deep: { list: [[1]] },
    };
    expect(responseOf(JSON.stringify(body))).toEqual({ status: 422, headers: {}, data: body });
    expect([dataOf('[1,"a"]'), dataOf('"text"'), dataOf('7'), dataOf('null')]).toEqual([
      [1, 'a'],
      'text',
      7,
      null,
    ]);
  });

  it('has no data where the body is no JSON or has over 64 KiB', () => {
    expect([dataOf('<html>'), dataOf(''), dataOf('{"cut":')]).toEqual([undefined, undefined, undefined]);
    const text = (length: number): string => JSON.stringify('x'.repeat(length - 2));
    expect(dataOf(text(65_536))).toHaveLength(65_534);
    expect(dataOf(text(65_537))).toBeUndefined();
  });

  it.each([
    ['as it is', BEARER],
    ['within a text', `The token ${BEARER} is wrong`],
    ['in other case', BEARER.toUpperCase()],
    ['percent-encoded', encodeURIComponent(BEARER)],
    ['as a form', new URLSearchParams({ bearer: BEARER }).toString()],
    ['as HTML', BEARER.replaceAll('/', '&#x2F;').replaceAll('+', '&#43;').replaceAll('=', '&#61;')],
    ['in JSON', JSON.stringify({ authorization: `Bearer ${BEARER}` })],
    ['in JSON in JSON', JSON.stringify(JSON.stringify({ [BEARER]: BEARER }))],
    ['over lines', BEARER.replace(/.{5}/g, '$&  ')],
    ['at the end of a long text', 'x '.repeat(5_000) + BEARER],
    ['a token of another', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'],
    ['a key', '-----BEGIN PRIVATE KEY-----'],
  ])('has no data if a text in it has a credential: %s', (_, echo) => {
    for (const body of [{ said: echo }, { list: [{ [echo]: 1 }] }, echo])
      expect(dataOf(JSON.stringify(body))).toBeUndefined();
    expect(responseOf('{}', { 'x-echo': echo, 'x-kept': 'said' }).headers).toEqual({ 'x-kept': 'said' });
  });

  it('is judged after the escapes of JSON are read', () => {
    const escaped = [...BEARER].map((sign) => `\\u00${sign.charCodeAt(0).toString(16)}`).join('');
    expect(dataOf(`{"${escaped}":1}`)).toBeUndefined();
    expect(dataOf(`{"a":"${escaped}"}`)).toBeUndefined();
  });

  it('has the app token and a part of a credential: they may be what the answer is about', () => {
    const data = {
      application: 'app-token-1234567890',
      part: BEARER.slice(0, 13),
      next: '/?q=%D8%A7%D9%84%D9%81',
    };
    expect(dataOf(JSON.stringify(data))).toEqual(data);
  });

  it('has no cookies and no header of credentials, whatever is in them', () => {
    const headers = {
      'set-cookie': ['a=1'],
      authorization: 'x',
      'service-app-token': 'y',
      'retry-after': '7',
      __proto__: 'z',
    };
    expect(responseOf('{}', headers).headers).toEqual({ 'retry-after': '7' });
  });

  it('sets no prototype by a key', () => {
    const data = dataOf(
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
    ) as object;
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
    expect(Object.keys(data)).toEqual(['__proto__', 'constructor']);
    expect((data as { polluted?: boolean }).polluted).toBeUndefined();
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('has no data that is nested too deep to be searched', () => {
    expect(dataOf('['.repeat(30_000) + ']'.repeat(30_000))).toBeUndefined();
  });

  it.each([
    ['backslashes', '\\'.repeat(32_000)],
    ['percent signs', '%'.repeat(65_000)],
    ['halves of escapes', '\\u00'.repeat(13_000)],
    ['ampersands', '&#'.repeat(32_000)],
    ['beginnings of a token', 'eyJ.'.repeat(16_000)],
    ['pieces of a secret', 'opaque/bearer+'.repeat(4_000)],
  ])('is made in a time that grows with its length alone: %s', (_, text) => {
    expect([text, undefined]).toContain(dataOf(JSON.stringify(text)));
  });
});

describe('an error with a response', () => {
  const SAID = 'personal data of the answer';
  const details = { message: 'a', status: 422, method: 'GET', path: '/a' };
  const response = { status: 422, headers: { 'x-said': SAID }, data: { said: SAID } };
  const made = (Class = ServiceApiError): ServiceApiError =>
    new Class({ ...details, response: () => response });
  class OfHost extends ServiceApiError {}

  it('has it behind a property, also in copies and in classes of a host', () => {
    expect(made().response).toEqual(response);
    expect((copyOf(made()) as ServiceApiError).response).toEqual(response);
    expect((copyOf(copyOf(made())) as ServiceApiError).response).toEqual(response);
    expect(made(OfHost).response).toEqual(response);
    expect(new ServiceApiError(details).response).toBeUndefined();
    expect(made()).toBeInstanceOf(ServiceApiError);
    expect(made().constructor).toBe(ServiceApiError);
  });

  it.each([
    ['itself', made],
    ['a copy', () => copyOf(made())],
    ['of a class of a host', () => made(OfHost)],
    ['within', () => ({ list: [made()], cause: new Error('b', { cause: made() }) })],
  ])('shows it nowhere: %s', (_, make) => {
    const error = make() as ServiceApiError;
    const walked: unknown[] = [];
    for (const key in error) walked.push(error[key as keyof ServiceApiError]);
    for (const key of Reflect.ownKeys(error)) walked.push(error[key as keyof ServiceApiError]);
    const all = { showHidden: true, getters: true, depth: 20, maxStringLength: Infinity } as const;
    const shown = [
      inspect(error, all),
      inspect(error, { ...all, customInspect: false }),
      inspect({ ...error }, all),
      inspect(walked, all),
      inspect(Object.getOwnPropertyDescriptors(error), all),
      inspect(structuredClone({ message: error.message, stack: error.stack }), all),
      JSON.stringify(error),
      JSON.stringify(walked),
      String(error),
      error instanceof ServiceApiError ? describeError(error) : '',
    ];
    expect(shown.filter((text) => text.includes(SAID))).toEqual([]);
  });
});
