import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { request } from 'node:https';
import { gunzipSync } from 'node:zlib';
import { type AnswerFault, type FaultRule } from '../../../lib/testing/faults.js';
import { type ServiceSimulator } from '../../../lib/testing/simulator.js';
import { type TlsAlert } from '../../../lib/testing/tls-alert.js';
import { call, failCode, requestToken } from '../../helpers/plain-client.js';
import { startSimulator } from '../../helpers/simulators.js';

describe('the faults of ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  let url: string;
  beforeAll(async () => {
    simulator = await startSimulator();
    url = `${simulator.urls.sandboxUrl}/banks/v1`;
  });
  afterEach(() => {
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  const banks = (target = url) =>
    call(simulator, target, { headers: { 'service-app-token': simulator.appToken } });

  it.each<[string, AnswerFault, object]>([
    ['a status', { status: 503 }, { status: 503, body: '' }],
    [
      'a status with JSON and headers',
      { status: 429, json: { status: 'X', message: 'y' }, headers: { 'retry-after': '2' } },
      { status: 429, json: { status: 'X', message: 'y' }, headers: { 'retry-after': '2' } },
    ],
    ['a status with a text', { status: 502, body: '<html>' }, { status: 502, body: '<html>' }],
    ['html', 'html', { status: 200, headers: { 'content-type': 'text/html' } }],
    ['empty', 'empty', { status: 200, body: '', headers: { 'content-length': '0' } }],
  ])('answer %s', async (_, fault, expected) => {
    const handle = simulator.fail({ fault });
    const reply = await banks();
    expect(reply).toMatchObject(expected);
    expect(simulator.requests).toMatchObject([{ status: reply.status }]);
    expect(handle.hits).toBe(1);
    expect((await banks()).status).toBe(200);
  });

  it.each<[AnswerFault & string, string, number | undefined]>([
    ['reset', 'ECONNRESET', undefined],
    ['reset-after-headers', 'ECONNRESET', 200],
    ['truncate', 'ECONNRESET', 200],
  ])('end the connection: %s', async (fault, code, status) => {
    simulator.fail({ fault });
    expect(await failCode(banks())).toBe(code);
    expect(simulator.requests.map((each) => each.status)).toEqual([status]);
    expect((await banks()).status).toBe(200);
  });

  it('truncate after headers and a part of the body', async () => {
    simulator.fail({ fault: 'truncate' });
    const received = await new Promise<string>((resolve, reject) => {
      const outgoing = request(url, { ca: simulator.chain, agent: false }, (response) => {
        let text = '';
        response.on('data', (chunk) => (text += chunk));
        response.on('error', () => resolve(`${response.headers['content-length']}:${text.length}`));
      });
      outgoing.on('error', reject).end();
    });
    expect(received).toBe('200:100');
  });

  it('reset before the handshake: no request is read, no handshake counted', async () => {
    const { total } = simulator.handshakes.sandbox;
    const handle = simulator.fail({ face: 'sandbox', fault: 'reset-handshake' });
    expect(await failCode(banks())).toBe('ECONNRESET');
    expect([handle.hits, simulator.requests.length]).toEqual([1, 0]);
    expect(simulator.handshakes.sandbox.total).toBe(total);
    expect((await banks()).status).toBe(200);
  });

  it.each<TlsAlert>([
    'handshake_failure',
    'bad_certificate',
    'unsupported_certificate',
    'certificate_revoked',
    'certificate_expired',
    'certificate_unknown',
    'unknown_ca',
    'access_denied',
    'certificate_required',
  ])('send the TLS alert %s', async (tlsAlert) => {
    simulator.fail({ fault: { tlsAlert } });
    const code = await failCode(banks());
    expect(code).toMatch(/^ERR_SSL_.*_ALERT_/);
    expect(code.split('_ALERT_')[1]).toBe(tlsAlert.toUpperCase());
    expect((await banks()).status).toBe(200);
  });

  it('hang until the client leaves', async () => {
    simulator.fail({ fault: 'hang' });
    const client = new AbortController();
    const hanging = expect(call(simulator, url, { signal: client.signal })).rejects.toThrow(/abort/);
    expect((await simulator.waitForRequest(() => true)).status).toBeUndefined();
    client.abort();
    await hanging;
  });

  it('delay the usual answer', async () => {
    simulator.fail({ fault: { delayMs: 80 } });
    const start = performance.now();
    expect((await banks()).status).toBe(200);
    expect(performance.now() - start).toBeGreaterThan(75);
  });

  it('trickle without end', async () => {
    simulator.fail({ fault: { trickleMs: 5 } });
    const pieces = await new Promise<number>((resolve, reject) => {
      const outgoing = request(url, { ca: simulator.chain, agent: false }, (response) => {
        let count = 0;
        response.on('data', () => (count += 1) === 4 && outgoing.destroy());
        response.on('error', () => resolve(count));
      });
      outgoing.on('error', reject).end();
    });
    expect(pieces).toBe(4);
  });

  it('send a gzip bomb of the size asked for', async () => {
    simulator.fail({ fault: { gzipBombBytes: 3_000_000 } });
    const packed = await new Promise<Buffer>((resolve, reject) => {
      const outgoing = request(url, { ca: simulator.chain, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('end', () => resolve(Buffer.concat(chunks)));
      });
      outgoing.on('error', reject).end();
    });
    expect(packed.length).toBeLessThan(60_000);
    const text = gunzipSync(packed).toString();
    expect(text).toHaveLength(3_000_000);
    expect(JSON.parse(text)).toMatch(/^a+$/);
  });

  it('change the answer of the token endpoint, and of nothing else', async () => {
    const handle = simulator.fail({
      times: 2,
      fault: { tokenResponse: { expires_in: '60', scope: undefined } },
    });
    expect((await banks()).status).toBe(200);
    const { json } = await requestToken(simulator);
    expect(json).toEqual({ access_token: expect.any(String), token_type: 'bearer', expires_in: '60' });
    const refused = await requestToken(simulator, { client_secret: 'wrong' });
    expect(refused.json).not.toHaveProperty('expires_in');
    expect(handle.hits).toBe(2);
  });

  it('hit what matches: face, method, path, condition', async () => {
    const never = [
      simulator.fail({ face: 'base', fault: { status: 500 } }),
      simulator.fail({ face: ['token', 'base'], fault: { status: 500 } }),
      simulator.fail({ method: 'POST', fault: { status: 500 } }),
      simulator.fail({ path: '/customers/v1', fault: { status: 500 } }),
      simulator.fail({ path: /^\/echo/, fault: { status: 500 } }),
      simulator.fail({ when: ({ headers }) => 'x-absent' in headers, fault: { status: 500 } }),
    ];
    expect((await banks()).status).toBe(200);
    expect(never.map((handle) => handle.hits)).toEqual([0, 0, 0, 0, 0, 0]);
    simulator.fail({ face: ['sandbox'], method: 'get', path: '/banks/v1', fault: { status: 418 } });
    expect((await banks(`${url}/?a=b`)).status).toBe(418);
    simulator.fail({ path: /banks/g, when: ({ path }) => path.endsWith('v1'), fault: { status: 419 } });
    expect((await banks()).status).toBe(419);
  });

  it('occur as often as configured, until stopped or cleared', async () => {
    const statuses = async (count: number) => {
      const seen: number[] = [];
      for (let index = 0; index < count; index += 1) seen.push((await banks()).status);
      return seen;
    };
    simulator.fail({ times: 2, fault: { status: 500 } });
    simulator.fail({ fault: { status: 501 } });
    expect(await statuses(4)).toEqual([500, 500, 501, 200]);
    const endless = simulator.fail({ times: Infinity, fault: { status: 500 } });
    expect(await statuses(3)).toEqual([500, 500, 500]);
    endless.stop();
    expect(await statuses(1)).toEqual([200]);
    simulator.fail({ fault: { status: 500 } });
    simulator.clearFaults();
    expect(await statuses(1)).toEqual([200]);
  });

  it('occur at each path that a pattern stands for', async () => {
    const handle = simulator.fail({ path: '/banks/v1/{id}', times: Infinity, fault: { status: 503 } });
    const statuses: number[] = [];
    for (const path of ['/banks/v1/7?page=2', '/banks/v1/%C3%BC/', '/banks/v1', '/banks/v1/7/notes']) {
      const headers = { 'service-app-token': simulator.appToken };
      statuses.push((await call(simulator, simulator.urls.sandboxUrl + path, { headers })).status);
    }
    handle.stop();
    expect(statuses).toEqual([503, 503, 200, 404]);
  });

  it.each<[string, object, string]>([
    ['a fault', { fault: 'rest' }, "there is no fault 'rest'. A fault is reset, "],
    ['an answer', { fault: { stauts: 503 } }, 'there is no fault { stauts: 503 }'],
    ['no fault at all', {}, 'there is no fault undefined'],
    ['an alert', { fault: { tlsAlert: 'unkown_ca' } }, "there is no fault { tlsAlert: 'unkown_ca' }"],
    [
      'a path without a slash',
      { path: 'banks/v1', fault: 'reset' },
      "the path 'banks/v1' matches no request",
    ],
    ['a path with :id', { path: '/a/:id', fault: 'reset' }, "a path is as '/accounts/v1/{id}'"],
    ['a path with a query', { path: '/banks/v1?a', fault: 'reset' }, "the path '/banks/v1?a' matches no"],
    [
      'a face',
      { face: ['base', 'sandbx'], fault: 'reset' },
      "there is no face 'sandbx'. The faces are base, ",
    ],
  ])('refuse %s that there is not', async (_, rule, message) => {
    const add = () => simulator.fail(rule as FaultRule);
    expect(add).toThrow(TypeError);
    expect(add).toThrow(`simulator.fail(): ${message}`);
    expect((await banks()).status).toBe(200);
  });

  it('report a condition that throws', async () => {
    simulator.fail({
      when: () => {
        throw new Error('mistake of the test');
      },
      fault: 'reset',
    });
    expect(await banks()).toMatchObject({ status: 500, json: { message: 'mistake of the test' } });
  });
});
