import { type Rotating } from '../../config/rotating.js';
import { type Secret } from '../../config/secret.js';
import { type TokenStore } from '../../config/options.js';
import { ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { elapsedMs, momentOf, watching, sleep, untilAborted, within } from '../../time/time.js';
import {
  type TokenGrant,
  type TokenIo,
  type TokenOwner,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type TokenEndpoint } from '../endpoint/token-endpoint.js';
import { GuardedStore, type Release } from './guarded-store.js';
import { StoredToken, StoreKeys } from './stored-token.js';

/** The TTL of the lock. If its holder crashes or the endpoint is slow, another process takes the lock after this time. */
const LOCK_TTL_MS = 4_000;
/** Pause between two looks into the store. A renewal has time, and all processes renew at about the same time. */
const PAUSE_MS = { awaited: { least: 100, most: 500 }, renewal: { least: 500, most: 1_500 } };
/**
 * A process that gets neither the token nor the lock gives up after this time, which is longer than the TTL of a lock. A renewal
 * gives a failed store this time to recover.
 */
const MAX_WAIT_MS = 5_000;
/** Time limit for reading the newest secret, if there is an older one. */
const SECRET_TIMEOUT_MS = 1_000;
/** After an error of the endpoint, no process makes another request for this time. */
const FAILURE_PAUSE_MS = 1_000;
/** Time of a request that is reserved for one last check of the store. */
const LAST_LOOK_MS = 300;

/**
 * Shares tokens between processes through a store. One process requests a token from the endpoint, and the others find that token
 * in the store. A store that fails, hangs or has wrong entries delays a token, but never prevents one.
 */
export class SharedStore implements TokenSource {
  readonly #endpoint: Pick<TokenEndpoint, 'request' | 'owner'>;
  readonly #store: GuardedStore;
  readonly #clientSecret: Rotating<Secret>;
  readonly #io: TokenIo;
  #keys: StoreKeys | undefined;

  /**
   * @param endpoint where tokens are requested if the store has none
   * @param clientSecret the keys that encrypt the entries are derived from it
   */
  constructor(
    endpoint: Pick<TokenEndpoint, 'request' | 'owner'>,
    store: TokenStore,
    clientSecret: Rotating<Secret>,
    io: TokenIo,
  ) {
    this.#endpoint = endpoint;
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
   * @throws ServiceTokenError `token_unavailable` if another process has the lock for too long
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
    for (;;) {
      const found = await this.#find(entry, context);
      if (found) return found;
      const lock = await this.#store.lock(entry.lockKey, LOCK_TTL_MS);
      const passedMs = clock.monotonic() - begun;
      // The endpoint gets at least half of the time.
      const leftMs = Math.min(MAX_WAIT_MS, timeoutMs / 2) - passedMs;
      const needsNoLock = lock === 'none' && (this.#store.isAvailable || isAwaited() || leftMs <= 0);
      if (lock instanceof Function || needsNoLock) {
        const release = lock instanceof Function ? lock : undefined;
        return this.#requestFromEndpoint(entry, release, { ...context, timeoutMs: timeoutMs - passedMs });
      }
      if (leftMs <= 0) throw requestedElsewhere(scope, passedMs);
      const { least, most } = isAwaited() ? PAUSE_MS.awaited : PAUSE_MS.renewal;
      await sleep(clock, Math.min(leftMs, least + random() * (most - least)), signal);
    }
  }

  /** Removes a refused token from the store, if it is still there. */
  drop(scope: string, accessToken: string): void {
    void this.#remove(scope, accessToken);
  }

  /** Requests the token from the endpoint. @param release releases the lock; undefined without a lock */
  async #requestFromEndpoint(
    entry: StoredToken,
    release: Release | undefined,
    context: TokenRequestContext,
  ): Promise<TokenGrant> {
    const { clock } = this.#io;
    const { signal, closed, isAwaited, timeoutMs } = context;
    let written: Promise<void> | undefined;
    let keptMs = 0;
    try {
      // The previous holder of the lock may have just written a token.
      const found = release && (await this.#find(entry, context));
      signal.throwIfAborted();
      if (found) return found;
      const requestedAt = momentOf(clock);
      const grant = await this.#endpoint.request(entry.scope, {
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
      if (signal.aborted || hasNoResponse || !isAwaited()) keptMs = LOCK_TTL_MS;
      else if (error instanceof ServiceTokenError && error.status !== undefined) keptMs = FAILURE_PAUSE_MS;
      throw error;
    } finally {
      // Callers do not wait for this. The lock is released when other processes can find the token.
      if (release && keptMs === 0) void Promise.resolve(written).then(release);
      else if (release && keptMs < LOCK_TTL_MS)
        void sleep(watching(clock), keptMs, closed).then(release, () => undefined);
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

  #entryFor(scope: string, secret: Secret, owner: TokenOwner = this.#endpoint.owner): StoredToken {
    if (!this.#keys?.secret.equals(secret)) this.#keys = new StoreKeys(secret);
    return new StoredToken(this.#keys, scope, owner);
  }
}

function requestedElsewhere(scope: string, waitedMs: number): ServiceTokenError {
  return new ServiceTokenError({
    code: 'token_unavailable',
    message: `Another process requests this token, and has stored none within ${Math.round(waitedMs)} ms.`,
    hint: 'Try again later. If this goes on, the token endpoint is slow or fails, which the log of the other processes shows, or the locks of the tokenStore do not expire.',
    options: ['tokenStore'],
    scope,
  });
}
