import { describe, expect, it } from '@jest/globals';
import globalAxios, { CanceledError } from 'axios';
import { EventEmitter, getEventListeners, once } from 'node:events';
import { Agent } from 'node:http';
import { HttpService } from '@nestjs/axios';
import { firstValueFrom } from 'rxjs';
import { ServiceConnectionError } from '../../../lib/errors/index.js';
import { CallsInFlight } from '../../../lib/http/calls-in-flight.js';
import { type RetryBudget } from '../../../lib/http/retry-policy.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { errorOf, setUp } from './setup.js';

describe('a call that ends early', () => {
  it("rejects with the caller's own reason when it aborts", async () => {
    const reason = new Error('mine');
    const controller = new AbortController();
    const { axios } = await setUp({ listener: () => controller.abort(reason) });
    await expect(axios.get('/a', { signal: controller.signal })).rejects.toBe(reason);
    await expect(axios.get('/a', { signal: controller.signal })).rejects.toBe(reason);
  });

  it("takes axios's own cancel tokens, and shows nothing of axios then", async () => {
    const { axios } = await setUp({ listener: () => undefined });
    const source = globalAxios.CancelToken.source();
    setImmediate(() => source.cancel('enough'));
    const error = await errorOf(axios.get('/a', { cancelToken: source.token }));
    expect(error).not.toHaveProperty('config');
    expect(error).toMatchObject({ kind: 'closed' });
    expect(new CanceledError('x').message).toBe('x');
  });

  it('takes a signal beside a cancel token, also one that is aborted already', async () => {
    const reason = new Error('mine');
    const controller = new AbortController();
    const { axios, arrived } = await setUp({ listener: () => controller.abort(reason) });
    const config = { signal: controller.signal, cancelToken: globalAxios.CancelToken.source().token };
    await expect(axios.get('/a', config)).rejects.toBe(reason);
    await expect(axios.get('/a', config)).rejects.toBe(reason);
    expect(arrived).toHaveLength(1);
  });

  it('leaves the stack of a reason that many calls share as it is, wherever they are made', async () => {
    const agent = new Agent({ maxSockets: 5 });
    const arrivals = new EventEmitter();
    const arrival = once(arrivals, 'arrival');
    const { axios } = await setUp({ agent, listener: () => arrivals.emit('arrival') });
    const httpService = new HttpService(axios);
    const http = new ServiceHttpService(httpService);
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

  it("adds the caller's frames to an error of a single call, and shows it to a host's interceptors", async () => {
    const { axios } = await setUp({ listener: (_, response) => response.writeHead(404).end() });
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
    const reason = new Error('mine');
    expect(await errorOf(axios.get('/a', { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(seen).toEqual([error, { reason }]);
  });

  it.each([
    ['POST', true],
    ['GET', false],
  ])(
    'says of a cancelled %s on the wire whether it may have been done: %s',
    async (method, outcomeUnknown) => {
      const source = globalAxios.CancelToken.source();
      const { axios } = await setUp({ listener: () => source.cancel() });
      const error = await errorOf(axios.request({ url: '/a', method, cancelToken: source.token }));
      expect(error).toMatchObject({ kind: 'closed', outcomeUnknown });
    },
  );

  it('says of a POST that was cancelled before anything was written that nothing was done', async () => {
    const waits = globalAxios.CancelToken.source();
    const cold = await setUp({
      cold: ({ signal }) =>
        new Promise((_, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason as Error));
          waits.cancel();
        }),
    });
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

  it("leaves no listener on a host's cancel token or signal", async () => {
    const { axios } = await setUp({});
    const { token } = globalAxios.CancelToken.source();
    const { signal } = new AbortController();
    for (const given of [{ cancelToken: token }, { signal }, { cancelToken: token, signal }]) {
      await axios.get('/a', given);
    }
    expect((token as unknown as { _listeners?: unknown[] })._listeners ?? []).toHaveLength(0);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it.each([
    ['a cancel token', { cancelToken: { subscribe: 5 } }],
    [
      'a cancel token that throws',
      {
        cancelToken: {
          subscribe: () => {
            throw new Error('not ours');
          },
        },
      },
    ],
  ])('does not count a call as in flight whose %s is none', async (_, config) => {
    const { axios, inFlight } = await setUp();
    await errorOf(axios.get('/a', config as never));
    await inFlight.drain();
    expect(inFlight.close()).toBe(0);
  });

  it("refuses what has only a part of an AbortSignal: Node's own functions need all of it", async () => {
    const { axios, arrived } = await setUp();
    class Foreign extends EventTarget {
      readonly aborted = false;
    }
    for (const signal of [new Foreign(), { aborted: true, addEventListener: () => undefined }]) {
      expect(await errorOf(axios.get('/a', { signal: signal }))).toMatchObject({
        faults: [{ property: 'signal' }],
      });
    }
    expect(arrived).toHaveLength(0);
  });

  it('gives each refused caller an error of its own', () => {
    const calls = new CallsInFlight();
    calls.close();
    const errors = [0, 1].map(() => {
      try {
        return calls.admit();
      } catch (error) {
        return error;
      }
    });
    expect(errors[0]).not.toBe(errors[1]);
    expect(errors[0]).toEqual(errors[1]);
  });

  it('takes no new calls once it was closed, also where nothing waited for those in flight', async () => {
    const calls = new CallsInFlight();
    void calls.run(() => new Promise(() => undefined));
    expect([calls.close(), calls.close()]).toEqual([1, 0]);
    expect(() => calls.admit()).toThrow(ServiceConnectionError);
    await expect(calls.run(async () => 'late')).rejects.toBeInstanceOf(ServiceConnectionError);
  });

  it('waits for calls in flight at shutdown, then ends them, and refuses new ones', async () => {
    const arrivals = new EventEmitter();
    const arrival = once(arrivals, 'arrival') as Promise<[() => void]>;
    const { axios, inFlight } = await setUp({
      listener: (_, response) => arrivals.emit('arrival', () => response.end('{}')),
    });
    const finishing = axios.get<unknown>('/a');
    const [answer] = await arrival;
    const drained = inFlight.drain();
    expect(await errorOf(axios.get('/a'))).toMatchObject({ kind: 'closed' });
    answer();
    await drained;
    expect((await finishing).data).toEqual({});
    expect(inFlight.close()).toBe(0);
  });

  it('ends calls that outlast the shutdown', async () => {
    const arrivals = new EventEmitter();
    const arrival = once(arrivals, 'arrival');
    const { axios, inFlight, agent } = await setUp({ listener: () => arrivals.emit('arrival') });
    const hangs = errorOf(axios.get('/a'));
    await arrival;
    expect(inFlight.close()).toBe(1);
    agent.destroy();
    expect(await hangs).toMatchObject({ kind: 'closed', code: 'connection_closed' });
  });

  it('gives each call that a shutdown ends an error of its own', async () => {
    const waits = new EventEmitter();
    const { axios, inFlight } = await setUp({
      listener: (_, response) => response.writeHead(503, { 'retry-after': '1' }).end(),
      budget: { take: () => (waits.emit('wait'), 5) } as unknown as RetryBudget,
    });
    const errors = [];
    for (const path of ['/a', '/b']) {
      const wait = once(waits, 'wait');
      errors.push(errorOf(axios.get(path)));
      await wait;
    }
    inFlight.close();
    const [one, other] = await Promise.all(errors);
    expect(one).toMatchObject({ kind: 'closed' });
    expect(one).not.toBe(other);
  });

  it('keeps ServiceConnectionError plain', () => {
    const error = new ServiceConnectionError({ kind: 'dns', message: 'm' });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'ServiceConnectionError',
      message: 'm',
      code: 'connection_dns',
      kind: 'dns',
      outcomeUnknown: false,
      retryable: true,
    });
  });

  it('gives Observables too: unsubscribing ends the call, while it waits for a token and on the wire', async () => {
    const answered = await setUp();
    const { httpService } = new ServiceHttpService(new HttpService(answered.axios));
    expect((await firstValueFrom(httpService.post<unknown>('/a', { b: 1 }))).data).toEqual({ ok: true });
    expect(answered.arrived[0]?.body).toBe('{"b":1}');
    for (const cold of [true, false]) {
      const events = new EventEmitter();
      const under = once(events, 'under way');
      const ended = once(events, 'ended');
      const { axios, arrived, inFlight } = await setUp({
        cold: cold
          ? ({ signal }) =>
              new Promise((_, reject) => {
                signal?.addEventListener(
                  'abort',
                  () => (reject(signal.reason as Error), events.emit('ended')),
                );
                events.emit('under way');
              })
          : undefined,
        listener: (request) => {
          request.socket.once('close', () => events.emit('ended'));
          events.emit('under way');
        },
      });
      const told: string[] = [];
      const subscription = new HttpService(axios).get('/a').subscribe({
        next: () => told.push('next'),
        error: () => told.push('error'),
      });
      await under;
      subscription.unsubscribe();
      await ended;
      await inFlight.drain();
      expect([told, arrived.length]).toEqual([[], cold ? 0 : 1]);
    }
  });
});
