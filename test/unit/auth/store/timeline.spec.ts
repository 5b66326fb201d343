import { describe, expect, it } from '@jest/globals';
import { settle } from '../../../helpers/fake-clock.js';
import { setUp } from './set-up.js';

/** What stands above SharedStore. */
describe('three replicas that begin together', () => {
  async function begin() {
    const { clock, store, process } = setUp();
    const begun = clock.monotonic();
    const asked: string[] = [];
    const replicas = ['A', 'B', 'C'].map((name) => {
      const replica = process();
      const { source } = replica;
      const real = source.request.bind(source);
      source.request = (scope, context) => {
        asked.push(`${name} at ${Math.round((clock.monotonic() - begun) / 100) / 10} s`);
        return real(scope, context);
      };
      const controller = new AbortController();
      const outcome = replica
        .request('api', { signal: controller.signal })
        .then(({ accessToken }) => accessToken)
        .catch((error: Error) => error.message);
      return { ...replica, outcome, end: () => controller.abort(new Error('ended')) };
    });
    await settle();
    const end = () => replicas.forEach((replica) => replica.end());
    return { clock, store, asked, end, replicas };
  }

  it('A tells at 4 s: B and C find it', async () => {
    const { clock, asked, replicas } = await begin();
    await clock.advance(4_000);
    replicas[0].source.last.grant(600, 'of-A');
    await clock.advance(150);
    expect(await Promise.all(replicas.map(({ outcome }) => outcome))).toEqual(['of-A', 'of-A', 'of-A']);
    expect(asked).toEqual(['A at 0 s']);
  });

  it('the endpoint does not answer A: B asks at 5.5 s, C never', async () => {
    const { clock, asked, end } = await begin();
    await clock.advance(10_000);
    expect(asked).toEqual(['A at 0 s', expect.stringMatching(/^[BC] at 5\.5 s$/)]);
    end();
    await clock.advance(1_000);
  });

  it('A dies: B asks 2.5 s after its last sign', async () => {
    const { clock, store, asked, end, replicas } = await begin();
    // Its lock stays, as of a process that is gone.
    const locks = new Map(store.locks);
    replicas[0].end();
    await settle();
    locks.forEach((until, key) => store.locks.set(key, until));
    await clock.advance(4_000);
    expect(asked).toEqual(['A at 0 s', expect.stringMatching(/^[BC] at 2\.[56] s$/)]);
    end();
    await clock.advance(1_000);
  });

  it('the endpoint refuses A: B or C asks within 150 ms', async () => {
    const { clock, asked, end, replicas } = await begin();
    await clock.advance(1_000);
    replicas[0].source.last.fail(new Error('refused'));
    await clock.advance(150);
    expect(asked).toEqual(['A at 0 s', expect.stringMatching(/^[BC] at 1(\.[01])? s$/)]);
    end();
    await clock.advance(1_000);
  });
});
