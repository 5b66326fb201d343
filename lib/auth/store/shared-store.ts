import { randomUUID } from 'node:crypto';
import { type Secret } from '../../config/secret.js';
import { type TokenStore } from '../../config/token-cache.options.js';
import { ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { elapsedMs, momentOf, watching } from '../../time/clock.js';
import { sleep, untilAborted, within } from '../../time/timers.js';
import {
  type TokenGrant,
  type TokenIo,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type ClientSecret } from '../endpoint/client-secret.js';
import { GuardedStore, type Release } from './guarded-store.js';
import { StoredToken, StoreKeys, type TokenOwner } from './stored-token.js';

// Milliseconds throughout.
/** How long one process asks alone. A lock ends after it, whatever becomes of its holder. */
const LOCK = 4_000;
/** Between two looks. If no caller waits, all processes renew a token at the same time. */
const PAUSE = { awaited: { least: 100, most: 500 }, renewal: { least: 500, most: 1_500 } };
/** A renewal that nobody waits for gives a store that failed so long to come back. */
const PATIENCE = 5_000;
/** For the newest secret, if there is an older one to look with. */
const SECRET = 1_000;
/** How long a failure that the endpoint has answered with is that of all processes. */
const FAILURE = 1_000;
/** What is left of the time of a request for one more look. */
const LAST_LOOK = 300;

/** Whether the endpoint has answered with it. */
function isAnswer(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && error.status !== undefined;
}

/**
 * Shares tokens between processes, in front of a token source: one process asks the endpoint, the others find its token in
 * the store, or for a second the error that the endpoint has answered with. A connection fault is not shared, because it may
 * be of one process alone. A store that fails, does not answer or has wrong entries delays
 * a token, but never prevents one.
 */
export class SharedStore implements TokenSource {
  readonly #source: Pick<TokenSource, 'request'>;
  readonly #store: GuardedStore;
  readonly #owner: () => TokenOwner;
  readonly #clientSecret: ClientSecret;
  readonly #io: TokenIo;
  #keys: StoreKeys | undefined;

  /**
   * @param source asked if the store has no token
   * @param owner called each time, because another client certificate may be in use
   * @param clientSecret the keys that encrypt entries come from it
   */
  constructor(
    source: Pick<TokenSource, 'request'>,
    store: TokenStore,
    owner: () => TokenOwner,
    clientSecret: ClientSecret,
    io: TokenIo,
  ) {
    this.#source = source;
    this.#owner = owner;
    this.#clientSecret = clientSecret;
    this.#io = io;
    this.#store = new GuardedStore(store, io);
  }

  /**
   * Looks, takes the lock, asks; without the lock it looks again. If the endpoint is slow, another process asks every 4 s.
   * A lock that stays taken though nobody has asked for 4 s is passed over.
   */
  async request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock, random } = this.#io;
    const { signal, isAwaited, timeoutMs } = context;
    const begun = clock.monotonic();
    const { last } = this.#clientSecret;
    // Just after a rotation, others have their tokens under the name of the secret before.
    const known = last && (await this.#find(this.#entry(scope, last), context));
    if (known) return known;
    const entry = this.#entry(scope, await this.#secret(signal));
    const own = randomUUID();
    let seen: string | undefined;
    let quietSince = begun;
    for (;;) {
      const found = await this.#find(entry, context);
      if (found) return found;
      const lock = await this.#store.lock(entry.lockKey, LOCK);
      const sign = lock === 'taken' ? await this.#store.get(entry.signKey) : undefined;
      const failure = entry.readFailure(sign, clock.now());
      if (failure) throw failure;
      const now = clock.monotonic();
      const passed = now - begun;
      if (
        typeof lock === 'function' ||
        sign === own ||
        (lock === 'none' && (this.#store.works || isAwaited() || passed >= PATIENCE))
      ) {
        const left = { ...context, timeoutMs: timeoutMs - passed };
        return this.#ask(entry, typeof lock === 'function' ? lock : 'none', left, passed);
      }
      if (sign !== undefined && sign !== seen) [seen, quietSince] = [sign, now];
      // Of several that do so, the last one asks: the others see its sign.
      else if (lock === 'taken' && now - quietSince >= LOCK) await this.#store.set(entry.signKey, own, LOCK);
      const { least, most } = isAwaited() ? PAUSE.awaited : PAUSE.renewal;
      await sleep(clock, least + random() * (most - least), signal);
    }
  }

  /** Takes the token out of the store too, if it is still there. */
  dropped(scope: string, accessToken: string): void {
    void this.#remove(scope, accessToken);
  }

  /** @param lock `none`: there is none to give back */
  async #ask(
    entry: StoredToken,
    lock: Release | 'none',
    context: TokenRequestContext,
    waitedMs: number,
  ): Promise<TokenGrant> {
    const { clock } = this.#io;
    const { signal, closed, isAwaited, timeoutMs } = context;
    let written: Promise<void> | undefined;
    let keptMs = 0;
    // A slow request shows, so that others tell it from a lock that never ends.
    const show = (): void => void this.#store.set(entry.signKey, randomUUID(), LOCK);
    const cancelShow = clock.watch(show, Math.max(0, LOCK / 4 - waitedMs));
    try {
      // The process that had the lock before may have just written.
      const found = lock === 'none' ? undefined : await this.#find(entry, context);
      signal.throwIfAborted();
      if (found) return found;
      const requestedAt = momentOf(clock);
      const grant = await this.#source.request(entry.scope, {
        ...context,
        timeoutMs: Math.max(timeoutMs - LAST_LOOK, timeoutMs / 2),
      });
      written = this.#write(entry.scope, grant, elapsedMs(clock, requestedAt));
      // A wait for the lock does not make the token older.
      return { ...grant, requestedAt };
    } catch (error) {
      // Of a slow endpoint, another process may have a token by now.
      const found = signal.aborted ? undefined : await this.#find(entry, context);
      if (found) return found;
      // A thousand renewals do not follow one that failed, nor a thousand callers one that got no answer.
      const isUnanswered = error instanceof ServiceConnectionError && error.kind === 'timeout';
      const failure = isAnswer(error) ? error : undefined;
      if (signal.aborted || isUnanswered || !isAwaited()) keptMs = LOCK;
      else if (failure) keptMs = FAILURE;
      if (failure) void this.#store.set(entry.signKey, entry.writeFailure(failure, clock.now()), keptMs);
      else if (keptMs > 0) show();
      throw error;
    } finally {
      cancelShow();
      // Callers do not wait for this. The lock ends when others can find the token.
      if (typeof lock === 'function') {
        if (keptMs === 0) void Promise.resolve(written).then(lock);
        else if (keptMs < LOCK) void sleep(watching(clock), keptMs, closed).then(lock, () => undefined);
      }
    }
  }

  /** The newest. A slow source is waited for only if there is no older one, or, by the endpoint, if a token is asked for. */
  async #secret(signal: AbortSignal): Promise<Secret> {
    const { last } = this.#clientSecret;
    const newest = this.#clientSecret.read();
    if (!last) return untilAborted(newest, signal);
    const limit = { clock: this.#io.clock, timeoutMs: SECRET, expired: () => new Error('Too late') };
    return within(limit, () => newest).catch(() => last);
  }

  async #find(entry: StoredToken, { accepts }: TokenRequestContext): Promise<TokenGrant | undefined> {
    const { clock } = this.#io;
    const grant = entry.read(await this.#store.get(entry.key), clock.now());
    // The age is as of now. Counted from before a wait for the lock, the token would be renewed too early.
    return grant && accepts(grant) ? { ...grant, requestedAt: momentOf(clock) } : undefined;
  }

  /** Writes under the secret and certificate that the endpoint accepted: they may have changed since the lock was taken. */
  async #write(scope: string, grant: TokenGrant, ageMs: number): Promise<void> {
    const { requestedWith } = grant;
    const entry = requestedWith && this.#entry(scope, requestedWith.secret, requestedWith);
    if (!entry) return;
    const { value, ttlMs } = entry.write(grant, this.#io.clock.now(), ageMs);
    if (ttlMs > 0) await this.#store.set(entry.key, value, ttlMs);
  }

  async #remove(scope: string, accessToken: string): Promise<void> {
    const { last } = this.#clientSecret;
    const entry = last && this.#entry(scope, last);
    const value = entry && (await this.#store.get(entry.key));
    const isThere = value && entry.read(value, this.#io.clock.now())?.accessToken === accessToken;
    if (isThere) await this.#store.delete(entry.key, value);
  }

  #entry(scope: string, secret: Secret, owner = this.#owner()): StoredToken {
    if (this.#keys?.secret.reveal() !== secret.reveal()) this.#keys = new StoreKeys(secret);
    return new StoredToken(this.#keys, scope, owner);
  }
}
