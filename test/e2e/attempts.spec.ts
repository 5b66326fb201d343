import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import {
  type ServiceCallAttempt,
  type ServiceCallEvent,
  type ServiceHttpService,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { startConnectProxy } from '../helpers/connect-proxy.js';
import { freePort } from '../helpers/loopback.js';
import { CollectingLogger, secretsIn } from '../helpers/secret-scan.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

let simulator: ServiceSimulator;
const open: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  simulator = await startSimulator();
});
afterEach(async () => {
  for (const close of open.splice(0)) await close();
  simulator.clearFaults();
  simulator.clearRequests();
});
afterAll(() => simulator.stop());

async function start(
  authentication: 'mtls' | 'oauth' = 'mtls',
  { http, ...more }: ServiceModuleOptions = {},
) {
  const events: ServiceCallEvent[] = [];
  const logger = new CollectingLogger();
  const options = simulator.moduleOptions({ authentication });
  const onCall = (event: ServiceCallEvent) => void events.push(event);
  const api = await startModule({ ...options, ...more, http: { ...options.http, onCall, ...http } }, logger);
  open.push(() => api.module.close());
  /** The attempts of the calls, or of the token requests, that have ended. */
  const attemptsOf = (kind: 'api' | 'token' = 'api') =>
    events.filter((event) => event.kind === kind).map((event) => event.attemptDetails);
  return { ...api, events, logger, attemptsOf };
}

/** The fields without times. */
const outlineOf = (attempts: readonly ServiceCallAttempt[]) =>
  attempts.map(({ status, fault, connection }) => [status ?? fault, connection]);

/** The moments that an attempt has reached, in their order. They never decrease. */
function momentsOf({ tokenMs, connectedMs, firstByteMs, durationMs }: ServiceCallAttempt): string[] {
  const all = Object.entries({ tokenMs, connectedMs, firstByteMs, durationMs });
  const reached = all.filter(([, ms]) => ms !== undefined) as [string, number][];
  const times = reached.map(([, ms]) => ms);
  expect(times).toEqual([...times].sort((one, other) => one - other));
  expect(times[0]).toBeGreaterThanOrEqual(0);
  return reached.map(([name]) => name);
}

/** Two calls of one attempt each, with certificates alone: the second one reuses the connection of the first. */
function expectNewThenReused(attempts: readonly (readonly ServiceCallAttempt[])[]): void {
  expect(attempts.map(outlineOf)).toEqual([[[200, 'new']], [[200, 'reused']]]);
  for (const attempt of attempts.flat())
    expect(momentsOf(attempt)).toEqual(['connectedMs', 'firstByteMs', 'durationMs']);
}

const DELAY_MS = 120;
/** A timer may fire a little early. */
const LEAST_MS = DELAY_MS - 20;

describe('The attempts in an event of http.onCall', () => {
  it('say whether the connection was new or reused', async () => {
    const { banks, attemptsOf } = await start();
    await banks.list();
    await banks.list();
    expectNewThenReused(attemptsOf());
  });

  it('say when the first byte came, and when the body had been read', async () => {
    const { banks, http, attemptsOf } = await start();
    await banks.list();
    simulator.fail({ path: /banks/, fault: { delayMs: DELAY_MS } });
    await banks.list();
    simulator.fail({ path: /banks/, fault: { trickleMs: 10 } });
    await rejection(http.get('/banks/v1', { timeout: 500, retries: 0 }));
    const [, [delayed], [trickled]] = attemptsOf();
    expect((delayed.firstByteMs as number) - (delayed.connectedMs as number)).toBeGreaterThan(LEAST_MS);
    expect(trickled.fault).toBe('timeout');
    expect(trickled.durationMs - (trickled.firstByteMs as number)).toBeGreaterThan(100);
  });

  it('say when a call had its token, whose request has attempts too', async () => {
    const { banks, attemptsOf } = await start('oauth');
    simulator.fail({ path: /token/, fault: { delayMs: DELAY_MS } });
    await banks.list();
    await banks.list();
    const [[first], [second]] = attemptsOf();
    expect(first.tokenMs).toBeGreaterThan(LEAST_MS);
    expect(second.tokenMs).toBeLessThan(first.tokenMs as number);
    // The agent has connected while the call waited for its token.
    expect(outlineOf([first, second])).toEqual([
      [200, 'new'],
      [200, 'reused'],
    ]);
    const [[token]] = attemptsOf('token');
    expect(outlineOf([token])).toEqual([[200, 'new']]);
    expect(momentsOf(token)).toEqual(['connectedMs', 'firstByteMs', 'durationMs']);
    expect(token.firstByteMs).toBeGreaterThan(LEAST_MS);
  });

  it('say how long a call waited for a free connection', async () => {
    const { banks, attemptsOf } = await start('mtls', { http: { maxSockets: 1 } });
    simulator.fail({ path: /banks/, fault: { delayMs: DELAY_MS } });
    await Promise.all([banks.list(), banks.list()]);
    const [, [waited]] = attemptsOf();
    expect(waited.connection).toBe('reused');
    expect(waited.connectedMs).toBeGreaterThan(LEAST_MS);
  });

  it.each<[string, SimulatorFault | 'nobody listens', string[], ServiceModuleOptions['http']]>([
    ['nobody listens', 'nobody listens', ['refused', 'new', 'durationMs'], {}],
    ['the server resets the handshake', 'reset-handshake', ['reset', 'new', 'durationMs'], {}],
    ['the server resets the request', 'reset', ['reset', 'new', 'connectedMs', 'durationMs'], { retries: 0 }],
    [
      'the response stops',
      'truncate',
      ['reset', 'new', 'connectedMs', 'firstByteMs', 'durationMs'],
      { retries: 0 },
    ],
    [
      'no response comes',
      'hang',
      ['timeout', 'new', 'connectedMs', 'durationMs'],
      { retries: 0, timeout: 300 },
    ],
    [
      'the response is too large',
      { json: { text: 'x'.repeat(2_000) }, status: 200 },
      ['too_large', 'new', 'connectedMs', 'firstByteMs', 'durationMs'],
      { maxResponseBytes: 1_000 },
    ],
  ])('name the fault if %s', async (_, fault, expected, http) => {
    const { urls } = simulator.moduleOptions();
    const isRefused = fault === 'nobody listens';
    const baseUrl = isRefused ? `https://127.0.0.1:${await freePort()}` : urls.baseUrl;
    const { banks, events } = await start('mtls', {
      urls: { ...urls, baseUrl },
      http: { retries: 0, ...http },
    });
    if (fault !== 'nobody listens')
      simulator.fail({ fault, ...(fault === 'reset-handshake' ? { face: 'base' } : { path: /banks/ }) });
    await rejection(banks.list());
    const [{ attempts, attemptDetails }] = events;
    expect([attempts, attemptDetails.length]).toEqual([1, 1]);
    const [attempt] = attemptDetails;
    expect([...outlineOf([attempt])[0], ...momentsOf(attempt)]).toEqual(expected);
  });

  it('name the abort of a caller, and have no connection if the call was still in the queue', async () => {
    const { banks, attemptsOf } = await start('mtls', { http: { maxSockets: 1 } });
    simulator.fail({ path: /banks/, fault: 'hang' });
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [rejection(banks.list({ signal })), rejection(banks.list({ signal }))];
    await simulator.waitForRequest(() => true, 30_000);
    controller.abort();
    await Promise.all(calls);
    expect(attemptsOf().flatMap(outlineOf)).toEqual([
      ['aborted', 'new'],
      ['aborted', undefined],
    ]);
  });

  it('begin after the pause before a retry', async () => {
    const { banks, attemptsOf } = await start();
    simulator.fail({ path: /banks/, fault: { status: 503, headers: { 'retry-after': '1' } } });
    await banks.list();
    const [[first, second]] = attemptsOf();
    expect(outlineOf([first, second])).toEqual([
      [503, 'new'],
      [200, 'reused'],
    ]);
    expect(second.startMs - (first.startMs + first.durationMs)).toBeGreaterThan(990);
  });

  it('have one of its own for the replay after a 401, which begins with the wait for the other token', async () => {
    const { banks, attemptsOf } = await start('oauth');
    await banks.list();
    simulator.revokeTokens();
    simulator.fail({ path: /token/, fault: { delayMs: DELAY_MS } });
    await banks.list();
    const [, [refused, replay]] = attemptsOf();
    expect(outlineOf([refused, replay])).toEqual([
      [401, 'reused'],
      [200, 'reused'],
    ]);
    expect(refused.tokenMs).toBeLessThan(replay.tokenMs as number);
    expect(replay.tokenMs).toBeGreaterThan(LEAST_MS);
    expect(replay.startMs).toBeGreaterThanOrEqual(refused.startMs + refused.durationMs);
  });

  it('have one of its own for the reconnect after the server has closed the reused connection', async () => {
    const { banks, auth, attemptsOf } = await start('oauth');
    await banks.list();
    simulator.fail({ path: /banks/, fault: 'reset' });
    await banks.list();
    simulator.fail({ path: /token/, fault: 'reset' });
    await auth.getCustomerToken('c-1');
    const reconnected = [
      ['reset', 'reused'],
      [200, 'new'],
    ];
    expect(attemptsOf().map(outlineOf)[1]).toEqual(reconnected);
    expect(attemptsOf('token').map(outlineOf)[1]).toEqual(reconnected);
  });

  it('are those of the connection inside the tunnel of a proxy', async () => {
    const proxy = await startConnectProxy();
    open.push(() => proxy.stop());
    const { banks, attemptsOf } = await start('mtls', { http: { proxy: proxy.url } });
    await banks.list();
    await banks.list();
    expectNewThenReused(attemptsOf());
    const refusing = `http://127.0.0.1:${await freePort()}`;
    const without = await start('mtls', { http: { proxy: refusing, retries: 0 } });
    await rejection(without.banks.list());
    const [[failed]] = without.attemptsOf();
    expect(outlineOf([failed])).toEqual([['proxy', 'new']]);
    expect(momentsOf(failed)).toEqual(['durationMs']);
  });

  it('contain nothing secret, and neither does the line of http.logCalls', async () => {
    const { http, events, logger } = await start('oauth', { http: { logCalls: true } });
    const call = (service: ServiceHttpService) =>
      service.get('/orders/v1/{id}', { pathParams: { id: 'private-id' }, params: { q: 'private-q' } });
    await rejection(call(http));
    simulator.fail({ path: /orders/, times: 9, fault: 'reset' });
    await rejection(call(http));
    const bearer = simulator.apiRequests[0].headers.authorization.replace('Bearer ', '');
    const { clientSecret } = simulator;
    const shown = `${inspect(events, { depth: null })}\n${JSON.stringify(events)}\n${logger.lines.join('\n')}`;
    expect(shown).toMatch(/reset after \d+ ms, new connection, token \d+, connected \d+\b/);
    expect(secretsIn(shown, { clientSecret, bearer, id: 'private-id', query: 'private-q' })).toEqual([]);
    const fields = events.flatMap((event) => event.attemptDetails).flatMap(Object.entries);
    for (const [, value] of fields) expect(String(value)).toMatch(/^([\d.e-]+|reset|new|reused)$/);
  });
});
