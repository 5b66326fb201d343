import { expect, it } from '@jest/globals';
import { errorOf, setUp } from './setup.js';

const PLAIN = '<html><h1>Access denied</h1></html>';
const NAMED = '<html><title>400 No required SSL certificate was sent</title></html>';
const html = { 'content-type': 'text/html' };

/** A page that does not say why may come from a firewall that looks at answers, after the application acted. */
it.each<[string, number, Record<string, string>, string, number]>([
  ['GET', 403, html, PLAIN, 2],
  ['POST', 403, html, PLAIN, 1],
  ['DELETE', 403, html, PLAIN, 1],
  ['POST', 401, html, PLAIN, 1],
  ['GET', 401, html, PLAIN, 2],
  ['POST', 401, { ...html, 'www-authenticate': 'Basic realm=x' }, PLAIN, 1],
  ['POST', 401, { ...html, 'www-authenticate': 'Bearer error="invalid_token"' }, PLAIN, 2],
  ['POST', 401, {}, '{"status":"UNAUTHORIZED","message":"no"}', 2],
  ['POST', 400, html, NAMED, 2],
  ['POST', 403, html, NAMED, 2],
  ['POST', 495, {}, '', 2],
  ['POST', 496, {}, '', 2],
  ['POST', 400, html, PLAIN, 1],
  ['POST', 408, {}, '', 1],
])('%s answered %d with %j and %s: %d attempts where credentials are renewed', async (...row) => {
  const [method, status, headers, page, attempts] = row;
  let left = 1;
  const { axios, arrived } = await setUp({
    listener: (_, response) => {
      if (left-- > 0) response.writeHead(status, headers).end(page);
      else response.end('{"ok":true}');
    },
    renewed: { Authorization: 'Bearer new' },
    identity: { reloadAfterRefusal: async () => true },
    retries: 0,
  });
  const outcome = axios.request<unknown>({ url: '/a', method, data: method === 'GET' ? undefined : {} });
  if (attempts === 2) expect((await outcome).data).toEqual({ ok: true });
  else expect(await errorOf(outcome)).toMatchObject({ status });
  expect(arrived).toHaveLength(attempts);
  // What was renewed is there for the next call.
  expect((await axios.get<unknown>('/a')).data).toEqual({ ok: true });
});
