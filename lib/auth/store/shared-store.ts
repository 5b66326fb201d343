import { type Clock } from '../../config/clock.js';
import { type TokenStore } from '../../config/token-cache.options.js';
import { sleep } from '../../exchange/timing.js';
import { type TokenGrant, type TokenRequestContext, type TokenSource } from '../access-token.js';
import { type ClientSecret } from '../endpoint/client-secret.js';
import { GuardedStore, type Lock, UNAVAILABLE } from './guarded-store.js';
import { StoreCiphers } from './store-cipher.js';
import { StoreObserver, type StoreObserverParts } from './store-observer.js';
import { StoredToken } from './stored-token.js';

/** Milliseconds: others wait no longer than that for a process that died with the lock. */
const LOCK_TTL_MS = 3_000;
/** Milliseconds. Longer than a lock, so that the process that gets the next one has time to ask for all the others. */
const LOCK_WAIT_MS = 5_000;
/** Of the time that a request has: how much of it is spent on waiting, also for an endpoint that is slow. */
const LOCK_WAIT_SHARE = 0.5;
const MAX_WAIT_SHARE = 0.9;
const POLL_MS = 100;

export interface SharedStoreOptions extends StoreObserverParts {
  /** Asked where the store has no token. */
  source: TokenSource;
  store: TokenStore;
  tokenUrl: string;
  clientId: string;
  /** Entries are encrypted with keys that come from it. */
  clientSecret: ClientSecret;
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
  readonly #store: GuardedStore;
  readonly #ciphers: StoreCiphers;
  readonly #observer: StoreObserver;
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(options: SharedStoreOptions) {
    this.#options = options;
    this.#observer = new StoreObserver(options);
    this.#store = new GuardedStore(options.store, options.clock, this.#observer);
    this.#ciphers = new StoreCiphers(options.clientSecret);
  }

  open(): void {
    this.#store.open();
  }

  /** When the requests under way have been ended: what they still write is written, and the store closed. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    return this.#track(this.#request(scope, context));
  }

  /** Takes the token out of the store too, if it is still the one there. */
  dropped(scope: string, accessToken: string): void {
    this.#options.source.dropped?.(scope, accessToken);
    const cipher = this.#ciphers.last;
    if (cipher) void this.#track(this.#remove(new StoredToken(cipher, scope, this.#owner), accessToken));
  }

  async #request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock } = this.#options;
    const begun = clock.monotonic();
    const lockWaitEnds = begun + Math.min(LOCK_WAIT_MS, context.timeoutMs * LOCK_WAIT_SHARE);
    const waitEnds = begun + context.timeoutMs * MAX_WAIT_SHARE;
    const entry = new StoredToken(await this.#ciphers.current(), scope, this.#owner);
    let found = await this.#find(entry, context);
    let lock: Lock = this.#store.hasLocks ? 'taken' : 'none';
    let hasWaited = false;
    while (found === undefined && lock === 'taken') {
      lock = await this.#store.lock(entry.lockKey, LOCK_TTL_MS);
      // Whatever is wrong with that lock, or with the endpoint: one more process asks, not all of them.
      if (lock === 'taken' && clock.monotonic() >= lockWaitEnds) {
        lock = await this.#store.lock(entry.secondLockKey, context.timeoutMs);
      }
      // The process that had the lock until now may have just written.
      found = await this.#find(entry, context);
      if (found !== undefined || lock !== 'taken') break;
      if (!hasWaited) this.#observer.waits();
      hasWaited = true;
      if (clock.monotonic() >= waitEnds) lock = 'none';
      else await sleep(clock, POLL_MS, context.signal);
    }
    const release = (): void => {
      if (typeof lock === 'function') void this.#track(lock());
    };
    if (found !== undefined && found !== UNAVAILABLE) {
      release();
      this.#observer.hit();
      return found;
    }
    if (found === undefined) this.#observer.missed();
    const left = { ...context, timeoutMs: context.timeoutMs - (clock.monotonic() - begun) };
    return hasWaited
      ? this.#requestOrFind(entry, scope, release, left)
      : this.#requestAndShare(scope, release, left);
  }

  /** After a wait in vain: the process that had the lock may still be the first to get a token. */
  async #requestOrFind(
    entry: StoredToken,
    scope: string,
    release: () => void,
    context: TokenRequestContext,
  ): Promise<TokenGrant> {
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    const found = new Promise<TokenGrant>((resolve) => {
      void this.#watch(entry, { ...context, signal }).then((grant) => grant && resolve(grant));
    });
    try {
      return await Promise.race([this.#requestAndShare(scope, release, { ...context, signal }), found]);
    } finally {
      over.abort(new Error('There is a token'));
    }
  }

  /** The token as soon as it is in the store; undefined where the signal comes first. */
  async #watch(entry: StoredToken, context: TokenRequestContext): Promise<TokenGrant | undefined> {
    try {
      for (;;) {
        await sleep(this.#options.clock, POLL_MS, context.signal);
        const found = await this.#find(entry, context);
        if (found !== undefined && found !== UNAVAILABLE) return found;
      }
    } catch {
      return undefined;
    }
  }

  async #requestAndShare(
    scope: string,
    release: () => void,
    context: TokenRequestContext,
  ): Promise<TokenGrant> {
    const { source, clock } = this.#options;
    const begun = clock.monotonic();
    try {
      const grant = await source.request(scope, context);
      const issuedAt = clock.now() - (clock.monotonic() - begun);
      // Callers do not wait for this. The lock is released when others can find the token.
      if (context.signal.aborted) release();
      else void this.#track(this.#write(scope, grant, issuedAt)).then(release);
      // A wait for a lock does not make the token older.
      return { ...grant, requestedAt: begun };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** With the secret that the endpoint accepted: it may have changed since the lock was taken. */
  async #write(scope: string, grant: TokenGrant, issuedAt: number): Promise<void> {
    const cipher = this.#ciphers.last;
    const entry = cipher && new StoredToken(cipher, scope, this.#owner);
    const written = entry?.write(grant, issuedAt);
    if (entry && written) await this.#store.set(entry.key, written.value, written.ttlMs);
  }

  async #remove(entry: StoredToken, accessToken: string): Promise<void> {
    const value = await this.#store.get(entry.key);
    if (typeof value !== 'string') return;
    if (entry.read(value, this.#options.clock.now())?.accessToken !== accessToken) return;
    await this.#store.delete(entry.key, value);
  }

  async #find(
    entry: StoredToken,
    { accepts }: TokenRequestContext,
  ): Promise<TokenGrant | undefined | typeof UNAVAILABLE> {
    const { clock } = this.#options;
    const value = await this.#store.get(entry.key);
    if (value === UNAVAILABLE) return UNAVAILABLE;
    const grant = entry.read(value, clock.now());
    // Its age is that of this moment. Counted from before a wait for the lock, it would be renewed too early.
    return grant && accepts(grant) ? { ...grant, requestedAt: clock.monotonic() } : undefined;
  }

  get #owner() {
    const { tokenUrl, clientId, certificateThumbprint } = this.#options;
    return { tokenUrl, clientId, certificateThumbprint: certificateThumbprint?.() };
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const done = (): void => void this.#underWay.delete(work);
    work.then(done, done);
    return work;
  }

  /** Each of them ends in time. */
  async #close(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    await this.#store.close();
  }
}
