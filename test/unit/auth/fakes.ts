import { type Clock } from '../../../lib/config/clock.js';
import {
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../../../lib/auth/access-token.js';

/** Lets what waits on promises alone get on; no time passes. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await Promise.resolve();
}

/** Two clocks that move when told to, the wall clock also by itself. */
export class FakeClock implements Clock {
  readonly #timers = new Set<{ at: number; callback: () => void }>();
  #wall = Date.UTC(2030, 0, 1);
  #monotonic = 1_000;

  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  schedule(callback: () => void, delayMs: number): () => void {
    const timer = { at: this.#monotonic + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Somebody sets the wall clock. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (;;) {
      let next: { at: number; callback: () => void } | undefined;
      for (const timer of this.#timers) if (timer.at <= end && (!next || timer.at < next.at)) next = timer;
      if (!next) break;
      this.#timers.delete(next);
      this.#move(next.at);
      next.callback();
      await settle();
    }
    this.#move(end);
  }

  #move(to: number): void {
    this.#wall += Math.max(0, to - this.#monotonic);
    this.#monotonic = Math.max(to, this.#monotonic);
  }
}

export interface PendingRequest {
  scope: string;
  context: TokenRequestContext;
  /** Answers with a token of its own. */
  grant(expiresIn?: number, accessToken?: string): TokenGrant;
  fail(error: Error): void;
}

/** A token source that answers when the test says so. */
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
        grant: (expiresIn, accessToken = `token-${number}`) => {
          const grant: TokenGrant = { accessToken, tokenType: 'bearer', scope, expiresIn };
          resolve(grant);
          return grant;
        },
        fail: reject,
      });
    });
  }

  dropped(_scope: string, accessToken: string): void {
    this.droppedTokens.push(accessToken);
  }

  get last(): PendingRequest {
    return this.requests[this.requests.length - 1];
  }
}

/** A JSON Web Token with these claims; its signature is none. */
export function jwt(claims: unknown): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part(claims)}.c2ln`;
}
