import { Agent } from 'node:http';
import * as https from 'node:https';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type TokenGrant } from '../../../../lib/auth/access-token.js';
import { ClientSecret } from '../../../../lib/auth/endpoint/client-secret.js';
import { type TokenCache } from '../../../../lib/auth/cache/token-cache.js';
import { TokenEndpoint } from '../../../../lib/auth/endpoint/token-endpoint.js';
import { systemClock } from '../../../../lib/time/clock.js';
import { type ReloadableIdentity } from '../../../../lib/exchange/certificate-refusal.js';
import { Secret } from '../../../../lib/config/secret.js';
import {
  ServiceCertificateError,
  ServiceConnectionError,
  type ServiceError,
  ServiceTokenError,
} from '../../../../lib/errors/index.js';
import { exchange } from '../../../../lib/exchange/exchange.js';
import { createAuthority, type Authority, type Issued } from '../../../helpers/certificates.js';
import { mtlsServer } from '../../tls/mtls-server.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { makeCache } from '../fakes.js';
import { type ArrivedRequest, granted, type ServerAnswer, tokenServer } from './token-server.js';

const CLIENT_ID = '7d9f3c1e-0000-4000-8000-000000000001';
const SECRET = 's+/&=% ü€"\\end';
/** Each request has a signal of its own, as those of the cache have. */
const ofItsOwn = () => ({
  signal: new AbortController().signal,
  timeoutMs: 5_000,
  accepts: () => true,
  isAwaited: () => true,
});

const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0)) await undo();
});

interface SetUp {
  answer: (request: ArrivedRequest, number: number) => ServerAnswer;
  identity?: ReloadableIdentity;
  source?: () => string | Promise<string>;
}

async function setUp({ answer, source, identity }: SetUp) {
  const server = await tokenServer(answer);
  const agent = new Agent({ keepAlive: true });
  const clock = new FakeClock();
  const clientSecret = new ClientSecret(
    async () => new Secret(source ? await source() : SECRET),
    clock,
    String,
  );
  const endpoint = new TokenEndpoint({
    userAgent: 'spec/1',
    place: {
      url: new URL(server.url),
      option: 'urls.authUrl',
      apiOption: 'urls.baseUrl',
      describeOption: String,
    },
    clientId: CLIENT_ID,
    clientSecret,
    exchange,
    agent,
    identity,
    clock,
  });
  cleanUp.push(() => agent.destroy(), server.close);
  const request = (scope = 'api', context = {}): Promise<TokenGrant> =>
    endpoint.request(scope, { ...ofItsOwn(), ...context });
  return { server, endpoint, clock, request };
}

/** Answers a right secret with a token, every other with invalid_client. */
function demanding(secret: { right: string }): SetUp['answer'] {
  return ({ form }, number) =>
    form.get('client_secret') === secret.right
      ? granted(form.get('scope'), `token-${number}`)
      : { status: 401, body: { error: 'invalid_client' } };
}

type TokenFailure = Error &
  Pick<ServiceTokenError, 'code' | 'error' | 'error_description' | 'status' | 'retryAfter'>;

async function failure(promise: Promise<unknown>): Promise<TokenFailure> {
  try {
    await promise;
  } catch (error) {
    return error as TokenFailure;
  }
  throw new Error('It did not fail');
}

describe('the request', () => {
  it('reads an answer that begins with a byte order mark', async () => {
    const { request } = await setUp({
      answer: ({ form }) => ({ body: `\uFEFF${JSON.stringify(granted(form.get('scope')).body)}` }),
    });
    expect(await request('api')).toMatchObject({ accessToken: 'token' });
  });

  it('is the form that docs/service.md shows, and a secret of any characters arrives intact', async () => {
    const { server, request } = await setUp({ answer: ({ form }) => granted(form.get('scope')) });
    expect(await request('customer.a+b@c')).toMatchObject({ accessToken: 'token', scope: 'customer.a+b@c' });
    const [{ method, url, headers, form }] = server.arrived;
    expect([method, url]).toEqual(['POST', '/oauth2/token']);
    expect(headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    });
    expect(Object.fromEntries(form)).toEqual({
      grant_type: 'client_credentials',
      client_id: CLIENT_ID,
      client_secret: SECRET,
      scope: 'customer.a+b@c',
    });
  });
});

describe('an answer that is no token', () => {
  it.each<[string, ServerAnswer, object]>([
    ['HTML', { body: '<html>oops</html>' }, { code: 'invalid_token_response', status: 200 }],
    ['truncated JSON', { body: '{"access_token":"oops' }, { code: 'invalid_token_response' }],
    ['null', { body: 'null' }, { code: 'invalid_token_response' }],
    ['[]', { body: '[]' }, { code: 'invalid_token_response' }],
    [
      '200 with error',
      { body: { error: 'invalid_scope' } },
      { code: 'token_refused', error: 'invalid_scope' },
    ],
    ['400', { status: 400, body: { error: 'invalid_scope' } }, { code: 'token_refused', status: 400 }],
    ['404 in HTML', { status: 404, body: '<html>oops' }, { code: 'token_unavailable', status: 404 }],
    ['403 in HTML', { status: 403, body: '<html>oops' }, { code: 'token_unavailable', status: 403 }],
    [
      '401 of a gateway',
      { status: 401, body: { message: 'oops' } },
      { code: 'token_unavailable', status: 401 },
    ],
    [
      '503',
      { status: 503, body: 'oops', headers: { 'retry-after': '9' } },
      { code: 'token_unavailable', retryAfter: 9 },
    ],
    ['429', { status: 429, body: {} }, { code: 'token_rate_limited', retryAfter: undefined }],
    ['429 for a day', { status: 429, headers: { 'retry-after': '86400' } }, { retryAfter: 3600 }],
    [
      '429 with a date',
      { status: 429, headers: { 'retry-after': new Date(new FakeClock().now() + 30_000).toUTCString() } },
      { code: 'token_rate_limited', retryAfter: 30 },
    ],
  ])('%s', async (_name, answer, expected) => {
    const { request } = await setUp({ answer: () => answer });
    const error = await failure(request());
    expect(error).toBeInstanceOf(ServiceTokenError);
    expect(error).toMatchObject(expected);
    expect(inspect(error)).not.toContain('oops');
  });

  it.each<[string, ServerAnswer, object]>([
    ['a dropped connection', { fault: 'drop' }, { kind: 'reset' }],
    ['silence', { fault: 'silent' }, { kind: 'timeout' }],
    ['a body that trickles', { fault: 'trickle' }, { kind: 'timeout' }],
    ['a body over 1 MiB', { body: ' '.repeat(1024 * 1024 + 1) }, { kind: 'too_large' }],
    [
      'a redirect',
      { status: 302, headers: { location: 'https://elsewhere.example/x?y' } },
      { kind: 'redirect' },
    ],
    ['a choice of addresses, though with a token', { ...granted('api'), status: 300 }, { kind: 'redirect' }],
  ])('%s', async (_name, answer, expected) => {
    const { server, request } = await setUp({ answer: () => answer });
    const isSlow = 'fault' in answer && answer.fault !== 'drop';
    const error = await failure(request('api', { timeoutMs: isSlow ? 300 : 10_000 }));
    expect(error).toBeInstanceOf(ServiceConnectionError);
    expect(error).toMatchObject({ ...expected, method: 'POST', path: '/oauth2/token' });
    expect(server.arrived).toHaveLength(1);
  });

  it('a caller that aborts gets its own reason', async () => {
    const { request } = await setUp({ answer: () => ({ fault: 'silent' }) });
    const controller = new AbortController();
    const waiting = request('api', { signal: controller.signal });
    const reason = new Error('changed my mind');
    setTimeout(() => controller.abort(reason), 20);
    await expect(waiting).rejects.toBe(reason);
  });
});

/** What happened, and what to do. */
function said(error: Error): string {
  return `${error.message} ${(error as ServiceError).hint}`;
}

describe('what an error says', () => {
  /** An endpoint that does not get as far as an answer of a token. */
  async function textOf(tokenUrl: string, agent: Agent = new Agent()): Promise<string> {
    const clock = new FakeClock();
    const clientSecret = new ClientSecret(async () => new Secret(SECRET), clock, String);
    const endpoint = new TokenEndpoint({
      userAgent: 'spec/1',
      place: {
        url: new URL(tokenUrl),
        option: 'urls.authUrl',
        apiOption: 'urls.baseUrl',
        describeOption: String,
      },
      clientId: CLIENT_ID,
      clientSecret,
      exchange,
      agent,
      clock,
    });
    cleanUp.push(() => agent.destroy());
    return said(await failure(endpoint.request('api', ofItsOwn())));
  }

  it('refused, unknown host: names it and the options with its address', async () => {
    const expected = /\. Check .*urls\.authUrl/;
    const refused = await textOf('http://127.0.0.1:1/oauth2/token');
    expect(refused).toMatch(/at 127\.0\.0\.1:1: .*refused \(ECONNREFUSED\)/);
    expect(refused).toMatch(expected);
    const unknown = await textOf('http://auth.invalid/oauth2/token');
    expect(unknown).toMatch(/at auth\.invalid: the name auth\.invalid could not be looked up /);
    expect(unknown).toMatch(expected);
  });

  it('not trusted: names what it is verified against; not the host: says so', async () => {
    const authority = await createAuthority();
    const live = await mtlsServer(authority, { demandCertificate: false });
    cleanUp.push(() => live.close());
    const expected = /verified against: Node's public roots \(.* put it into tls\.chain/;
    expect(await textOf(live.url, new https.Agent())).toMatch(expected);
    const named = new https.Agent({ ca: authority.chain, servername: 'elsewhere.example' });
    const message = await textOf(live.url, named);
    expect(message).toMatch(
      /the server's certificate is for another host name, not for 127\.0\.0\.1 \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    );
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a certificate that it asks for and is not shown, %s: names oauth.mtls',
    async (maxVersion) => {
      const authority = await createAuthority();
      const live = await mtlsServer(authority, { maxVersion });
      cleanUp.push(() => live.close());
      const agent = new https.Agent({ ca: authority.chain });
      expect(await textOf(live.url, agent)).toMatch(
        /(ask for|asks for) a client certificate.*set oauth\.mtls/i,
      );
    },
  );

  it('a proxy that fails: names http.proxy', async () => {
    const agent = new Agent();
    agent.createConnection = (_, callback) => {
      const error = Object.assign(new Error('407'), { code: 'ERR_PROXY_TUNNEL_407' });
      setImmediate(() => callback?.(error, undefined as never));
      return undefined;
    };
    const message = await textOf('http://127.0.0.1:1/oauth2/token', agent);
    expect(message).toMatch(/ERR_PROXY_TUNNEL_407.*Check http\.proxy/);
  });

  it.each([404, 405])('HTTP %d: names the address, without the path', async (status) => {
    const { request } = await setUp({ answer: () => ({ status }) });
    expect(said(await failure(request()))).toMatch(/urls\.authUrl, .*without \/oauth2\/token/);
  });
});

describe('with oauth.mtls', () => {
  interface Shown {
    authority: Authority;
    /** The only one that the endpoint accepts. */
    accepted?: Issued;
    first: Issued;
    /** What is in use after the identity was read again. */
    second?: Issued;
  }

  const summary = ({ x509, certificate }: Issued) => ({
    subject: x509.subject,
    issuer: x509.issuer,
    fingerprint256: certificate.slice(100, 150),
    validFrom: x509.notBefore,
    validTo: x509.notAfter,
  });

  async function setUpMtls({ authority, accepted, first, second }: Shown) {
    const live = await mtlsServer(authority, {
      onRequest: (_request, response) =>
        response.setHeader('content-type', 'application/json').end(JSON.stringify(granted('api').body)),
    });
    // To a certificate it does not trust, Node's server says nothing: a missing one is what brings an alert.
    const agent = new https.Agent({ ca: authority.chain });
    let shown: Issued;
    const show = (issued: Issued) => {
      shown = issued;
      if (issued === accepted) Object.assign(agent.options, { cert: issued.certificate, key: issued.key });
    };
    show(first);
    const refused: unknown[] = [];
    const identity: ReloadableIdentity = {
      get certificate() {
        return summary(shown);
      },
      reloadAfterRefusal: async (certificate) => {
        refused.push(certificate?.subject);
        show(second ?? first);
        return second !== undefined;
      },
    };
    const clock = new FakeClock();
    const endpoint = new TokenEndpoint({
      userAgent: 'spec/1',
      place: {
        url: new URL(`${live.url}/oauth2/token`),
        option: 'urls.authUrl',
        apiOption: 'urls.baseUrl',
        describeOption: String,
      },
      clientId: CLIENT_ID,
      clientSecret: new ClientSecret(async () => new Secret(SECRET), clock, String),
      exchange,
      agent,
      identity,
      clock,
    });
    cleanUp.push(() => live.close());
    return { live, refused, request: () => endpoint.request('api', ofItsOwn()) };
  }

  it('a certificate that is refused is read again once, and the request made again with another one', async () => {
    const authority = await createAuthority();
    const [first, second] = await Promise.all([authority.client('old'), authority.client('new')]);
    const { live, refused, request } = await setUpMtls({ authority, accepted: second, first, second });
    expect(await request()).toMatchObject({
      accessToken: 'token',
      requestedWith: { fingerprint256: summary(second).fingerprint256 },
    });
    expect(refused).toEqual(['CN=old']);
    expect(live.subjects).toEqual(['new']);
  });

  it('with none other, or another that is refused too: an error that names it', async () => {
    const authority = await createAuthority();
    const [first, second] = await Promise.all([authority.client('old'), authority.client('new')]);
    for (const [after, named] of [
      [undefined, 'CN=old'],
      [second, 'CN=new'],
    ] as const) {
      const { refused, request } = await setUpMtls({ authority, first, second: after });
      const error = await failure(request());
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect(error).toMatchObject({ code: 'certificate_refused', certificate: { subject: named } });
      expect(error.message).toMatch(/ALERT|EPROTO/);
      expect(refused).toEqual(['CN=old']);
    }
  });
});

describe('no secret in an error', () => {
  const forms = [
    SECRET,
    encodeURIComponent(SECRET),
    new URLSearchParams({ s: SECRET }).toString().slice(2),
    SECRET.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('/', '&#x2F;'),
    JSON.stringify(JSON.stringify(SECRET)),
    `${SECRET.slice(0, 7)}\n${SECRET.slice(7)}`,
  ];

  it.each(forms)('that echoes %s', async (echo) => {
    const error_description = `bad\r\n\u0000secret ${echo} ${'x'.repeat(500)}`;
    const { request } = await setUp({
      answer: () => ({ status: 400, body: { error: echo, error_description } }),
    });
    const error = await failure(request());
    const printed = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error) + error.stack;
    for (const form of forms) expect(printed).not.toContain(form);
    expect(error.error_description).toMatch(/^\[not shown: /);
    expect(error.error).toBeUndefined();
  });

  it('also where control characters cut it apart', async () => {
    const body = { error: 'invalid_request', error_description: `s+/\u200b&=% ü€"\\end` };
    const { request } = await setUp({ answer: () => ({ status: 400, body }) });
    expect((await failure(request())).error_description).toMatch(/^\[not shown: /);
  });
});

describe('a refused secret', () => {
  it.each([
    [400, { error: 'unauthorized_client' }],
    [401, { error: 'invalid_client' }],
    [503, { error: 'invalid_client' }],
    [200, { error: 'invalid_client' }],
  ])(
    '%d %j: one request, an error that says what to check, remembered for 10 s for all scopes',
    async (status, body) => {
      const { server, request, clock } = await setUp({ answer: () => ({ status, body }) });
      const error = await failure(request());
      expect(error).toMatchObject({ code: 'token_refused', status });
      expect(error).toMatchObject({
        hint: expect.stringMatching(
          /oauth\.clientId.*oauth\.clientSecret.*developer portal.*secret.* makes the one before invalid/,
        ),
        options: expect.arrayContaining(['oauth.clientSecret', 'oauth.clientId']),
      });
      for (let call = 0; call < 50; call += 1) {
        expect(await failure(request(`customer.c${call}`))).toMatchObject({
          code: 'token_refused',
          retryAfter: 10,
          hint: (error as ServiceTokenError).hint,
        });
      }
      expect(server.arrived).toHaveLength(1);
      await clock.advance(10_000);
      await failure(request());
      expect(server.arrived).toHaveLength(2);
    },
  );

  it.each([
    [400, { error: 'invalid_scope' }],
    [401, { message: 'of a gateway' }],
    [403, 'a page'],
  ])('is not what %d %j says: the secret is neither read again nor remembered', async (status, body) => {
    let asked = 0;
    const { server, request } = await setUp({
      answer: ({ form }) =>
        form.get('scope') === 'customer.bad' ? { status, body } : granted(form.get('scope')),
      source: () => ((asked += 1), SECRET),
    });
    await failure(request('customer.bad'));
    await failure(request('customer.bad'));
    expect([server.arrived.length, asked]).toEqual([2, 1]);
    expect(await request('customer.good')).toMatchObject({ scope: 'customer.good' });
  });

  it('is asked for again once, and the new one is tried at once', async () => {
    const right = { right: 'new' };
    const secrets = ['old', 'new'];
    const { server, request } = await setUp({
      answer: demanding(right),
      source: () => secrets.shift() ?? 'new',
    });
    const { accessToken, requestedWith } = await request();
    expect([accessToken, requestedWith?.secret.reveal()]).toEqual(['token-2', 'new']);
    expect(server.arrived.map(({ form }) => form.get('client_secret'))).toEqual(['old', 'new']);
  });

  it('stays the outcome where it cannot be read again', async () => {
    const answers = ['old'];
    const { server, request } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => answers.pop() ?? Promise.reject(new Error('the vault is sealed')),
    });
    expect(await failure(request())).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    expect(server.arrived).toHaveLength(1);
  });

  it('that is still the same is not sent again', async () => {
    let asked = 0;
    const { server, request } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => ((asked += 1), 'old'),
    });
    expect(await failure(request())).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    expect([server.arrived.length, asked]).toEqual([1, 2]);
  });

  it('refused to many at once is asked for again once', async () => {
    let asked = 0;
    const { request } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => ((asked += 1), asked === 1 ? 'old' : 'new'),
    });
    await Promise.all(Array.from({ length: 20 }, (_, n) => request(`customer.c${n}`)));
    expect(asked).toBe(2);
  });

  it('fails no caller that comes while it is read again: they share the reading', async () => {
    const secret = { right: 'old' };
    const readings: ((secret: string) => void)[] = [];
    let reads = (): void => undefined;
    const { server, request } = await setUp({
      answer: demanding(secret),
      source: () => new Promise((resolve) => (readings.push(resolve), reads())),
    });
    const reading = (): Promise<void> => new Promise((resolve) => (reads = resolve));
    const first = request('customer.first');
    readings[0]('old');
    await first;
    secret.right = 'new';
    const readAgain = reading();
    const refused = request('customer.refused');
    await readAgain;
    const later = [1, 2, 3].map((n) => request(`customer.c${n}`));
    await settle();
    readings[1]('new');
    for (const { accessToken } of await Promise.all([refused, ...later]))
      expect(accessToken).toMatch(/^token/);
    const sent = server.arrived.map(({ form }) => form.get('client_secret'));
    expect([readings.length, sent]).toEqual([2, ['old', 'old', 'new', 'new', 'new', 'new']]);
  });

  it('two wrong ones are two requests, and no more for 10 s', async () => {
    let asked = 0;
    const { server, request, clock } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => ((asked += 1), asked === 1 ? 'old' : 'older'),
    });
    await failure(request());
    await clock.advance(5_000);
    await failure(request('customer.c1'));
    expect(server.arrived).toHaveLength(2);
  });

  it('health checks send it again after 60 s, another one at once, and read the source once each time', async () => {
    const secret = { right: 'new', source: 'old', asked: 0 };
    const { server, request, clock } = await setUp({
      answer: demanding(secret),
      source: () => ((secret.asked += 1), secret.source),
    });
    const probe = () => request('api', { isProbe: true });
    await failure(probe());
    const asked = secret.asked;
    for (let number = 0; number < 11; number += 1) {
      await clock.advance(5_000);
      expect(await failure(probe())).toMatchObject({ code: 'token_refused', status: 401 });
    }
    expect([secret.asked - asked, server.arrived.length]).toEqual([11, 1]);
    await clock.advance(5_000);
    await failure(probe());
    expect(server.arrived).toHaveLength(2);
    secret.source = 'new';
    await clock.advance(5_000);
    expect(await probe()).toMatchObject({ scope: 'api' });
  });

  it('being remembered does not hold up another one, and the source is asked once a second', async () => {
    const secret = { right: 'new', source: 'old', asked: 0 };
    const { server, request, clock } = await setUp({
      answer: demanding(secret),
      source: () => ((secret.asked += 1), secret.source),
    });
    await failure(request());
    secret.source = 'new';
    const asked = secret.asked;
    for (let call = 0; call < 100; call += 1) await failure(request(`customer.c${call}`));
    expect([secret.asked, server.arrived.length]).toEqual([asked, 1]);
    await clock.advance(1_000);
    expect(await request('customer.c1')).toMatchObject({ scope: 'customer.c1' });
  });
});

describe('the source of the secret', () => {
  it.each<[string, () => string | Promise<string>]>([
    [
      'throws',
      () => {
        throw new Error(`vault says ${SECRET}`);
      },
    ],
    ['rejects', () => Promise.reject(new Error(`vault says ${SECRET}`))],
    ['gives nothing', () => ''],
    ['gives no text', () => undefined as unknown as string],
  ])('%s: an error of ours, without its words', async (_name, source) => {
    const { server, request } = await setUp({ answer: () => granted('api'), source });
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'client_secret_unavailable' });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/vault/);
    expect(server.arrived).toHaveLength(0);
  });

  it('does not answer: given up after 8 s', async () => {
    const { request, clock } = await setUp({
      answer: () => granted('api'),
      source: () => new Promise(() => undefined),
    });
    const waiting = failure(request());
    await clock.advance(7_999);
    expect(clock.timers).toBe(1);
    await clock.advance(1);
    const error = await waiting;
    expect(error).toMatchObject({ code: 'client_secret_unavailable' });
    expect(String(error)).toContain('longer than 8 s');
    expect(clock.timers).toBe(0);
  });

  it('is asked once by callers that come together', async () => {
    let asked = 0;
    const { request } = await setUp({
      answer: ({ form }) => granted(form.get('scope')),
      source: async () => ((asked += 1), SECRET),
    });
    await Promise.all(Array.from({ length: 20 }, (_, n) => request(`customer.c${n}`)));
    expect(asked).toBe(1);
  });
});

describe('with the cache, over real sockets', () => {
  const cacheOf = (source: TokenEndpoint): TokenCache => {
    const cache = makeCache({ source, clock: systemClock, maxEntries: 100 });
    cleanUp.unshift(() => cache.close());
    return cache;
  };

  it('1,000 concurrent callers make one request', async () => {
    const { server, endpoint } = await setUp({ answer: () => granted('api') });
    const cache = cacheOf(endpoint);
    const tokens = await Promise.all(Array.from({ length: 1_000 }, () => cache.get('api')));
    expect(new Set(tokens.map(({ accessToken }) => accessToken))).toEqual(new Set(['token']));
    expect(server.arrived).toHaveLength(1);
  });

  it('a 503 is tried again, and nobody notices', async () => {
    const { server, endpoint } = await setUp({
      answer: (_request, number) => (number < 3 ? { status: 503 } : granted('api')),
    });
    expect((await cacheOf(endpoint).get('api')).accessToken).toBe('token');
    expect(server.arrived).toHaveLength(3);
  });

  it('a rotation under 50 calls/s fails no call', async () => {
    const secret = { right: 'one' };
    const { server, endpoint } = await setUp({
      answer: ({ form }, number) =>
        form.get('client_secret') === secret.right
          ? granted(form.get('scope'), `token-${number}`, 1)
          : { status: 401, body: { error: 'invalid_client' } },
      source: () => secret.right,
    });
    const cache = cacheOf(endpoint);
    await cache.get('api');
    const calls: Promise<unknown>[] = [];
    for (let call = 0; call < 75; call += 1) {
      if (call === 30) secret.right = 'two';
      calls.push(cache.get('api'), cache.get(`customer.c${call % 3}`));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect((await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected')).toEqual([]);
    expect(new Set(server.arrived.map(({ form }) => form.get('client_secret')))).toEqual(
      new Set(['one', 'two']),
    );
  });

  it('closing ends a request that is under way', async () => {
    let arrive = (): void => undefined;
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const { endpoint } = await setUp({ answer: () => (arrive(), { fault: 'silent' }) });
    const cache = cacheOf(endpoint);
    const waiting = failure(cache.get('api'));
    await arrived;
    cache.close();
    expect(await waiting).toMatchObject({ code: 'connection_closed' });
  });
});

describe('a proxy before the endpoint that answers with a page', () => {
  const HTML = { 'content-type': 'text/html' };
  const denied: ServerAnswer = { status: 403, headers: HTML, body: '<h1>403 Forbidden</h1>' };
  const missing: ServerAnswer = { status: 496, headers: HTML, body: '<h1>496</h1>' };
  const named: ServerAnswer = { status: 400, headers: HTML, body: 'No required SSL certificate was sent' };

  /** The identity of oauth.mtls; it has `next` in use once it was read again. */
  const identityOf = (...fingerprints: string[]) => {
    const validFrom = new Date();
    const validTo = new Date(Date.now() + 86_400_000);
    const certificates = fingerprints.map((fingerprint256) => {
      return { subject: `CN=${fingerprint256}`, issuer: 'CN=issuer', fingerprint256, validFrom, validTo };
    });
    return {
      get certificate() {
        return certificates[0];
      },
      reloadAfterRefusal: async () => certificates.length > 1 && certificates.shift() !== undefined,
    };
  };

  it.each([
    ['496', missing],
    ['400 that names the certificate', named],
    ['403 that does not say why', denied],
  ])('%s: the certificate is read again, and the request made again with another one', async (_, page) => {
    const identity = identityOf('old', 'new');
    const { server, request } = await setUp({
      answer: ({ form }, number) => (number === 1 ? page : granted(form.get('scope'))),
      identity,
    });
    expect(await request()).toMatchObject({ accessToken: 'token' });
    expect(server.arrived).toHaveLength(2);
  });

  it.each([
    ['496', missing],
    ['400 that names the certificate', named],
  ])('%s, and no other certificate: a credential fault that names it', async (_, page) => {
    const { server, request } = await setUp({ answer: () => page, identity: identityOf('only') });
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'certificate_refused', certificate: { fingerprint256: 'only' } });
    expect(error.message).toMatch(/CN=only.*HTTP 4/);
    expect(server.arrived).toHaveLength(1);
  });

  it.each([
    ['403 that does not say why', denied],
    ['400 that asks for a certificate, and none is offered', named],
  ])('%s: no verdict on the secret; names oauth.mtls', async (_, page) => {
    const { request } = await setUp({ answer: () => page });
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'token_unavailable' });
    expect(said(error)).toMatch(/swapped\?.*oauth\.mtls.*oauth\.clientSecret/);
    expect(error.message).not.toContain('Forbidden');
  });
});
