import { describe, expect, it } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import globalAxios from 'axios';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, getEventListeners, once } from 'node:events';
import { Agent, type RequestListener } from 'node:http';
import { firstValueFrom } from 'rxjs';
import { type WaitOptions } from '../../../lib/auth/access-token.js';
import { ServiceLifecycle, type ServiceParts } from '../../../lib/engine/lifecycle.js';
import { ServiceConnectionError } from '../../../lib/errors/index.js';
import { CallsInFlight } from '../../../lib/auth/calls-in-flight.js';
import { type RetryBudget } from '../../../lib/http/repeatability.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { nextTurn } from '../../../lib/time/time.js';
import { FakeClock } from '../../helpers/fake-clock.js';
import { until } from '../../helpers/until.js';
import { errorOf, setUp } from '../http/setup.js';

const hang = (): Promise<never> => new Promise(() => undefined);

describe('Start and shutdown of a client', () => {
  const context = new AsyncLocalStorage<string>();

  function setUpClient(list: () => Promise<unknown> = async () => []) {
    const events: string[] = [];
    const note = (event: string): void => void events.push(event);
    const clock = new FakeClock();
    const calls = new CallsInFlight();
    const parts = {
      options: {
        startupCheck: 'fail',
        describeOption: (option: string) => option,
        locate: (option: string) => ({ option }),
        http: { shutdownTimeout: 5_000, timeout: 30_000 },
        addresses: { baseUrl: 'https://api.example', baseOption: 'urls.baseUrl' },
      },
      io: { clock, log: { log: () => undefined, warn: note } },
      calls,
      tokens: { close: () => note('tokens close') },
      identity: {
        loaded: {},
        startWatching: () => note(['startWatching', context.getStore()].filter(Boolean).join(' in ')),
        status: { daysLeft: 5 },
        close: async (graceMs?: number) => note(`agents close ${graceMs}`),
      },
      banks: { list: () => (note('check'), list()) },
    };
    return { calls, clock, events, service: new ServiceLifecycle(parts as unknown as ServiceParts) };
  }

  it('watches the certificate files after the start-up check has passed', async () => {
    const { service, events } = setUpClient();
    await service.start();
    expect(events).toEqual(['check', 'startWatching']);
  });

  it('watches the certificate files from the first call on if that comes before the start, but not in the async context of the call', async () => {
    const { events, calls } = setUpClient();
    for (const call of ['first', 'second']) await context.run(call, () => calls.run(async () => undefined));
    expect(events).toEqual([expect.stringMatching(/^The first call came before Nest/), 'startWatching']);
  });

  it('expects calls before the start once Nest initialises the application', async () => {
    const { service, events, calls } = setUpClient();
    service.expectStart();
    await calls.run(async () => undefined);
    expect(events).toEqual(['startWatching']);
  });

  it('watches nothing if it is closed during the start-up check, and starts nothing afterwards', async () => {
    let answer: (banks: unknown) => void = () => undefined;
    const { service, events } = setUpClient(() => new Promise((resolve) => (answer = resolve)));
    const started = service.start();
    await service.close();
    answer([]);
    await started;
    await service.start();
    expect(events).toEqual(['check', 'tokens close', 'agents close 5000']);
  });

  it('closes everything if the start-up check fails', async () => {
    const refused = new ServiceConnectionError({ kind: 'refused', message: 'not reached' });
    const { service, events, calls, clock } = setUpClient(() => Promise.reject(refused));
    await expect(service.start()).rejects.toThrow('not reached');
    expect(events).toEqual(['check', 'tokens close', 'agents close 0']);
    expect(() => calls.throwIfDraining()).toThrow('The client is closed');
    expect(clock.timers).toBe(0);
  });

  it("waits for calls in flight, and gives the host application's own connections the rest of the grace period", async () => {
    const { service, events, calls, clock } = setUpClient();
    await service.start();
    events.length = 0;
    let answer = (): void => undefined;
    const call = calls.run(() => new Promise<void>((resolve) => (answer = resolve)));
    service.beginShutdown();
    expect(() => calls.throwIfDraining()).not.toThrow();
    await clock.advance(1_000);
    const ended = service.close();
    expect(() => calls.throwIfDraining()).toThrow('The client is closed');
    await clock.advance(1_000);
    expect(events).toEqual([]);
    answer();
    await Promise.all([call, ended, service.close()]);
    expect(events).toEqual(['tokens close', 'agents close 3000']);
    expect(clock.timers).toBe(0);
  });

  it.each([
    [0, undefined],
    [1, '1 call was'],
    [2, '2 calls were'],
  ])(
    'aborts calls that are still in flight when the grace period is over: %d calls',
    async (count, which) => {
      const { service, events, calls, clock } = setUpClient();
      await service.start();
      events.length = 0;
      for (let call = 0; call < count; call += 1) void calls.run(hang);
      service.beginShutdown();
      await clock.advance(4_999);
      expect(events).toEqual([]);
      await clock.advance(1);
      const line = `Shutdown: ${which} still running after http.shutdownTimeout (5000 ms), and aborted.`;
      expect(events).toEqual(['tokens close', 'agents close undefined', ...(which ? [line] : [])]);
      await service.close();
      expect(events.at(-1)).toBe('agents close 0');
    },
  );

  it('does not wait for a call that never ends after the grace period is over', async () => {
    const { service, events, calls, clock } = setUpClient();
    void calls.run(hang);
    const ended = service.close();
    await clock.advance(5_000);
    await ended;
    expect(events.at(-1)).toBe('agents close 0');
  });
});

describe('Calls in flight', () => {
  it('does not count as idle while a call continues with the result of another one that has just ended', async () => {
    const calls = new CallsInFlight();
    const order: string[] = [];
    let bring = (): void => undefined;
    const first = calls.run(() => new Promise<void>((resolve) => (bring = resolve)));
    const idle = calls.drain().then(() => order.push('idle'));
    const second = first.then(() => calls.run(async () => (await nextTurn(), order.push('second'))));
    bring();
    await Promise.all([idle, second]);
    expect(order).toEqual(['second', 'idle']);
  });

  it('reports a call whose connection the shutdown closes as closed, not as reset', async () => {
    const arrivals = new EventEmitter();
    const arrival = once(arrivals, 'arrival');
    const { axios, inFlight, agent } = await setUp({ listener: () => arrivals.emit('arrival') });
    const hangs = errorOf(axios.get('/a'));
    await arrival;
    expect(inFlight.close()).toBe(1);
    agent.destroy();
    expect(await hangs).toMatchObject({ kind: 'closed', code: 'connection_closed' });
  });

  it('gives each call that the shutdown ends an error of its own, and each later call too', async () => {
    const waits = new EventEmitter();
    const { axios, inFlight } = await setUp({
      timeoutMs: 600_000,
      listener: (_, response) => response.writeHead(503, { 'retry-after': '300' }).end(),
      budget: { take: () => (waits.emit('wait'), 5) } as unknown as RetryBudget,
    });
    const cut: Promise<unknown>[] = [];
    for (const path of ['/a', '/b']) {
      const wait = once(waits, 'wait');
      cut.push(errorOf(axios.get(path)));
      await wait;
    }
    expect([inFlight.close(), inFlight.close()]).toEqual([2, 0]);
    const late = [0, 1].map(() => errorOf(inFlight.run(async () => 'late')));
    const errors = await Promise.all([...cut, ...late]);
    for (const error of errors) expect(error).toMatchObject({ kind: 'closed' });
    expect(new Set(errors).size).toBe(4);
    expect(() => inFlight.throwIfDraining()).toThrow(ServiceConnectionError);
  });

  it.each([
    ['is none', 5],
    [
      'throws',
      () => {
        throw new Error('not ours');
      },
    ],
  ])('counts no call as in flight if its cancel token %s', async (_, subscribe) => {
    const { axios, inFlight } = await setUp();
    await errorOf(axios.get('/a', { cancelToken: { subscribe } } as never));
    await inFlight.drain();
    expect(inFlight.close()).toBe(0);
  });
});

describe('A call that its caller aborts', () => {
  /** A call that waits for its token until the client is closed. */
  const waiting =
    (tell: () => void, ended: () => void = () => undefined) =>
    ({ signal }: WaitOptions): Promise<void> =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => (reject(signal.reason as Error), ended()));
        tell();
      });

  it.each([
    ['a signal', {}],
    ['a signal beside a cancel token', { cancelToken: globalAxios.CancelToken.source().token }],
  ])('rejects with the reason of %s, even if that is aborted already', async (_, more) => {
    const reason = new Error('mine');
    const controller = new AbortController();
    const { axios, arrived } = await setUp({ listener: () => controller.abort(reason) });
    const config = { ...more, signal: controller.signal };
    await expect(axios.get('/a', config)).rejects.toBe(reason);
    await expect(axios.get('/a', config)).rejects.toBe(reason);
    expect(arrived).toHaveLength(1);
  });

  it.each([
    ['POST', true],
    ['GET', false],
  ])(
    "rejects a %s that axios's cancel token aborts with an error without axios's fields, and outcomeUnknown %s",
    async (method, outcomeUnknown) => {
      const source = globalAxios.CancelToken.source();
      const { axios } = await setUp({ listener: () => source.cancel() });
      const error = await errorOf(axios.request({ url: '/a', method, cancelToken: source.token }));
      expect(error).toMatchObject({ kind: 'closed', outcomeUnknown });
      expect(error).not.toHaveProperty('config');
    },
  );

  it('says that nothing was done if a POST is cancelled before anything was written', async () => {
    const waits = globalAxios.CancelToken.source();
    const cold = await setUp({ cold: waiting(() => waits.cancel()) });
    const queued = globalAxios.CancelToken.source();
    const agent = new Agent({ maxSockets: 1 });
    const { axios } = await setUp({ agent, listener: () => queued.cancel() });
    const holding = new AbortController();
    const first = errorOf(axios.get('/a', { signal: holding.signal }));
    for (const call of [
      cold.axios.post('/a', {}, { cancelToken: waits.token }),
      axios.post('/b', {}, { cancelToken: queued.token }),
    ]) {
      expect(await errorOf(call)).toMatchObject({ kind: 'closed', outcomeUnknown: false });
    }
    holding.abort();
    await first;
    expect(cold.arrived).toHaveLength(0);
  });

  it('does not change the stack of a reason that many calls share', async () => {
    const agent = new Agent({ maxSockets: 5 });
    const arrivals = new EventEmitter();
    const arrival = once(arrivals, 'arrival');
    const { axios } = await setUp({ agent, listener: () => arrivals.emit('arrival') });
    const httpService = new HttpService(axios);
    const http = new ServiceHttpService(axios);
    const controller = new AbortController();
    const { signal } = controller;
    const places = [
      () => http.get('/a', { signal }),
      () => axios.get('/a', { signal }),
      async () => await axios({ url: '/a', signal }),
      async () => await axios('/a', { signal }),
      () => firstValueFrom(httpService.get('/a', { signal })),
    ];
    const calls = Array.from({ length: 50 }, (_, call) => errorOf(places[call % places.length]()));
    await arrival;
    const reason = new Error('mine');
    const { stack } = reason;
    controller.abort(reason);
    expect((await Promise.all(calls)).every((error) => error === reason)).toBe(true);
    expect(reason.stack === stack).toBe(true);
  });

  it("gives the host application's interceptors the error with the caller's frames, and the reason of an abort wrapped", async () => {
    const controller = new AbortController();
    const reason = new Error('mine');
    const listener: RequestListener = ({ url }, response) =>
      url === '/a' ? response.writeHead(404).end() : controller.abort(reason);
    const { axios } = await setUp({ listener });
    const seen: unknown[] = [];
    axios.interceptors.response.use(undefined, (error: Error) => {
      seen.push(error);
      return Promise.reject(error);
    });
    async function theCaller(): Promise<unknown> {
      return await axios.get('/a');
    }
    const error = await errorOf(theCaller());
    expect((error as Error).stack).toContain('theCaller');
    expect(await errorOf(axios.get('/hanging', { signal: controller.signal }))).toBe(reason);
    await until(() => seen.length === 2);
    expect(seen).toEqual([error, { reason }]);
  });

  it("leaves no listener on the host application's cancel token or signal", async () => {
    const { axios } = await setUp({});
    const { token } = globalAxios.CancelToken.source();
    const { signal } = new AbortController();
    for (const given of [{ cancelToken: token }, { signal }, { cancelToken: token, signal }]) {
      await axios.get('/a', given);
    }
    expect((token as unknown as { _listeners?: unknown[] })._listeners ?? []).toHaveLength(0);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it("refuses an object that has only a part of an AbortSignal, because Node's functions need all of it", async () => {
    const { axios, arrived } = await setUp();
    class Foreign extends EventTarget {
      readonly aborted = false;
    }
    for (const signal of [new Foreign(), { aborted: true, addEventListener: () => undefined }]) {
      expect(await errorOf(axios.get('/a', { signal }))).toMatchObject({ faults: [{ property: 'signal' }] });
    }
    expect(arrived).toHaveLength(0);
  });

  it.each(['waits for a token', 'is on the wire'])(
    'tells the subscriber nothing more after unsubscribing from its Observable while it %s',
    async (where) => {
      const events = new EventEmitter();
      const under = once(events, 'under way');
      const ended = once(events, 'ended');
      const isCold = where === 'waits for a token';
      const { axios, arrived, inFlight } = await setUp({
        cold: isCold
          ? waiting(
              () => events.emit('under way'),
              () => events.emit('ended'),
            )
          : undefined,
        listener: (request) => {
          request.socket.once('close', () => events.emit('ended'));
          events.emit('under way');
        },
      });
      const notifications: string[] = [];
      const subscription = new HttpService(axios).get('/a').subscribe({
        next: () => notifications.push('next'),
        error: () => notifications.push('error'),
      });
      await under;
      subscription.unsubscribe();
      await ended;
      await inFlight.drain();
      expect([notifications, arrived.length]).toEqual([[], isCold ? 0 : 1]);
    },
  );
});
