import { type Secret } from '../../config/secret.js';
import { STORE_ADDRESS, type TokenStore } from '../../config/token-cache.options.js';
import { sleep, untilAborted, within } from '../../time/timers.js';
import {
  type TokenGrant,
  type TokenIo,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type ClientSecret } from '../endpoint/client-secret.js';
import { GuardedStore } from './guarded-store.js';
import { Lease } from './lease.js';
import { StoreCipher } from './store-cipher.js';
import { StoredToken, type TokenOwner } from './stored-token.js';
import { StoreObserver } from './store-observer.js';

/** On average: if all processes looked at the same time, more than one would find that nobody asks. */
const POLL_MS = 100;
/** The same if no caller waits: all processes renew a token at about the same time. */
const RENEWAL_POLL_MS = 1_000;
const SECRET_MS = 1_000;

/**
 * Shares tokens between processes, in front of a token source: one process asks the endpoint, the others find its token in
 * the store. A store that fails, does not answer, is full or has wrong entries delays a token, but never prevents one.
 *
 * Each process looks, waits for the lease, asks, and tells. For example A, B and C begin together, with 10 s for a request:
 *
 * - A has the lease, asks, and gives a sign every 100 ms for 3 s. B and C look every 100 ms. A tells at 4 s: they find it.
 * - The endpoint does not answer A: B asks at 5.5 s, 2.5 s after A's last sign, and gives signs. C never asks.
 * - A dies: B asks 2.5 s after its last sign.
 * - The endpoint refuses A: it gives the lease back, and B or C asks within 150 ms.
 */
export class SharedStore implements TokenSource {
  readonly #source: Pick<TokenSource, 'request'>;
  readonly #store: GuardedStore;
  readonly #owner: () => TokenOwner;
  readonly #clientSecret: ClientSecret;
  readonly #io: TokenIo;
  readonly #observer: StoreObserver;
  readonly #underWay = new Set<Promise<unknown>>();
  #sealing: { secret: Secret; cipher: StoreCipher } | undefined;

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
    this.#observer = new StoreObserver(io, store[STORE_ADDRESS]);
    this.#store = new GuardedStore(store, io.clock, this.#observer);
  }

  open(): void {
    this.#store.open();
  }

  /** To be called once the requests have been ended. Waits for what they still write, then closes the store. */
  async close(): Promise<void> {
    // Each of them ends in time.
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    await this.#store.close();
  }

  async request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    return this.#track(this.#request(scope, context));
  }

  async look(
    scope: string,
    { signal, accepts }: Pick<TokenRequestContext, 'signal' | 'accepts'>,
  ): Promise<TokenGrant | undefined> {
    return this.#track(this.#look(scope, { signal, accepts }).then(({ found }) => found));
  }

  /** Takes the token out of the store too, if it is still there. */
  dropped(scope: string, accessToken: string): void {
    void this.#track(this.#remove(scope, accessToken));
  }

  async #request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock } = this.#io;
    const deadline = clock.monotonic() + context.timeoutMs;
    const { found, entry } = await this.#look(scope, context);
    if (found) return found;
    const over = new AbortController();
    const during = { ...context, signal: AbortSignal.any([context.signal, over.signal]) };
    try {
      const { told, lease } = await this.#awaitLease(entry, during);
      if (told) return told;
      const timeoutMs = deadline - clock.monotonic();
      return await Promise.race([
        this.#askAndTell(scope, lease, { ...during, timeoutMs }),
        this.#track(this.#signAndLook(entry, lease, during)),
      ]);
    } finally {
      over.abort(new Error('There is a token'));
    }
  }

  /** Waits until we may ask, or another process has told. */
  async #awaitLease(
    entry: StoredToken,
    context: TokenRequestContext,
  ): Promise<{ told?: TokenGrant; lease: Lease }> {
    const { clock, random } = this.#io;
    const { signal, isAwaited } = context;
    const lease = new Lease(this.#store, entry, context, this.#io);
    while (!(await lease.take())) {
      const until = clock.monotonic() + RENEWAL_POLL_MS * (0.5 + random());
      // In the meantime, a caller may begin to wait.
      do await this.#pause(signal);
      while (!isAwaited() && clock.monotonic() < until);
      const told = await this.#find(entry, context);
      if (told) return { told, lease };
    }
    // The process that had it until now may have just written.
    const told = await this.#find(entry, context);
    if (told || signal.aborted) void this.#track(lease.end());
    if (!told) signal.throwIfAborted();
    return { told, lease };
  }

  async #askAndTell(scope: string, lease: Lease, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock } = this.#io;
    const begun = clock.monotonic();
    let written: Promise<void> | undefined;
    try {
      const grant = await this.#source.request(scope, context);
      const issuedAt = clock.now() - (clock.monotonic() - begun);
      if (!context.signal.aborted) written = this.#write(scope, grant, issuedAt);
      // A wait for the lease does not make the token older.
      return { ...grant, requestedAt: begun };
    } catch (error) {
      if (!context.signal.aborted) written = lease.sign();
      throw error;
    } finally {
      // Callers do not wait for this. The lease ends when others can find the token, or the sign of a failure.
      void this.#track(Promise.resolve(written).then(() => lease.end()));
    }
  }

  /** Runs while we ask: another process may still get a token. */
  async #signAndLook(entry: StoredToken, lease: Lease, context: TokenRequestContext): Promise<TokenGrant> {
    for (;;) {
      await this.#pause(context.signal);
      const found = await this.#find(entry, context);
      if (found) return found;
      await lease.sign();
    }
  }

  #pause(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#io;
    return sleep(clock, POLL_MS * (0.5 + random()), signal);
  }

  /** Looks with the last secret, then with the newest: after a rotation, others store their tokens under its name. */
  async #look(
    scope: string,
    context: Pick<TokenRequestContext, 'signal' | 'accepts'>,
  ): Promise<{ found?: TokenGrant; entry: StoredToken }> {
    const { last } = this.#clientSecret;
    const secret = last ?? (await untilAborted(this.#clientSecret.read(), context.signal));
    const known = this.#entry(scope, secret);
    const shared = await this.#find(known, context);
    if (shared) return { found: shared, entry: known };
    // Read as the endpoint reads it. A slow source is not waited for: the endpoint waits for it, if it is asked.
    const limit = { clock: this.#io.clock, timeoutMs: SECRET_MS, expired: () => new Error('Too late') };
    const newest = await within(limit, () => this.#clientSecret.read()).catch(() => secret);
    const entry = this.#entry(scope, newest);
    const isOther = newest.reveal() !== secret.reveal();
    return { found: isOther ? await this.#find(entry, context) : undefined, entry };
  }

  async #find(
    entry: StoredToken,
    { accepts }: Pick<TokenRequestContext, 'accepts'>,
  ): Promise<TokenGrant | undefined> {
    const { clock } = this.#io;
    const grant = entry.read(await this.#store.get(entry.key), clock.now());
    // The age is as of now. Counted from before a wait for the lock, the token would be renewed too early.
    if (!grant || !accepts(grant)) return undefined;
    return { ...grant, requestedAt: clock.monotonic() };
  }

  /** Writes under the secret and certificate that the endpoint accepted: they may have changed since the lock was taken. */
  async #write(scope: string, grant: TokenGrant, issuedAt: number): Promise<void> {
    const { requestedWith } = grant;
    const entry = requestedWith && this.#entry(scope, requestedWith.secret, requestedWith);
    if (!entry) return;
    const { value, ttlMs } = entry.write(grant, issuedAt);
    await this.#store.set(entry.key, value, ttlMs);
  }

  async #remove(scope: string, accessToken: string): Promise<void> {
    const { last } = this.#clientSecret;
    if (!last) return;
    const entry = this.#entry(scope, last);
    const value = await this.#store.get(entry.key);
    const isThere = entry.read(value, this.#io.clock.now())?.accessToken === accessToken;
    if (isThere && typeof value === 'string') await this.#store.delete(entry.key, value);
  }

  #entry(scope: string, secret: Secret, owner = this.#owner()): StoredToken {
    if (this.#sealing?.secret.reveal() !== secret.reveal()) {
      this.#sealing = { secret, cipher: new StoreCipher(secret) };
    }
    return new StoredToken(this.#sealing.cipher, scope, owner);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const done = (): void => void this.#underWay.delete(work);
    work.then(done, done);
    return work;
  }
}
