import { describe, expect, it } from '@jest/globals';
import axios from 'axios';
import { ArrayNotEmpty, IsOptional, IsString, Length } from 'class-validator';
import { validateInput } from '../../../lib/http/validate-input.js';

class Input {
  @IsString()
  @Length(1, 5)
  name!: string;

  @IsOptional()
  @ArrayNotEmpty()
  @IsString({ each: true })
  kinds?: string[];
}

describe('validateInput', () => {
  it('returns an instance of the class', () => {
    const input = validateInput(Input, { name: 'a', kinds: ['b'] });
    expect(input).toBeInstanceOf(Input);
    expect({ ...input }).toEqual({ name: 'a', kinds: ['b'] });
  });

  it.each<[unknown, object[]]>([
    ['text', [{ property: 'input', message: 'must be an object' }]],
    [null, [{ property: 'input', message: 'must be an object' }]],
    [[], [{ property: 'input', message: 'must be an object' }]],
    [{}, [{ property: 'name', message: 'must be longer than or equal to 1 characters' }]],
    [{ name: 'a', other: 1 }, [{ property: 'other', message: 'is not a known field' }]],
    [
      { name: 'a', ['x'.repeat(99)]: 1 },
      [{ property: `${'x'.repeat(64)}…`, message: 'is not a known field' }],
    ],
    [{ name: 'a', kinds: [] }, [{ property: 'kinds', message: expect.any(String) }]],
    [
      JSON.parse('{"name": "a", "__proto__": {}}'),
      [{ property: 'input', message: 'holds a property name that is not allowed' }],
    ],
  ])('refuses %j', (input, faults) => {
    expect(thrownBy(() => validateInput(Input, input))).toMatchObject({ code: 'invalid_request', faults });
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

// A host may have changed axios's defaults before it loads this package.
const axiosOwn = axios.defaults.transformRequest;
axios.defaults.transformRequest = [() => 'of the host'];
const { setUp, errorOf } = await import('./setup.js');

const nested = { a: { b: [1, { c: 'ü' }] }, none: null, missing: undefined, at: new Date(0), yes: true };
const buffer = new TextEncoder().encode('0123456789').buffer;
const file = new File(['bytes'], 'n.txt', { type: 'text/x' });
const filled = (): FormData => {
  const form = new FormData();
  form.append('a', 'b');
  form.append('list[]', '1');
  form.append('file', file);
  return form;
};

const BODIES: [string, unknown][] = [
  ['an object', nested],
  ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
  ['an empty object', {}],
  ['an array', [1, 'a', null]],
  ['a Date', new Date(0)],
  ['an object with toJSON', { toJSON: () => ({ b: 1 }) }],
  ['toJSON that gives nothing', { toJSON: () => undefined }],
  ['a Map', new Map([['a', 1]])],
  [
    'an instance',
    new (class Customer {
      readonly id = 1;
    })(),
  ],
  [
    'an object with bytes and special keys',
    {
      bytes: Buffer.from('ab'),
      'x{}': { y: 1 },
      'l[]': [1, 2],
      ' k ': 'v',
      view: new Uint8Array(buffer, 1, 2),
    },
  ],
  ['an object with a file', { file }],
  ['a string', 'text'],
  ['JSON as a string', ' {"a":1}\n'],
  ['an empty string', ''],
  ['a number', 5],
  ['true', true],
  ['null', null],
  ['nothing', undefined],
  ['a bigint in an object', { a: 1n }],
  ['a Buffer', Buffer.from('bytes')],
  ['a Uint8Array of a part', new Uint8Array(buffer, 2, 3)],
  ['a Uint16Array', new Uint16Array(buffer, 2, 2)],
  ['a DataView', new DataView(buffer, 1, 4)],
  ['an ArrayBuffer', buffer],
  ['a Blob', new Blob(['blob'], { type: 'text/y' })],
  ['a File', file],
];
/** They are sent as they are with a type of JSON too, of which axios would make JSON. */
const FORMS: [string, unknown][] = [
  ['URLSearchParams', new URLSearchParams({ a: '1 ü' })],
  ['a form', filled()],
];

const TYPES = [
  undefined,
  'application/json',
  'application/json;charset=utf-8',
  'application/vnd.api+json',
  'text/plain',
];

describe('a body', () => {
  it.each([...BODIES, ...FORMS])(
    '%s goes over the wire as axios would encode it, with any content type',
    async (what, data) => {
      const { axios: client, arrived } = await setUp();
      const sent = async (type: string | undefined, options: object): Promise<unknown> => {
        const headers = type === undefined ? {} : { 'Content-Type': type };
        const failure = await client.post('/a', data, { headers, ...options }).then(
          () => undefined,
          () => 'refused',
        );
        const { body, headers: seen } = arrived.pop() ?? {};
        const boundary = /boundary=(\S+)/.exec(String(seen?.['content-type']))?.[1];
        return JSON.stringify([failure, seen?.['content-type'], seen?.['content-length'], body]).replaceAll(
          boundary ?? ' ',
          'B',
        );
      };
      const isForm = FORMS.some(([name]) => name === what);
      for (const type of TYPES.filter((each) => !(isForm && each?.startsWith('application/json')))) {
        expect([type, await sent(type, {})]).toEqual([
          type,
          await sent(type, { transformRequest: axiosOwn }),
        ]);
      }
    },
  );

  it("comes after a host's own transforms", async () => {
    const { axios: client, arrived } = await setUp();
    client.defaults.transformRequest = (data: { a: number }): unknown => ({ a: data.a + 1 });
    await client.post('/a', { a: 1 });
    expect(arrived[0]).toMatchObject({ body: '{"a":2}', headers: { 'content-type': 'application/json' } });
    client.defaults.transformRequest = () => 'mine';
    await client.post('/a', {});
    await client.post('/a', {}, { transformRequest: () => 'of the call' });
    expect(arrived.slice(1).map(({ body }) => body)).toEqual(['mine', 'of the call']);
  });

  it("that a host's transform makes a view of other memory is sent without the rest of that memory", async () => {
    const { axios: client, arrived } = await setUp();
    await client.post('/a', {}, { transformRequest: () => new Uint16Array(buffer, 2, 1) });
    expect(arrived[0]?.body).toBe('23');
    const transformRequest = (): unknown => new Blob(['a']).stream();
    expect(await errorOf(client.post('/a', {}, { transformRequest }))).toMatchObject({
      faults: [{ property: 'data' }],
    });
  });
});
