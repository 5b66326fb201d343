import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type RequestListener } from 'node:http';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { ServiceLifecycle, type ServiceParts } from '../../../lib/engine/lifecycle.js';
import { ServiceConnectionError } from '../../../lib/errors/index.js';
import { CallsInFlight } from '../../../lib/http/calls-in-flight.js';
import { systemClock } from '../../../lib/time/clock.js';
import { makeClient } from '../../helpers/make-client.js';
import { afterwards, APP_TOKEN, errorOf, failing, setUp } from '../http/setup.js';

describe('Start and end', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  function lifecycle(list: () => Promise<unknown> = async () => []) {
    const events: string[] = [];
    const note = (event: string) => (): void => void events.push(event);
    const calls = new CallsInFlight();
    const parts = {
      options: {
        startupCheck: 'fail',
        describeOption: (option: string) => option,
        locate: (option: string) => ({ option }),
        http: { shutdownTimeout: 5_000, timeout: 30_000 },
        addresses: { baseUrl: 'https://api.example', baseOption: 'urls.baseUrl' },
      },
      io: {
        clock: systemClock,
        log: { log: () => undefined, warn: (message: string) => void events.push(message) },
      },
      calls,
      tokens: {
        close: note('tokens close'),
      },
      identity: {
        follow: note('follow'),
        status: { daysLeft: 5 },
        close: async (graceMs?: number) => void events.push(`agents close ${graceMs}`),
      },
      banks: { list: () => (events.push('check'), list()) },
    };
    return { calls, events, service: new ServiceLifecycle(parts as unknown as ServiceParts) };
  }

  it('follows the identity once the check has passed', async () => {
    const { service, events } = lifecycle();
    await service.start();
    expect(events).toEqual(['check', 'follow']);
  });

  it('follows nothing where it was closed while the check ran', async () => {
    let answer: (banks: unknown) => void = () => undefined;
    const { service, events } = lifecycle(() => new Promise((resolve) => (answer = resolve)));
    const started = service.start();
    await service.close();
    answer([]);
    await started;
    expect(events).toEqual(['check', 'tokens close', 'agents close 5000']);
  });

  it('closes everything where the application must not start', async () => {
    const refused = new ServiceConnectionError({ kind: 'refused', message: 'not reached' });
    const { service, events, calls } = lifecycle(() => Promise.reject(refused));
    await expect(service.start()).rejects.toThrow('not reached');
    expect(events).toEqual(['check', 'tokens close', 'agents close 0']);
    expect(() => calls.admit()).toThrow('The client is closed');
  });

  it('waits for calls in flight, and gives connections of the host what is left of the time', async () => {
    const { service, events, calls } = lifecycle();
    await service.start();
    events.length = 0;
    let answer = (): void => undefined;
    const call = calls.run(() => new Promise<void>((resolve) => (answer = resolve)));
    service.beginShutdown();
    expect(() => calls.admit()).not.toThrow();
    await jest.advanceTimersByTimeAsync(1_000);
    const ended = service.close();
    expect(() => calls.admit()).toThrow('The client is closed');
    await jest.advanceTimersByTimeAsync(1_000);
    expect(events).toEqual([]);
    answer();
    await Promise.all([call, ended]);
    expect(events).toEqual(['tokens close', 'agents close 3000']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    [0, undefined],
    [1, '1 call was'],
    [2, '2 calls were'],
  ])('ends what is left when the time is over: %d calls', async (count, which) => {
    const { service, events, calls } = lifecycle();
    await service.start();
    events.length = 0;
    for (let call = 0; call < count; call += 1) void calls.run(() => new Promise(() => undefined));
    service.beginShutdown();
    await jest.advanceTimersByTimeAsync(4_999);
    expect(events).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    const said = `Shutdown: ${which} still running after http.shutdownTimeout (5000 ms), and aborted.`;
    expect(events).toEqual(['tokens close', 'agents close undefined', ...(which ? [said] : [])]);
    await service.close();
    expect(events.at(-1)).toBe('agents close 0');
  });

  it('follows the identity from a first call on that comes before the start', async () => {
    const { events, calls } = lifecycle();
    await calls.run(async () => undefined);
    await calls.run(async () => undefined);
    expect(events).toEqual(['follow']);
  });
});

describe('the client of a module', () => {
  async function clientWith(listener: RequestListener | undefined, given: ServiceModuleOptions) {
    const { server, arrived } = await setUp({ listener });
    const urls = { sandboxUrl: server.url };
    const { service, lines } = await makeClient({ urls, appToken: APP_TOKEN, ...given }, { name: 'ksa' });
    afterwards(() => service.close());
    return { service, axios: service.http.axiosRef, arrived, lines };
  }

  it('sends the header and the request id of its options, and counts its calls', async () => {
    const http = { requestId: () => 'r-1', correlationIdHeader: 'X-Own-Id' };
    let closing: Promise<void> | undefined;
    const listener: RequestListener = (_, response) => {
      closing = made.service.close();
      response.end('{}');
    };
    const made = await clientWith(listener, { appTokenHeader: 'X-Own-Token', http });
    await made.axios.get('/a', { headers: { 'x-own-token': 'of the caller' } });
    expect(made.arrived[0]?.headers).toMatchObject({ 'x-own-token': APP_TOKEN, 'x-own-id': 'r-1' });
    await closing;
    expect(await errorOf(made.axios.get('/a'))).toMatchObject({ kind: 'closed' });
  });

  it('has its number of retries and its time limit', async () => {
    const once = await clientWith(failing(503), { http: { retries: 0 } });
    expect(await errorOf(once.axios.get('/a'))).toMatchObject({ status: 503 });
    const twice = await clientWith(failing(503), { http: { retries: 1 } });
    expect((await twice.axios.get('/a')).status).toBe(200);
    expect(twice.lines).toEqual(['warn: GET /a: 503; another attempt follows']);
    const slow = await clientWith(() => undefined, { http: { timeout: 30 } });
    expect(await errorOf(slow.axios.post('/a', {}))).toMatchObject({ kind: 'timeout' });
  });

  it('hints at its own variables, and shows nothing of its app token', async () => {
    const { axios } = await clientWith(
      (_, response) => response.writeHead(401).end(JSON.stringify({ message: `bad ${APP_TOKEN}` })),
      {},
    );
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({
      message: expect.stringMatching(/^\[not shown: /),
      hint: expect.stringMatching(/SERVICE_KSA_APP_TOKEN/),
    });
  });
});
