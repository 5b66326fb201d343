import { describe, expect, it } from '@jest/globals';
import { type TokenSource } from '../../../../lib/auth/access-token.js';
import { settle } from '../../../helpers/fake-clock.js';
import { FakeSource } from '../fakes.js';
import { setUp } from './set-up.js';

describe('a look where the burst of forced refreshes is spent', () => {
  const spent = async (look?: TokenSource['look']) => {
    const source = Object.assign(new FakeSource(), look && { look });
    const { cache, clock } = setUp({ source });
    let refused = '';
    const renewed = async () => {
      const waiting = cache.renew('api', refused);
      await settle();
      source.last.grant(600);
      refused = (await waiting)?.token.accessToken ?? '';
    };
    const first = cache.get('api');
    await settle();
    refused = source.last.grant(600).accessToken;
    await first;
    for (let time = 0; time < 3; time += 1) await renewed();
    await clock.advance(1_000);
    return { cache, clock, source, refused };
  };
  const shared = { accessToken: 'shared', scope: 'api', expiresIn: 600, ageMs: 10 };

  it('finds the token of another process, once for all, and keeps it', async () => {
    let looks = 0;
    const { cache, source, refused } = await spent(async (_scope, { accepts }) => {
      looks += 1;
      await settle();
      return accepts(shared) ? shared : undefined;
    });
    const found = await Promise.all(Array.from({ length: 60 }, () => cache.renew('api', refused)));
    expect(found.every((each) => each?.token.accessToken === 'shared' && each.isFromStore)).toBe(true);
    expect([looks, source.requests.length, source.droppedTokens.length]).toEqual([1, 4, 3]);
    expect(cache.use('api')?.accessToken).toBe('shared');
  });

  it('without one, or without a store, the token stays, and the caller gets its 401', async () => {
    let looks = 0;
    for (const look of [undefined, async () => void (looks += 1)]) {
      const { cache, refused } = await spent(look);
      expect(await cache.renew('api', refused)).toBeUndefined();
      expect(await cache.renew('api', refused)).toBeUndefined();
      expect(cache.use('api')?.accessToken).toBe(refused);
    }
    // One that ended at once is not the answer for ever.
    expect(looks).toBe(2);
  });

  it('another client certificate outdates it: it is done once more', async () => {
    const looks: ((token: object) => void)[] = [];
    const { cache, refused } = await spent(() => new Promise((resolve) => looks.push(resolve as never)));
    const waiting = cache.renew('api', refused);
    await settle();
    cache.invalidateAll();
    looks[0]({ ...shared, accessToken: 'of-the-old-certificate' });
    await settle();
    looks[1](shared);
    expect((await waiting)?.token.accessToken).toBe('shared');
    expect(cache.use('api')?.accessToken).toBe('shared');
  });

  it('is left by a caller that aborts, and ended by the end', async () => {
    const { cache, refused } = await spent(() => new Promise(() => undefined));
    const abort = new AbortController();
    const waiting = cache.renew('api', refused, { signal: abort.signal });
    await settle();
    abort.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    const late = cache.renew('api', refused).catch((error: { code?: string }) => error.code);
    await settle();
    cache.close();
    expect(await late).toBe('connection_closed');
  });
});
