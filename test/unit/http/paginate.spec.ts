import { describe, expect, it } from '@jest/globals';
import { type ServerResponse } from 'node:http';
import { type ServiceApiError, type ServiceRequestError } from '../../../lib/errors/index.js';
import { type ResponseSchema } from '../../../lib/http/parse-option.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { errorOf, setUp } from './setup.js';

/** A client of a server that responds with these bodies, one for each request. `urls` are the requests that it got. */
async function clientOf(bodies: unknown[], status = 200) {
  const urls: string[] = [];
  const { axios, arrived } = await setUp({
    retries: 0,
    listener: (request, response: ServerResponse) => {
      urls.push(request.url!);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(bodies.shift()));
    },
  });
  return { http: new ServiceHttpService(axios), urls, arrived };
}

async function collect<T>(list: AsyncIterable<T>): Promise<T[]> {
  const taken: T[] = [];
  for await (const entry of list) taken.push(entry);
  return taken;
}

const total = (total_pages: number) => ({ page: { total_pages } });

describe('paginate()', () => {
  it.each<[string, unknown[], string[]]>([
    [
      'data',
      [
        { data: [1, 2], ...total(2) },
        { data: [3], ...total(2) },
      ],
      ['page=0', 'page=1'],
    ],
    [
      'the one list within data',
      [
        { data: { accounts: [1, 2], count: 3 }, ...total(2) },
        { data: { accounts: [3] }, ...total(2) },
      ],
      ['page=0', 'page=1'],
    ],
    ['content', [{ content: [1, 2, 3], total_pages: 1 }], ['page=0']],
    ['a list alone, until a page is empty', [[1, 2], [3], []], ['page=0', 'page=1', 'page=2']],
    ['data, until a page is empty', [{ data: [1, 2, 3] }, { data: [] }], ['page=0', 'page=1']],
  ])('yields the entries in %s, from page 0 on', async (_, bodies, queries) => {
    const { http, urls } = await clientOf(bodies);
    expect(await collect(http.paginate('/data/v2/accounts'))).toEqual([1, 2, 3]);
    expect(urls).toEqual(queries.map((query) => `/data/v2/accounts?${query}`));
  });

  it('reads an empty list', async () => {
    for (const body of [{ data: [], ...total(0) }, { data: [], ...total(1) }, { content: [] }]) {
      const { http } = await clientOf([body]);
      expect(await collect(http.paginate('/data/v2/accounts'))).toEqual([]);
    }
  });

  it('reads a page only when the entries of the one before are taken, and none after the caller has stopped', async () => {
    const { http, urls } = await clientOf([1, 2, 3].map((n) => ({ data: [n, n], ...total(3) })));
    const list = http.paginate<number>('/data/v2/accounts');
    expect(urls).toHaveLength(0);
    let taken = 0;
    for await (const entry of list) {
      taken += 1;
      expect(urls).toHaveLength(entry);
      if (taken === 3) break;
    }
    expect(urls).toHaveLength(2);
    expect(await list.next()).toEqual({ done: true, value: undefined });
  });

  it('passes params, headers, pathParams and parse on to each page, and takes other names for page and size', async () => {
    const bodies = [
      { data: ['a'], ...total(2) },
      { data: ['b'], ...total(2) },
    ];
    const { http, urls, arrived } = await clientOf(bodies);
    const parsed: unknown[] = [];
    const list = http.paginate('/data/v2/accounts/{account_id}/balances', {
      pathParams: { account_id: 'x/1' },
      params: new URLSearchParams('entity_id=e&tag=1&tag=2'),
      headers: { 'x-partner': 'p' },
      size: 5,
      pageParams: { page: 'page_number', size: 'page_size' },
      parse: (body) => (parsed.push(body), body as { data: string[] }),
    });
    expect(await collect(list)).toEqual(['a', 'b']);
    const query = 'entity_id=e&tag=1&tag=2';
    expect(urls).toEqual([
      `/data/v2/accounts/x%2F1/balances?${query}&page_number=0&page_size=5`,
      `/data/v2/accounts/x%2F1/balances?${query}&page_size=5&page_number=1`,
    ]);
    expect(arrived.map(({ headers }) => headers['x-partner'])).toEqual(['p', 'p']);
    expect(parsed).toHaveLength(2);
  });

  it('takes the list that itemsOf names, by a path or a function', async () => {
    const body = { data: { accounts: [1], warnings: [2] }, more: { items: [3] }, ...total(1) };
    const read = async (itemsOf?: Parameters<ServiceHttpService['paginate']>[1]) => {
      const { http } = await clientOf([body]);
      return collect(http.paginate('/data/v2/accounts', itemsOf)).catch((error: Error) => error.message);
    };
    expect(await read({ itemsOf: 'accounts' })).toEqual([1]);
    expect(await read({ itemsOf: 'data.warnings' })).toEqual([2]);
    expect(await read({ itemsOf: (page) => (page as typeof body).more.items })).toEqual([3]);
    expect(await read()).toBe('GET /data/v2/accounts: page 0 has several lists: name one in itemsOf.');
    expect(await read({ itemsOf: 'other' })).toBe('GET /data/v2/accounts: page 0 has no list.');
  });

  it('reads number of pages and status from the body itself, where a schema leaves out the fields that it does not name', async () => {
    const schema: ResponseSchema<{ data: number[] }> = {
      '~standard': {
        version: 1,
        validate: (body) => {
          const { data } = body as { data?: number[] };
          return data ? { value: { data } } : { issues: [{ path: ['data'] }] };
        },
      },
    };
    const whole = [
      { data: [1], ...total(2) },
      { data: [2], ...total(2) },
    ];
    for (const parse of [schema, ({ data }: { data: number[] }) => ({ data })]) {
      const { http, urls } = await clientOf([...whole]);
      expect(await collect(http.paginate('/data/v2/accounts', { parse: parse as typeof schema }))).toEqual([
        1, 2,
      ]);
      expect(urls).toHaveLength(2);
    }
    for (const body of [{ status: 'PENDING' }, { status: 'PENDING', data: [], ...total(3) }]) {
      const { http } = await clientOf([body]);
      const error = await errorOf(collect(http.paginate('/data/v2/accounts', { parse: schema })));
      expect((error as Error).message).toContain('page 0 is not ready yet: its status is PENDING.');
    }
    const { http } = await clientOf([{ accounts: [] }]);
    const error = await errorOf(collect(http.paginate('/data/v2/accounts', { parse: schema })));
    expect((error as Error).message).toContain('parse refused the body: data');
  });

  it('reads exact numbers with responseType text, where the number of pages is an object too', async () => {
    const { http, urls } = await clientOf([
      { data: [1.5], ...total(2) },
      { data: [2.5], ...total(2) },
    ]);
    const exact = (text: string) =>
      JSON.parse(text, (_, value: unknown) =>
        typeof value === 'number' ? { toString: () => String(value), exact: value } : value,
      ) as { data: { exact: number }[] };
    const list = http.paginate<{ exact: number }, { data: { exact: number }[] }>('/data/v2/accounts', {
      responseType: 'text',
      parse: exact,
    });
    expect((await collect(list)).map((entry) => entry.exact)).toEqual([1.5, 2.5]);
    expect(urls).toHaveLength(2);
  });

  it('asks next for the query of the next page, for offsets, cursors and has_more', async () => {
    const bodies = [
      { data: [1], has_more: true },
      { data: [], has_more: true },
      { data: [2], has_more: false },
    ];
    const { http, urls } = await clientOf(bodies);
    const list = http.paginate<number, { has_more: boolean }>('/orders/v1', {
      params: { state: 'open', offset: 0 },
      next: (page, { params }) =>
        page.has_more ? { offset: (params as { offset: number }).offset + 10 } : undefined,
    });
    expect(await collect(list)).toEqual([1, 2]);
    expect(urls).toEqual([0, 10, 20].map((offset) => `/orders/v1?state=open&offset=${offset}`));
  });

  it('asks next for the path of the next page, which is checked like any other path', async () => {
    const bodies = [{ data: [1], next: '/orders/v1?cursor=b' }, { data: [2] }];
    const next = (page: unknown) => (page as { next?: string }).next;
    const { http, urls } = await clientOf(bodies);
    expect(await collect(http.paginate('/orders/v1', { params: { state: 'open' }, next }))).toEqual([1, 2]);
    expect(urls).toEqual(['/orders/v1?state=open', '/orders/v1?cursor=b']);
    const elsewhere = await clientOf([{ data: [1], next: 'https://elsewhere.example/orders' }]);
    const error = (await errorOf(
      collect(elsewhere.http.paginate('/orders/v1', { next })),
    )) as ServiceRequestError;
    expect([error.code, error.message]).toEqual([
      'invalid_request',
      expect.stringContaining('outside the service'),
    ]);
    expect(elsewhere.urls).toHaveLength(1);
  });

  it.each<[string, unknown[], string]>([
    ['has no list', [{ status: 'FAILED' }], 'page 0 has no list.'],
    [
      'is PENDING',
      [{ status: 'PENDING', results_id: 'r-1' }],
      'page 0 is not ready yet: its status is PENDING.',
    ],
    [
      'is PENDING, with an empty list',
      [{ status: 'PENDING', data: [] }],
      'page 0 is not ready yet: its status is PENDING.',
    ],
    [
      'is empty before the end',
      [
        { data: [1], ...total(3) },
        { data: [], ...total(3) },
      ],
      'page 1 is empty, although there should be 3 pages.',
    ],
  ])('rejects if a page %s, and shows no id of the path', async (_, bodies, message) => {
    const { http } = await clientOf(bodies);
    const error = (await errorOf(
      collect(http.paginate('/data/v2/accounts/secret-id/balances')),
    )) as ServiceApiError;
    expect(error.message).toBe(`GET /data/v2/accounts/{}/balances: ${message}`);
    expect(error).toMatchObject({ code: 'invalid_response', retryable: false, outcomeUnknown: false });
  });

  it('rejects instead of reading the same page for ever', async () => {
    const { http, urls } = await clientOf(Array(5).fill({ data: [1], cursor: 'a' }));
    const list = http.paginate('/orders/v1', {
      next: (page) => ({ cursor: (page as { cursor: string }).cursor }),
    });
    const error = (await errorOf(collect(list))) as ServiceApiError;
    expect(error.message).toMatch(/page 2 is one that was read before/);
    expect(urls).toEqual(['/orders/v1', '/orders/v1?cursor=a']);
  });

  it('rejects at once if next returns the path of the first page', async () => {
    const { http, urls } = await clientOf(Array(5).fill({ data: [1] }));
    const error = (await errorOf(
      collect(http.paginate('/orders/v1', { next: () => '/orders/v1' })),
    )) as Error;
    expect(error.message).toMatch(/page 1 is one that was read before/);
    expect(urls).toEqual(['/orders/v1']);
  });

  it('ends if next returns null, as a cursor of the service does', async () => {
    const { http, urls } = await clientOf([
      { data: [1], next: '/orders/v1?cursor=b' },
      { data: [2], next: null },
    ]);
    const list = http.paginate<number, { next: string | null }>('/orders/v1', { next: (page) => page.next });
    expect(await collect(list)).toEqual([1, 2]);
    expect(urls).toEqual(['/orders/v1', '/orders/v1?cursor=b']);
  });

  it('gives up after 100 empty pages in a row, in which its caller cannot stop it', async () => {
    const { http, urls } = await clientOf(Array.from({ length: 150 }, () => ({ data: [] })));
    const list = http.paginate('/orders/v1', { next: () => ({ cursor: urls.length }) });
    const error = (await errorOf(collect(list))) as ServiceApiError;
    expect(error).toMatchObject({ code: 'invalid_response' });
    expect(error.message).toContain('page 99 is the last of 100 empty pages.');
    expect(urls).toHaveLength(100);
  });

  it('refuses a page number in params or in the path, which it counts itself', async () => {
    const { http, urls } = await clientOf([]);
    for (const list of [
      http.paginate('/orders/v1', { params: { page: 1 } }),
      http.paginate('/orders/v1?state=open&page=1'),
    ])
      expect(await errorOf(collect(list))).toMatchObject({
        code: 'invalid_request',
        hint: expect.stringContaining('code'),
      });
    expect(urls).toEqual([]);
  });

  it('sends a BigInt in params, and refuses circular params as a fault of code', async () => {
    const { http, urls } = await clientOf([{ data: [1], ...total(1) }]);
    expect(await collect(http.paginate('/orders/v1', { params: { id: 9007199254740993n } }))).toEqual([1]);
    expect(urls).toEqual(['/orders/v1?id=9007199254740993&page=0']);
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    for (const sent of [
      collect(http.paginate('/orders/v1', { params: circular })),
      http.get('/orders/v1', { params: circular }),
    ])
      expect(await errorOf(sent)).toMatchObject({ code: 'invalid_request', hint: expect.any(String) });
    expect(urls).toHaveLength(1);
  });

  it('ends with the reason of the caller who aborts', async () => {
    const { http, urls } = await clientOf([{ data: [1] }, { data: [2] }]);
    const controller = new AbortController();
    const list = http.paginate('/orders/v1', { signal: controller.signal });
    await list.next();
    controller.abort(new Error('enough'));
    expect(await errorOf(list.next())).toBe(controller.signal.reason);
    expect(urls).toHaveLength(1);
  });
});

describe('find()', () => {
  const path = '/customers/v1/app-user-id/{app_user_id}';
  const options = { pathParams: { app_user_id: 'u-1' } };

  it('resolves with what was found', async () => {
    const { http, urls } = await clientOf([{ customer_id: 'c-1' }]);
    expect(await http.find(path, options)).toEqual({ customer_id: 'c-1' });
    expect(urls).toEqual(['/customers/v1/app-user-id/u-1']);
  });

  it("resolves with undefined for a 404 with the service's own error body", async () => {
    const { http } = await clientOf([{ status: 'CUSTOMER_NOT_FOUND', message: 'No such customer' }], 404);
    expect(await http.find(path, options)).toBeUndefined();
  });

  it.each<[string, unknown, number, string]>([
    ['a 404 of a web framework', { status: 404, error: 'Not Found', message: 'No handler' }, 404, path],
    ['a 404 without a body that says so', {}, 404, path],
    ['a 404 of a gateway', { status: 'error', message: 'no Route matched' }, 404, path],
    ['a 404 of problem details', { status: '404', title: 'no route' }, 404, path],
    [
      'a 404 of a collection, which exists unless the address is wrong',
      { status: 'NOT_FOUND', message: 'x' },
      404,
      '/{name}/v1',
    ],
    ['a 403', { status: 'FORBIDDEN', message: 'no' }, 403, path],
  ])('rejects for %s', async (_, body, status, at) => {
    const { http } = await clientOf([body], status);
    const pathParams = at === path ? options.pathParams : { name: 'customers' };
    expect(await errorOf(http.find(at, { pathParams }))).toMatchObject({ code: 'api_error', status });
  });

  it('rejects for a 404 that is a page', async () => {
    const { axios } = await setUp({
      listener: (_, response) =>
        void response.writeHead(404, { 'content-type': 'text/html' }).end('<html>Not found</html>'),
    });
    expect(await errorOf(new ServiceHttpService(axios).find(path, options))).toMatchObject({ status: 404 });
  });

  it('is refused without pathParams', async () => {
    const { http, urls } = await clientOf([]);
    expect(await errorOf(http.find('/customers/v1', { pathParams: {} }))).toMatchObject({
      code: 'invalid_request',
      hint: expect.any(String),
    });
    expect(urls).toEqual([]);
  });
});
