import { ServiceApiError, ServiceRequestError } from '../errors/index.js';
import { isJsonObject } from '../exchange/response.js';
import { notEncoded } from './call-content.js';
import { type HttpCallOptions, type ReadOption } from './call-options.js';
import { routeOf } from './call-url.js';
import { applyParser, checkParser, type ResponseParser } from './parse-option.js';

type Params = HttpCallOptions['params'];

/** A page that was requested. */
export interface PageRequest {
  path: string;
  params?: Params;
}

/** Options of {@link ServiceHttpService.paginate}. `timeout`, `retries` and `parse` apply to each page. */
export type PaginateOptions<Entry, Page = unknown> = Pick<
  HttpCallOptions,
  'pathParams' | 'params' | 'headers' | 'signal' | 'timeout' | 'retries'
> &
  ReadOption<Page> & {
    /** Number of entries on a page, sent as the query parameter `size`. Default: the service decides. */
    size?: number | undefined;
    /** The query parameters of page and size. Default: `{ page: 'page', size: 'size' }`. */
    pageParams?: { page?: string | undefined; size?: string | undefined } | undefined;
    /**
     * Where the list is: the name of a field, such as `accounts` or `data.accounts`, or a function that returns the list. Needed
     * only if a page has several lists. Default: `data`, the one list within `data`, or `content`.
     */
    itemsOf?: string | ((page: Page) => readonly Entry[]) | undefined;
    /**
     * For lists that are not counted by pages, such as offsets, cursors and `has_more`: returns the query parameters of the next
     * page, which are added to `params`, or its path. Returns undefined or null at the end.
     */
    next?:
      | ((page: Page, request: PageRequest) => HttpCallOptions['params'] | string | null | undefined)
      | undefined;
  };

/** With `next`, so many empty pages may follow each other. The caller cannot stop in between, because no entry is yielded. */
const MAX_EMPTY_PAGES = 100;

/** Reads a page. `ServiceHttpService.get()` is such a function. */
type ReadPage = <T>(path: string, options: HttpCallOptions & ReadOption<T>) => Promise<T>;

/**
 * Yields the entries of a list, page by page. Pages are counted from 0. A page is read only when all entries of the one before
 * have been taken.
 */
export async function* readPages<Entry, Page>(
  read: ReadPage,
  path: string,
  options: PaginateOptions<Entry, Page>,
): AsyncGenerator<Entry, void, undefined> {
  const { pageParams, size, itemsOf, next, params, pathParams, parse, ...others } = options;
  const parser = checkParser(parse);
  const { page: pageName = 'page', size: sizeName = 'size' } = pageParams ?? {};
  if (!next && (has(params, pageName) || new URLSearchParams(path.split('?')[1]).has(pageName)))
    throw ServiceRequestError.ofMisuse(
      `params.${pageName}`,
      'is set by paginate(), from 0 on: leave it out. To begin elsewhere, or to count otherwise, pass next',
    );
  const first = withParams(params, { ...(!next && { [pageName]: 0 }), ...(size && { [sizeName]: size }) });
  let request: PageRequest & Pick<HttpCallOptions, 'pathParams'> = { path, params: first, pathParams };
  const seen = new Set<string>();
  let emptyPages = 0;
  for (let number = 0; ; number += 1) {
    const fail = (what: string): ServiceApiError => pageError(path, pathParams !== undefined, number, what);
    const key = `${request.path}?${toText(request.params)}`;
    if (seen.has(key)) throw fail('is one that was read before, so the list would never end');
    seen.add(key);
    const { path: pagePath, ...query } = request;
    const kept = parser && keepBody(parser);
    const reading = read<Page>(pagePath, { ...others, ...query, parse: kept?.parse as ResponseParser<Page> });
    const page = await reading.catch((error: unknown) => {
      // A schema refuses the body that only says that there is no page yet.
      throw isPending(kept?.body) ? fail(NOT_READY) : error;
    });
    // With `responseType: 'text'`, only the parser knows the fields.
    const body = isJsonObject(kept?.body) ? kept.body : page;
    const list = findList<Entry, Page>(page, itemsOf, fail);
    if (list.length === 0 && isPending(body)) throw fail(NOT_READY);
    const total = next ? undefined : totalPages(body);
    const following = next?.(page, { path: pagePath, params: request.params }) ?? undefined;
    const isLast = next ? following === undefined : number + 1 >= (total ?? (list.length > 0 ? Infinity : 0));
    if (list.length === 0 && !isLast && !next)
      throw fail(`is empty, although there should be ${total} pages`);
    emptyPages = list.length === 0 ? emptyPages + 1 : 0;
    if (emptyPages === MAX_EMPTY_PAGES) throw fail(`is the last of ${emptyPages} empty pages`);
    yield* list;
    if (isLast) return;
    if (typeof following === 'string') request = { path: following };
    else {
      const changed = following ?? { [pageName]: number + 1 };
      request = { ...request, params: withParams(request.params, changed) };
    }
  }
}

/** Finds the list in a page, as `itemsOf` says, or where the service's own pages have it. */
function findList<Entry, Page>(
  page: Page,
  itemsOf: PaginateOptions<Entry, Page>['itemsOf'],
  fail: (what: string) => ServiceApiError,
): readonly Entry[] {
  const lists = (itemsOf === undefined ? knownLists(page) : [namedList(page, itemsOf)]).filter(Array.isArray);
  const [list] = lists as [Entry[]?];
  if (list && lists.length === 1) return list;
  if (lists.length > 1) throw fail('has several lists: name one in itemsOf');
  throw fail(isPending(page) ? NOT_READY : 'has no list');
}

function namedList<Entry, Page>(
  page: Page,
  itemsOf: string | ((page: Page) => readonly Entry[]),
): readonly unknown[] | undefined {
  if (typeof itemsOf === 'function') return itemsOf(page);
  const read = (value: unknown, name: string): unknown => (isJsonObject(value) ? value[name] : undefined);
  const find = (names: string[]): unknown => names.reduce(read, page);
  return [itemsOf.split('.'), ['data', ...itemsOf.split('.')]].map(find).find(Array.isArray);
}

function knownLists(page: unknown): unknown[] {
  if (!isJsonObject(page)) return [page];
  const { data, content } = page;
  const found = isJsonObject(data) ? Object.values(data) : [data];
  return found.some(Array.isArray) ? found : [content];
}

/** The number of pages, if the page tells it. A parser of exact numbers may have made an object or a BigInt of it. */
function totalPages(page: unknown): number | undefined {
  if (!isJsonObject(page)) return undefined;
  const { total_pages } = isJsonObject(page.page) ? { ...page, ...page.page } : page;
  const text = String(total_pages);
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

const NOT_READY = 'is not ready yet: its status is PENDING';

function isPending(page: unknown): boolean {
  return isJsonObject(page) && page.status === 'PENDING';
}

/** Keeps the body before it is parsed: a schema leaves out fields that it does not name, such as the number of pages. */
function keepBody(parser: ResponseParser) {
  const kept: { body?: unknown; parse: ResponseParser } = {
    parse: {
      '~standard': {
        version: 1,
        validate: (body) => {
          kept.body = body;
          return applyParser(parser, body);
        },
      },
    },
  };
  return kept;
}

function withParams(params: Params, more: NonNullable<Params>): Params {
  if (!(params instanceof URLSearchParams) && !(more instanceof URLSearchParams))
    return { ...params, ...more };
  const merged = new URLSearchParams(params as URLSearchParams);
  const added = more instanceof URLSearchParams ? [...more] : Object.entries(more);
  for (const [name] of added) merged.delete(name);
  for (const [name, value] of added) merged.append(name, String(value));
  return merged;
}

function has(params: Params, name: string): boolean {
  return params instanceof URLSearchParams ? params.has(name) : Object.hasOwn(params ?? {}, name);
}

function toText(params: Params): string {
  if (params instanceof URLSearchParams) return params.toString();
  try {
    return JSON.stringify(params ?? {}, (_, value: unknown) =>
      typeof value === 'bigint' ? `${value}n` : value,
    );
  } catch (error) {
    throw notEncoded('params', error);
  }
}

/** The error has no ids in it: it shows the template of the path, or its known words. */
function pageError(path: string, isTemplate: boolean, number: number, what: string): ServiceApiError {
  const [pathname = ''] = path.split(/[?#]/, 1);
  const route = routeOf(pathname, '', isTemplate ? path : undefined);
  const message = `GET ${route}: page ${number} ${what}.`;
  return new ServiceApiError({ code: 'invalid_response', status: 200, method: 'GET', path, route, message });
}
