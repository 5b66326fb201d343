import { type AccessToken } from '../../../../lib/auth/access-token.js';
import {
  ServiceConnectionError,
  ServiceTokenError,
  type TokenErrorCode,
} from '../../../../lib/errors/index.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { FakeSource, makeCache } from '../fakes.js';

export const reset = (): Error => new ServiceConnectionError({ kind: 'reset', message: 'reset' });
export const refusal = (code: TokenErrorCode, status: number, retryAfter?: number): Error =>
  new ServiceTokenError({ code, status, retryAfter, message: code });

export function setUp(options: Partial<Parameters<typeof makeCache>[0]> = {}) {
  const clock = new FakeClock();
  const source = new FakeSource();
  const cache = makeCache({
    source,
    clock,
    random: () => 0,
    maxEntries: 10_000,
    customerReserveMs: 600_000,
    ...options,
  });
  /** A cache that holds `token-1`, 60 s from now: usable for 54 s, due after 40.5 s. */
  const filled = async (expiresIn = 60): Promise<AccessToken> => {
    const waiting = cache.get('api');
    await settle();
    source.last.grant(expiresIn);
    return waiting;
  };
  return { clock, source, cache, filled };
}

/** The token, or the code of the error, of each. */
export async function outcomes(promises: Promise<AccessToken>[]): Promise<string[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((outcome) =>
    outcome.status === 'fulfilled'
      ? outcome.value.accessToken
      : String((outcome.reason as { code?: string }).code ?? outcome.reason),
  );
}
