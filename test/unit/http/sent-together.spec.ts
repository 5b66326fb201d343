import { describe, expect, it, jest } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent } from 'node:http';
import { type ExchangeRequest } from '../../../lib/exchange/exchange.types.js';
import { type GivenAnswer } from '../../../lib/testing/doubles/exchange-double.js';
import { nextTurn } from '../../../lib/time/immediate.js';
import { errorOf, setUp } from './setup.js';

const caller = new AsyncLocalStorage<string>();

/** A client whose exchanges end when the test says so. */
async function held(parts: { identity?: object } = {}) {
  const begun: { request: ExchangeRequest; caller?: string; end: () => void }[] = [];
  const answer = (request: ExchangeRequest) =>
    new Promise<GivenAnswer>((resolve) => {
      const end = (): void => resolve({ data: {} });
      begun.push({ request, caller: caller.getStore(), end });
    });
  const made = await setUp({ ...parts, answer, retries: 0 } as never);
  const paths = (): string[] => begun.map(({ request }) => request.url.pathname);
  /** Resolves when the call's exchange may have begun, in the turn in which the call was made. */
  const thisTurn = async (): Promise<void> => {
    for (let step = 0; step < 50; step += 1) await Promise.resolve();
  };
  return { ...made, begun, paths, thisTurn, endAll: () => begun.forEach(({ end }) => end()) };
}

describe('A call beside others', () => {
  it('begins its exchange with the next turn of the event loop, together with those of this one; alone, at once', async () => {
    const { axios, paths, thisTurn, endAll } = await held();
    const calls = ['/a', '/b', '/c'].map((path) => axios.get(path));
    await thisTurn();
    expect(paths()).toEqual(['/a']);
    await nextTurn();
    expect(paths()).toEqual(['/a', '/b', '/c']);
    endAll();
    await Promise.all(calls);
    const alone = axios.get('/d');
    await thisTurn();
    expect(paths()).toEqual(['/a', '/b', '/c', '/d']);
    endAll();
    await alone;
  });

  it.each([
    ['aborted by its caller', ({ abort }: Ending) => abort()],
    ['closed with the client', ({ close }: Ending) => close()],
  ])('opens nothing where it is %s in that turn', async (_, end) => {
    const { axios, paths, thisTurn, endAll, inFlight } = await held();
    const controller = new AbortController();
    const first = axios.get('/a').catch(() => undefined);
    const second = errorOf(axios.get('/b', { signal: controller.signal }));
    await thisTurn();
    end({ abort: () => controller.abort(), close: () => inFlight.close() });
    await nextTurn();
    await second;
    expect(paths()).toEqual(['/a']);
    endAll();
    await first;
  });

  it('opens nothing where its time is over after that turn', async () => {
    const { axios, paths, thisTurn, endAll } = await held();
    const first = axios.get('/a');
    const second = errorOf(axios.get('/b', { timeout: 1_000 }));
    await thisTurn();
    const now = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(now + 1_500);
    await nextTurn();
    const error = await second;
    clock.mockRestore();
    expect(error).toMatchObject({ kind: 'timeout', outcomeUnknown: false });
    expect(paths()).toEqual(['/a']);
    endAll();
    await first;
  });

  it('has the async context of its caller, and the connections that are in use by then', async () => {
    const before = new Agent();
    const identity = { reloadAfterRefusal: async () => false };
    const { axios, agent, begun, thisTurn, endAll } = await held({ identity });
    let inUse: Agent = before;
    Object.assign(identity, { agentFor: () => inUse });
    const calls = ['a', 'b'].map((name) => caller.run(name, () => axios.get(`/${name}`)));
    await thisTurn();
    inUse = agent;
    await nextTurn();
    expect(begun.map((each) => [each.caller, each.request.agent === agent])).toEqual([
      ['a', false],
      ['b', true],
    ]);
    endAll();
    await Promise.all(calls);
  });

  it('is not held by fake timers', async () => {
    const { axios, paths, thisTurn, endAll } = await held();
    jest.useFakeTimers();
    try {
      const calls = ['/a', '/b'].map((path) => axios.get(path));
      await thisTurn();
      await nextTurn();
      expect(paths()).toEqual(['/a', '/b']);
      endAll();
      await Promise.all(calls);
    } finally {
      jest.useRealTimers();
    }
  });
});

interface Ending {
  abort: () => void;
  close: () => void;
}
