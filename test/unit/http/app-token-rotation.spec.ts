import { describe, expect, it, jest } from '@jest/globals';
import { inspect } from 'node:util';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { ExchangeFault, type ExchangeRequest } from '../../../lib/exchange/exchange.types.js';
import { exchangeDouble, type GivenAnswer } from '../../../lib/testing/doubles/exchange-double.js';
import { makeClient } from '../../helpers/make-client.js';

const HEADER = 'service-app-token';

interface Given {
  options?: ServiceModuleOptions;
  /** What a call gets whose app token is not the valid one. Default: a 403. */
  refusal?: GivenAnswer;
  answer?: (request: ExchangeRequest) => GivenAnswer | undefined | Promise<GivenAnswer>;
}

/** A client whose app token comes from a function, and a service that takes one value of it. */
async function setUp({ options, refusal = { status: 403, data: {} }, answer }: Given = {}) {
  const state = {
    valid: 'app-token-1',
    source: 'app-token-1' as string | undefined,
    reading: undefined as Promise<void> | undefined,
    asked: 0,
    tokens: 0,
  };
  const sent: [string, string | undefined, string | undefined][] = [];
  const appToken = async () => {
    state.asked += 1;
    const value = state.source;
    await state.reading;
    if (value === undefined) throw new Error('the vault says app-token-1');
    return value;
  };
  const exchange = exchangeDouble((request): GivenAnswer | Promise<GivenAnswer> => {
    const { method, url, headers } = request;
    if (url.pathname === '/oauth2/token') {
      state.tokens += 1;
      const data = { access_token: `t-${state.tokens}`, token_type: 'bearer', expires_in: 600, scope: 'api' };
      return { status: 200, data };
    }
    sent.push([method, headers[HEADER], headers.authorization]);
    const given = answer?.(request);
    if (given) return given;
    return headers[HEADER] === state.valid ? { status: 200, data: [] } : refusal;
  });
  const urls = { sandboxUrl: 'https://api.example' };
  const client = await makeClient({ urls, ...options, appToken }, { exchange, random: () => 0 });
  return { ...client, state, sent };
}

const oauth: ServiceModuleOptions = {
  authentication: 'oauth',
  sendAppTokenWithBearer: true,
  urls: { sandboxUrl: 'https://api.example', sandboxAuthUrl: 'https://auth.example' },
  oauth: { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's3cret-value' },
};

describe('A rotated app token', () => {
  it('is read once for all calls that were refused, and each is sent again', async () => {
    const { service, state, sent } = await setUp();
    await service.banks.list();
    state.valid = state.source = 'app-token-2';
    const calls = [
      ...Array.from({ length: 20 }, () => service.banks.list()),
      service.customers.create({ app_user_id: 'u-1' }),
    ];
    await Promise.all(calls);
    expect(state.asked).toBe(2);
    expect(sent).toHaveLength(1 + 2 * 21);
    await service.banks.list();
    expect(sent.at(-1)).toEqual(['GET', 'app-token-2', undefined]);
    await service.close();
  });

  it("beside a bearer: a 401 is the bearer's first, and then the app token is read", async () => {
    const { service, state, sent } = await setUp({ options: oauth, refusal: { status: 401, data: {} } });
    await service.banks.list();
    state.valid = state.source = 'app-token-2';
    await service.banks.list();
    expect([state.tokens, state.asked]).toEqual([2, 2]);
    expect(sent.slice(1)).toEqual([
      ['GET', 'app-token-1', 'Bearer t-1'],
      ['GET', 'app-token-1', 'Bearer t-2'],
      ['GET', 'app-token-2', 'Bearer t-2'],
    ]);
    await service.close();
  });

  it('costs no bearer and no reading where the newest is known: a call that was in flight has its replay', async () => {
    let refuse = (): void => undefined;
    const inFlight = new Promise<void>((resolve) => (refuse = resolve));
    const { service, state, sent } = await setUp({
      options: oauth,
      answer: ({ url }) =>
        url.pathname === '/slow' && sent.length === 1
          ? inFlight.then(() => ({ status: 401, data: {} }))
          : undefined,
    });
    const slow = service.http.get('/slow');
    state.valid = state.source = 'app-token-2';
    await service.banks.list();
    const before = [state.tokens, state.asked];
    refuse();
    await slow;
    expect([state.tokens, state.asked]).toEqual(before);
    expect(sent.at(-1)).toEqual(['GET', 'app-token-2', 'Bearer t-1']);
    await service.close();
  });

  it('leaves a 403 of every day as it is, and asks its source once in 10 s', async () => {
    const { service, state, sent } = await setUp({
      answer: ({ url }) =>
        url.pathname === '/forbidden' ? { status: 403, data: { message: 'no' } } : undefined,
    });
    for (let call = 0; call < 20; call += 1) {
      await expect(service.http.get('/forbidden')).rejects.toMatchObject({ status: 403 });
    }
    expect([state.asked, sent.length]).toEqual([2, 20]);
    await service.close();
  });

  /** What is no app token, and what a service or a gateway before it answers to it. */
  const JUNK: [string, GivenAnswer][] = [
    ['half', { status: 400, data: {} }],
    ['{"errors":["permission denied"]}', { status: 400, data: {} }],
    ['x'.repeat(100_000), { status: 431, data: {} }],
    ['another', { status: 401, data: {} }],
    ['not understood', { status: 500, data: {} }],
    ['cut off', new ExchangeFault({ kind: 'reset', phase: 'sent' })],
    ['sent to log in', { status: 302, data: {}, headers: { location: 'https://login.example/' } }],
    ['shown a page', { status: 200, data: Buffer.from('<!doctype html>') }],
  ];

  it.each(JUNK)(
    'is used by all calls only once the service has taken it: %.40s costs only refused calls',
    async (junk, refusal) => {
      const { service, state, sent } = await setUp({
        options: { http: { retries: 0 } },
        answer: ({ url, headers }) => {
          if (headers[HEADER] === junk) return refusal;
          return url.pathname === '/forbidden' ? { status: 403, data: {} } : undefined;
        },
      });
      state.source = junk;
      for (let call = 0; call < 5; call += 1) {
        await expect(service.http.get('/forbidden')).rejects.toThrow();
        await service.banks.list();
      }
      expect(sent.filter(([, appToken]) => appToken === junk)).toHaveLength(5);
      await service.close();
    },
  );

  it.each(JUNK)('is found after what is none was read: %.40s', async (junk, refusal) => {
    const { service, state } = await setUp({
      answer: ({ url, headers }) => {
        if (headers[HEADER] === junk) return refusal;
        return url.pathname === '/forbidden' ? { status: 403, data: {} } : undefined;
      },
    });
    state.source = junk;
    await expect(service.http.get('/forbidden')).rejects.toThrow();
    state.valid = state.source = 'app-token-2';
    const now = performance.now.bind(performance);
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 10_000);
    try {
      await expect(service.banks.list()).resolves.toEqual([]);
    } finally {
      clock.mockRestore();
    }
    await service.close();
  });

  it.each(JUNK)(
    'a POST in doubt leaves what it found to be tried, and not to be used: %.40s',
    async (junk, refusal) => {
      const { service, state, sent } = await setUp({
        options: { http: { retries: 0 } },
        answer: ({ url, headers }) => {
          if (url.pathname === '/filtered') return { status: 403, data: Buffer.from('<html>denied') };
          return headers[HEADER] === junk ? refusal : undefined;
        },
      });
      state.source = junk;
      await expect(service.http.post('/filtered', {})).rejects.toMatchObject({ status: 403 });
      await expect(service.banks.list()).resolves.toEqual([]);
      await expect(service.banks.list()).resolves.toEqual([]);
      expect(sent.slice(1).map(([, appToken]) => appToken)).toEqual([junk, 'app-token-1', 'app-token-1']);
      await service.close();
    },
  );

  it('that a POST in doubt has found is used once the service has taken it', async () => {
    const { service, state, sent } = await setUp({
      answer: ({ url }) => {
        if (url.pathname === '/filtered') return { status: 403, data: Buffer.from('<html>denied') };
        return undefined;
      },
    });
    // Written before the service takes it.
    state.source = 'app-token-2';
    await expect(service.http.post('/filtered', {})).rejects.toMatchObject({ status: 403 });
    await expect(service.banks.list()).resolves.toEqual([]);
    await expect(service.banks.list()).resolves.toEqual([]);
    state.valid = 'app-token-2';
    await expect(service.http.post('/customers/v1', {})).resolves.toEqual([]);
    await expect(service.banks.list()).resolves.toEqual([]);
    const values = sent.slice(1).map(([, appToken]) => Number(appToken?.slice(-1)));
    expect(values).toEqual([2, 1, 1, 1, 2, 2]);
    await service.close();
  });

  it('that begins as a bearer does is tried once too', async () => {
    const { service, state, sent } = await setUp();
    state.source = 'Bearer app-token-2';
    state.valid = 'app-token-3';
    await expect(service.banks.list()).rejects.toMatchObject({ status: 403 });
    expect(sent.map(([, appToken]) => appToken)).toEqual(['app-token-1', 'Bearer app-token-2']);
    await service.close();
  });

  it('that was read too early costs no call once the service takes it', async () => {
    const { service, state, sent } = await setUp({
      answer: ({ url }) => (url.pathname === '/forbidden' ? { status: 403, data: {} } : undefined),
    });
    state.source = 'app-token-2';
    await expect(service.http.get('/forbidden')).rejects.toMatchObject({ status: 403 });
    expect(sent.map(([, appToken]) => appToken)).toEqual(['app-token-1', 'app-token-2']);
    state.valid = 'app-token-2';
    await expect(service.banks.list()).resolves.toEqual([]);
    await service.close();
  });

  it('that changes within a reading is read once more by those who joined it', async () => {
    let release = (): void => undefined;
    const { service, state, sent } = await setUp();
    await service.banks.list();
    state.reading = new Promise((resolve) => (release = resolve));
    state.valid = 'app-token-2';
    const first = service.banks.list().catch(() => 'refused');
    const joined = service.banks.list();
    while (sent.length < 3) await new Promise(setImmediate);
    await new Promise(setImmediate);
    release();
    state.reading = undefined;
    // What the first reading began with.
    state.source = 'app-token-2';
    await joined;
    await first;
    expect(state.asked).toBeLessThanOrEqual(3);
    await service.close();
  });

  it('does not hold up a refused call, or a shutdown, where its source hangs', async () => {
    const { service, state } = await setUp();
    state.reading = new Promise(() => undefined);
    state.valid = 'app-token-2';
    const refused = service.banks.list().catch((error: { status: number }) => error.status);
    await new Promise(setImmediate);
    await service.close();
    expect(await refused).toBe(403);
  });

  it('that cannot be read: the caller gets the refusal, and the log no word of the vault', async () => {
    const { service, state, lines } = await setUp();
    state.valid = 'app-token-2';
    state.source = undefined;
    await expect(service.banks.list()).rejects.toMatchObject({ status: 403 });
    expect(lines.join('\n')).toMatch(
      /A call was refused, and reading the app token again failed: its function threw/,
    );
    expect(lines.join('\n')).not.toContain('vault');
    await service.close();
  });

  it('a POST whose refusal may come from a firewall behind the application is not sent again', async () => {
    const page = {
      status: 403,
      data: Buffer.from('<html>Request blocked</html>'),
      headers: { 'content-type': 'text/html' },
    };
    const { service, state, sent } = await setUp({ refusal: page });
    state.valid = state.source = 'app-token-2';
    await expect(service.customers.create({ app_user_id: 'u-1' })).rejects.toMatchObject({ status: 403 });
    expect(sent).toHaveLength(1);
    // The next one has it.
    await service.customers.create({ app_user_id: 'u-1' });
    expect(sent.at(-1)).toEqual(['POST', 'app-token-2', undefined]);
    await service.close();
  });

  it.each(['app-token-1', 'app-token-2'])(
    'does not show in an error, neither before nor after: %s',
    async (echoed) => {
      const { service, state } = await setUp({
        answer: ({ url }) =>
          url.pathname === '/echo' ? { status: 409, data: { message: echoed } } : undefined,
      });
      state.valid = state.source = 'app-token-2';
      await service.banks.list();
      const error = await service.http
        .get('/echo')
        .catch((thrown: Error) => inspect(thrown, { showHidden: true }));
      expect(error).toMatch(/not shown/);
      expect(error).not.toMatch(/app-token-[12]/);
      await service.close();
    },
  );

  it('parameters of the browser have the newest', async () => {
    const { service, state } = await setUp();
    const parameters = () => service.sdk.connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    expect(await parameters()).toMatchObject({ app_token: 'app-token-1' });
    state.valid = state.source = 'app-token-2';
    await service.banks.list();
    expect(await parameters()).toMatchObject({ app_token: 'app-token-2' });
    await service.close();
  });
});

it.each<[string, () => string | Promise<string>, RegExp]>([
  [
    'throws',
    () => Promise.reject(new Error('the vault says s3cret')),
    /its function threw, returned no text/,
  ],
  ['returns no text', () => undefined as never, /its function threw, returned no text/],
  ['returns an empty text', () => ' ', /its function returned an empty text/],
  ['returns what no header can hold', () => 'a\nb', /cannot be sent in a header/],
])('no start with a function that %s', async (_, appToken, message) => {
  const failed = await makeClient({ appToken, urls: { sandboxUrl: 'https://api.example' } }).catch(String);
  expect(failed).toMatch(message);
  expect(failed).not.toContain('s3cret');
});
