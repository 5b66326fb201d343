import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type HttpSettings } from '../../../lib/config/resolved-options.js';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { AllowedUrls, type CallUrl } from '../../../lib/http/allowed-urls.js';
import { draws } from '../../helpers/in-soak.js';

const rules = {
  baseUrl: 'https://api.example/base',
  origins: new Set(['https://api.example', 'https://oauth.example']),
};

const urls = new AllowedUrls(rules);

describe('AllowedUrls', () => {
  it.each([
    ['/banks/v1', 'https://api.example/base/banks/v1'],
    ['banks/v1', 'https://api.example/base/banks/v1'],
    ['/banks/v1/', 'https://api.example/base/banks/v1/'],
    ['?a=b', 'https://api.example/base?a=b'],
    ['', 'https://api.example/base'],
    [
      '/a?redirect=https://evil.example/../x',
      'https://api.example/base/a?redirect=https://evil.example/../x',
    ],
    ['/a#fragment', 'https://api.example/base/a'],
    ['/a%2Fb', 'https://api.example/base/a%2Fb'],
    ...['a/b', 'x..y', '...', '.hidden', '50%', 'a;b', '%', 'a\\b', '..a/b..'].map((id): [string, string] => {
      const encoded = encodeURIComponent(id);
      return [`/a/${encoded}/b`, `https://api.example/base/a/${encoded}/b`];
    }),
    ['/a?b=%2e%2e%2fc', 'https://api.example/base/a?b=%2e%2e%2fc'],
    ['/~a.b/..c/d..', 'https://api.example/base/~a.b/..c/d..'],
    ['https://oauth.example/x/v1', 'https://oauth.example/x/v1'],
    ['HTTPS://API.EXAMPLE:443/x', 'https://api.example/x'],
  ])('takes %s', (path, href) => {
    expect(urls.resolve(path).href).toBe(href);
  });

  it.each([
    'https://evil.example/banks/v1',
    'http://api.example/banks/v1',
    'https://api.example:8443/',
    'https://api.example.evil.example/',
    'https://user:pass@api.example/',
    'https://evil@api.example/',
    'https://api.example@evil.example/',
    '//evil.example/x',
    '/\\evil.example',
    '\\\\evil.example',
    'https:\\\\evil.example',
    'https:/\tevil.example',
    '/a/../../b',
    '/a/%2e%2E/b',
    '/a/.%2e',
    '/./a',
    ...['../../internal/v1/keys', '..', './a', 'a/..', '..\\a', 'a;..', '%2e%2e%2fa'].map(
      (id) => `/customers/v1/${encodeURIComponent(id)}`,
    ),
    '%2e%2e%2fadmin',
    'x%2f..%2f..%2fadmin',
    '/..%5c',
    '/..%5Cadmin?a=b',
    '/a/..;/b',
    '/a/..%3b/b',
    '/a/;../b',
    '/a/%252e%252E%252Fb',
    '/a/%25252e%25252e',
    'https://oauth.example/x%2f..',
    'https://api.example/..',
    '/a b',
    '/a\r\nX: y',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'blob:https://api.example/x',
    'blob:https://oauth.example/x',
    'data:text/plain,x',
    'https://[api.example',
  ])('refuses %j', (path) => {
    const fault = { property: 'path', message: expect.stringMatching(/^(must|leads|is) /) };
    const error = { code: 'invalid_request', faults: [fault] };
    expect(() => urls.resolve(path)).toThrow(expect.objectContaining(error));
  });

  it.each([
    'https://api.example/base',
    'HTTPS://API.example:443',
    'https://api.example:8443/a/../b',
    'http://[::1]:80',
  ])('says of a path below %s what the parser of URLs says', (baseUrl) => {
    const { origin } = new URL(baseUrl);
    const allowed = new AllowedUrls({ baseUrl, origins: new Set([origin]) });
    const segment = fc.string({ unit: fc.constantFrom('a', 'Z', '0', '-', '_', '~', '.', '..') });
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 4 }), fc.boolean(), (segments, slash) => {
        const path = segments.map((each) => `/${each}`).join('') + (slash ? '/' : '');
        if (path.startsWith('//') || segments.some((each) => each === '.' || each === '..')) {
          return expect(() => allowed.resolve(path)).toThrow(ServiceRequestError);
        }
        const { href, protocol, host, hostname, port, pathname, search } = new URL(baseUrl + path);
        const expected = { href, origin, protocol, host, hostname, port, pathname, search };
        const url = allowed.resolve(path);
        const parts = Object.keys(expected) as (keyof CallUrl)[];
        expect(Object.fromEntries(parts.map((part) => [part, url[part]]))).toEqual(expected);
      }),
      draws(2_000),
    );
  });

  it('leads nowhere else, whatever the path (random inputs)', () => {
    const odd = fc.string({
      unit: fc.constantFrom(
        '/',
        '\\',
        '.',
        '..',
        '@',
        ':',
        '?',
        '#',
        '%2e',
        '%2f',
        '//',
        'https:',
        'evil.example',
        'a',
        '\t',
      ),
    });
    fc.assert(
      fc.property(fc.oneof(odd, fc.string({ unit: 'binary' }), fc.webUrl()), (path) => {
        let url: CallUrl;
        try {
          url = urls.resolve(path);
        } catch (error) {
          return error instanceof ServiceRequestError;
        }
        const { username, password, hash } = new URL(url.href);
        const isInside = url.pathname === '/base' || url.pathname.startsWith('/base/');
        return (
          rules.origins.has(url.origin) &&
          username + password + hash === '' &&
          (isInside || /^https?:/i.test(path))
        );
      }),
      draws(10_000),
    );
  });
});

describe('the paths of resources', () => {
  it.each<[HttpSettings['trailingSlash'], string, string]>([
    [false, '/banks/v1', '/customers/v1'],
    [true, '/banks/v1/', '/customers/v1/'],
    [['banks', 'customers'], '/banks/v1/', '/customers/v1/'],
    [['customers'], '/banks/v1', '/customers/v1/'],
  ])('with http.trailingSlash %j', (trailingSlash, banks, customers) => {
    const http = new ServiceHttpService(undefined as never, trailingSlash);
    expect([http.pathOf('banks'), http.pathOf('customers')]).toEqual([banks, customers]);
  });
});
