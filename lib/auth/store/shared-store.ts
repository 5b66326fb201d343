import { randomUUID } from 'node:crypto';
import { type Rotating } from '../../config/rotating.js';
import { type Secret } from '../../config/secret.js';
import { type TokenStore } from '../../config/options.js';
import { ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { elapsedMs, momentOf, watching, sleep, untilAborted, within } from '../../time/time.js';
import {
  type TokenGrant,
  type TokenIo,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { GuardedStore, type Release } from './guarded-store.js';
import { StoredToken, StoreKeys, type TokenOwner } from './stored-token.js';

/** The TTL of the lock. If its holder crashes or the endpoint is slow, another process takes the lock after this time. */
const LOCK_TTL_MS = 4_000;
/** Pause between two looks into the store. A renewal has time, and all processes renew at about the same time. */
const PAUSE_MS = { awaited: { least: 100, most: 500 }, renewal: { least: 500, most: 1_500 } };
/** A renewal that no caller waits for gives a failed store this time to recover. */
const STORE_RECOVERY_MS = 5_000;
/** Time limit for reading the newest secret, if there is an older one. */
const SECRET_TIMEOUT_MS = 1_000;
/** An error of the endpoint is shared by all processes for this time, or for LOCK_TTL_MS if no caller waited for the request. */
const SHARED_FAILURE_MS = 1_000;
/** Time of a request that is reserved for one last check of the store. */
const LAST_LOOK_MS = 300;

/**
 * Shares tokens between processes through a store. One process requests a token from the endpoint, and the others find that token
 * in the store. If the endpoint responds with an error, the others get this error for 1 s, or for 4 s after a renewal. A
 * connection fault is not shared, because it may be a fault of one process only. A store that fails, hangs or has wrong entries
 * delays a token, but never prevents one.
 */
export class SharedStore implements TokenSource {
  readonly #source: Pick<TokenSource, 'request'>;
  readonly #store: GuardedStore;
  readonly #owner: () => TokenOwner;
  readonly #clientSecret: Rotating<Secret>;
  readonly #io: TokenIo;
  #keys: StoreKeys | undefined;

  /**
   * @param source where tokens are requested if the store has none
   * @param owner called for each request, because another client certificate may be in use
   * @param clientSecret the keys that encrypt the entries are derived from it
   */
  constructor(
    source: Pick<TokenSource, 'request'>,
    store: TokenStore,
    owner: () => TokenOwner,
    clientSecret: Rotating<Secret>,
    io: TokenIo,
  ) {
    this.#source = source;
    this.#owner = owner;
    this.#clientSecret = clientSecret;
    this.#io = io;
    this.#store = new GuardedStore(store, io);
  }

  /**
   * Gets a token:
   * 1. Looks for it in the store.
   * 2. Tries to take the lock. With the lock, requests the token from the endpoint.
   * 3. If another process has the lock, waits and starts again. The lock ends after 4 s, so if the endpoint is slow, another
   *    process makes a request every 4 s.
   *
   * A lock without a heartbeat for 4 s is ignored: its holder is gone, and the store does not end the lock.
   */
  async request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock, random } = this.#io;
    const { signal, isAwaited, timeoutMs } = context;
    const begun = clock.monotonic();
    const { last } = this.#clientSecret;
    // Just after a rotation of the secret, other processes still store their tokens under the name of the previous secret.
    const known = last && (await this.#find(this.#entryFor(scope, last), context));
    if (known) return known;
    const entry = this.#entryFor(scope, await this.#newestSecret(signal));
    const ownHeartbeat = randomUUID();
    let lastHeartbeat: string | undefined;
    let quietSince = begun;
    for (;;) {
      const found = await this.#find(entry, context);
      if (found) return found;
      const lock = await this.#store.lock(entry.lockKey, LOCK_TTL_MS);
      const heartbeat = lock === 'held' ? await this.#store.get(entry.heartbeatKey) : undefined;
      const failure = entry.decodeFailure(heartbeat, clock.now());
      if (failure) throw failure;
      const now = clock.monotonic();
      const passed = now - begun;
      if (
        typeof lock === 'function' ||
        heartbeat === ownHeartbeat ||
        (lock === 'none' && (this.#store.isAvailable || isAwaited() || passed >= STORE_RECOVERY_MS))
      ) {
        const left = { ...context, timeoutMs: timeoutMs - passed };
        return this.#requestWithLock(entry, typeof lock === 'function' ? lock : 'none', left, passed);
      }
      if (heartbeat !== undefined && heartbeat !== lastHeartbeat)
        [lastHeartbeat, quietSince] = [heartbeat, now];
      // If several processes ignore the lock, the last one that writes its heartbeat makes the request: the others see it.
      else if (lock === 'held' && now - quietSince >= LOCK_TTL_MS)
        await this.#store.set(entry.heartbeatKey, ownHeartbeat, LOCK_TTL_MS);
      const { least, most } = isAwaited() ? PAUSE_MS.awaited : PAUSE_MS.renewal;
      await sleep(clock, least + random() * (most - least), signal);
    }
  }

  /** Removes a refused token from the store, if it is still there. */
  drop(scope: string, accessToken: string): void {
    void this.#remove(scope, accessToken);
  }

  /** Requests the token from the endpoint. @param lock the function that releases the lock; `none` without a lock */
  async #requestWithLock(
    entry: StoredToken,
    lock: Release | 'none',
    context: TokenRequestContext,
    waitedMs: number,
  ): Promise<TokenGrant> {
    const { clock } = this.#io;
    const { signal, closed, isAwaited, timeoutMs } = context;
    let written: Promise<void> | undefined;
    let keptMs = 0;
    // 1 s after the start, the wait for the lock included, write a heartbeat, so that other processes see that a request is in
    // progress.
    const writeHeartbeat = (): void => void this.#store.set(entry.heartbeatKey, randomUUID(), LOCK_TTL_MS);
    const cancelHeartbeat = clock.watch(writeHeartbeat, Math.max(0, LOCK_TTL_MS / 4 - waitedMs));
    try {
      // The previous holder of the lock may have just written a token.
      const found = lock === 'none' ? undefined : await this.#find(entry, context);
      signal.throwIfAborted();
      if (found) return found;
      const requestedAt = momentOf(clock);
      const grant = await this.#source.request(entry.scope, {
        ...context,
        timeoutMs: Math.max(timeoutMs - LAST_LOOK_MS, timeoutMs / 2),
      });
      written = this.#write(entry.scope, grant, elapsedMs(clock, requestedAt));
      // The token's age counts from the request, and not from the wait for the lock.
      return { ...grant, requestedAt };
    } catch (error) {
      // If the endpoint is slow, another process may have got a token meanwhile.
      const found = signal.aborted ? undefined : await this.#find(entry, context);
      if (found) return found;
      // Keep the lock, so that the other processes do not all repeat a failed renewal, or a request without a response.
      const hasNoResponse = error instanceof ServiceConnectionError && error.kind === 'timeout';
      const failure = error instanceof ServiceTokenError && error.status !== undefined ? error : undefined;
      if (signal.aborted || hasNoResponse || !isAwaited()) keptMs = LOCK_TTL_MS;
      else if (failure) keptMs = SHARED_FAILURE_MS;
      if (failure)
        void this.#store.set(entry.heartbeatKey, entry.encodeFailure(failure, clock.now()), keptMs);
      else if (keptMs > 0) writeHeartbeat();
      throw error;
    } finally {
      cancelHeartbeat();
      // Callers do not wait for this. The lock is released when other processes can find the token.
      if (typeof lock === 'function') {
        if (keptMs === 0) void Promise.resolve(written).then(lock);
        else if (keptMs < LOCK_TTL_MS)
          void sleep(watching(clock), keptMs, closed).then(lock, () => undefined);
      }
    }
  }

  /** Reads the newest secret. If the source is slow, an older secret serves for looking into the store. */
  async #newestSecret(signal: AbortSignal): Promise<Secret> {
    const { last } = this.#clientSecret;
    const newest = this.#clientSecret.get();
    if (!last) return untilAborted(newest, signal);
    const limit = {
      clock: this.#io.clock,
      timeoutMs: SECRET_TIMEOUT_MS,
      expired: () => new Error('Too late'),
    };
    return within(limit, () => newest).catch(() => last);
  }

  async #find(entry: StoredToken, { accepts }: TokenRequestContext): Promise<TokenGrant | undefined> {
    const { clock } = this.#io;
    const grant = entry.decode(await this.#store.get(entry.key), clock.now());
    // The token's age is that of now. With an earlier time the token would be renewed too early.
    return grant && accepts(grant) ? { ...grant, requestedAt: momentOf(clock) } : undefined;
  }

  /**
   * Writes the token under the secret and certificate that the endpoint accepted. They may have changed since this process
   * acquired the lock.
   */
  async #write(scope: string, grant: TokenGrant, ageMs: number): Promise<void> {
    const { requestedWith } = grant;
    const entry = requestedWith && this.#entryFor(scope, requestedWith.secret, requestedWith);
    if (!entry) return;
    const { value, ttlMs } = entry.encode(grant, this.#io.clock.now(), ageMs);
    if (ttlMs > 0) await this.#store.set(entry.key, value, ttlMs);
  }

  async #remove(scope: string, accessToken: string): Promise<void> {
    const { last } = this.#clientSecret;
    const entry = last && this.#entryFor(scope, last);
    const value = entry && (await this.#store.get(entry.key));
    const isThere = value && entry.decode(value, this.#io.clock.now())?.accessToken === accessToken;
    if (isThere) await this.#store.delete(entry.key, value);
  }

  #entryFor(scope: string, secret: Secret, owner = this.#owner()): StoredToken {
    if (!this.#keys?.secret.equals(secret)) this.#keys = new StoreKeys(secret);
    return new StoredToken(this.#keys, scope, owner);
  }
}
