import {
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../../../lib/auth/access-token.js';
import { TokenCache, type TokenCacheSettings } from '../../../lib/auth/token-cache.js';
import { type Clock } from '../../../lib/time/time.js';
import { type DescribeOption } from '../../../lib/errors/index.js';
import { SILENT, type Log } from '../../../lib/telemetry/telemetry.js';

interface CacheSetUp extends Partial<TokenCacheSettings> {
  source: TokenSource;
  clock: Clock;
  random?: () => number;
  log?: Log;
  describeOption?: DescribeOption;
}

export function makeCache({
  source,
  clock,
  random = Math.random,
  log = SILENT,
  describeOption = (option) => option,
  ...settings
}: CacheSetUp): TokenCache {
  return new TokenCache(
    source,
    {
      refresh: 'ahead',
      maxEntries: 10,
      customerReserveMs: 0,
      customerRequests: 50,
      timeoutMs: 30_000,
      ...settings,
    },
    { clock, random, log, describeOption },
  );
}

export interface PendingRequest {
  scope: string;
  context: TokenRequestContext;
  /** Resolves the request with a new token, or with a token from a shared store if `ageMs` is given. */
  grant(expiresIn?: number, accessToken?: string, ageMs?: number): TokenGrant;
  fail(error: Error): void;
}

/** A token source whose requests stay pending until the test grants or fails them. */
export class FakeSource implements TokenSource {
  readonly requests: PendingRequest[] = [];
  readonly droppedTokens: string[] = [];

  request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const number = this.requests.length + 1;
    return new Promise((resolve, reject) => {
      context.signal.addEventListener('abort', () => reject(context.signal.reason as Error));
      this.requests.push({
        scope,
        context,
        grant: (expiresIn = 0, accessToken = `token-${number}`, ageMs) => {
          const grant: TokenGrant = { accessToken, scope, expiresIn, ageMs };
          resolve(grant);
          return grant;
        },
        fail: reject,
      });
    });
  }

  drop(_scope: string, accessToken: string): void {
    this.droppedTokens.push(accessToken);
  }

  get last(): PendingRequest {
    return this.requests[this.requests.length - 1];
  }
}
