import { createHash } from 'node:crypto';
import { type Clock } from '../../config/clock.js';
import { type TokenStore } from '../../config/token-cache.options.js';
import { sleep, within } from '../../exchange/timing.js';
import { type TokenGrant, type TokenRequestContext, type TokenSource } from '../access-token.js';
import { readEntry, writeEntry } from './stored-token.js';

/** Milliseconds for one call of the store. */
const STORE_TIMEOUT_MS = 250;
/** Milliseconds: others wait no longer than that for a process that died with the lock. */
const LOCK_TTL_MS = 5_000;
const POLL_MS = 100;

const UNAVAILABLE = Symbol('unavailable');

export interface SharedStoreOptions {
  /** Asked where the store has no token. */
  source: TokenSource;
  store: TokenStore;
  tokenUrl: string;
  clientId: string;
  /** Where tokens are bound to a client certificate (RFC 8705): its thumbprint. */
  certificateThumbprint?: () => string | undefined;
  clock: Clock;
}

/**
 * Tokens shared between processes, before a token source: one process asks the endpoint, the others find its token in
 * the store. A store that fails, does not answer, is full or has wrong entries delays a token, but never prevents one.
 */
export class SharedStore implements TokenSource {
  readonly #options: SharedStoreOptions;

  constructor(options: SharedStoreOptions) {
    this.#options = options;
  }

  async request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock, store } = this.#options;
    const key = this.#key(scope);
    const begun = clock.monotonic();
    const waitUntil = begun + Math.min(LOCK_TTL_MS, context.timeoutMs / 2);
    let found = await this.#find(key, scope, context);
    let lock: Lock = store.lock ? 'taken' : 'none';
    let hasWaited = false;
    while (found === undefined && lock === 'taken') {
      lock = await this.#lock(key);
      // The process that had the lock until now may have just written.
      found = await this.#find(key, scope, context);
      if (found !== undefined || lock !== 'taken') break;
      hasWaited = true;
      if (clock.monotonic() >= waitUntil) lock = 'none';
      else await sleep(clock, POLL_MS, context.signal);
    }
    const release = typeof lock === 'function' ? lock : () => undefined;
    if (found !== undefined && found !== UNAVAILABLE) {
      release();
      return found;
    }
    const left = { ...context, timeoutMs: context.timeoutMs - (clock.monotonic() - begun) };
    return hasWaited
      ? this.#requestOrFind(key, scope, release, left)
      : this.#requestAndShare(key, scope, release, left);
  }

  /** After a wait in vain: the process that had the lock may still be the first to get a token. */
  async #requestOrFind(
    key: string,
    scope: string,
    release: () => void,
    context: TokenRequestContext,
  ): Promise<TokenGrant> {
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    const found = new Promise<TokenGrant>((resolve) => {
      void this.#watch(key, scope, { ...context, signal }).then((grant) => grant && resolve(grant));
    });
    try {
      return await Promise.race([this.#requestAndShare(key, scope, release, { ...context, signal }), found]);
    } finally {
      over.abort(new Error('There is a token'));
    }
  }

  /** The token as soon as it is in the store; undefined where the signal comes first. */
  async #watch(key: string, scope: string, context: TokenRequestContext): Promise<TokenGrant | undefined> {
    try {
      for (;;) {
        await sleep(this.#options.clock, POLL_MS, context.signal);
        const found = await this.#find(key, scope, context);
        if (found !== undefined && found !== UNAVAILABLE) return found;
      }
    } catch {
      return undefined;
    }
  }

  /** Takes the token out of the store too, if it is still the one there. */
  dropped(scope: string, accessToken: string): void {
    const { store, source, clock } = this.#options;
    const key = this.#key(scope);
    source.dropped?.(scope, accessToken);
    void (async () => {
      const value = await this.#guard(() => store.get(key));
      if (typeof value !== 'string' || readEntry(value, key, scope, clock.now())?.accessToken !== accessToken)
        return;
      await this.#guard(() => store.delete(key, value));
    })();
  }

  async #requestAndShare(
    key: string,
    scope: string,
    release: () => void,
    context: TokenRequestContext,
  ): Promise<TokenGrant> {
    const { source, store, clock } = this.#options;
    const begun = clock.monotonic();
    try {
      const grant = await source.request(scope, context);
      const issuedAt = clock.now() - (clock.monotonic() - begun);
      const entry = context.signal.aborted ? undefined : writeEntry(grant, key, issuedAt);
      // Callers do not wait for this. The lock is released when others can find the token.
      if (entry) void this.#guard(() => store.set(key, entry.value, entry.ttlMs)).then(release);
      else release();
      return grant;
    } catch (error) {
      release();
      throw error;
    }
  }

  async #find(
    key: string,
    scope: string,
    { accepts }: TokenRequestContext,
  ): Promise<TokenGrant | undefined | typeof UNAVAILABLE> {
    const value = await this.#guard(() => this.#options.store.get(key));
    if (value === UNAVAILABLE) return UNAVAILABLE;
    const grant = readEntry(value, key, scope, this.#options.clock.now());
    return grant && accepts(grant) ? grant : undefined;
  }

  async #lock(key: string): Promise<Lock> {
    let late = false;
    const release = await this.#guard(async () => {
      const got = await this.#options.store.lock?.(`${key}:lock`, LOCK_TTL_MS);
      if (late) void this.#guard(async () => got?.());
      return got;
    });
    late = true;
    if (release === UNAVAILABLE) return 'none';
    return typeof release === 'function' ? () => void this.#guard(release) : 'taken';
  }

  /** Runs one call of the store. Never rejects. */
  async #guard<T>(call: () => Promise<T>): Promise<T | typeof UNAVAILABLE> {
    const { clock } = this.#options;
    const expired = (): Error => new Error('The token store took too long');
    return within<T>({ clock, timeoutMs: STORE_TIMEOUT_MS, expired }, call).catch(() => UNAVAILABLE);
  }

  /** Hashed: it shows neither client nor customer, and always has the same length. */
  #key(scope: string): string {
    const { tokenUrl, clientId, certificateThumbprint } = this.#options;
    const parts = JSON.stringify([tokenUrl, clientId, scope, certificateThumbprint?.() ?? null]);
    return `token:${createHash('sha256').update(parts).digest('base64url')}`;
  }
}

/** A function releases it; `none`: go on without one. */
type Lock = (() => void) | 'taken' | 'none';
