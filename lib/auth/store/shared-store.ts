import { type Secret } from '../../config/secret.js';
import { type TokenStore } from '../../config/token-cache.options.js';
import { sleep, untilAborted } from '../../time/timers.js';
import {
  type TokenGrant,
  type TokenIo,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type ClientSecret } from '../endpoint/client-secret.js';
import { answerWithin } from './answer-within.js';
import { GuardedStore } from './guarded-store.js';
import { StoreCipher } from './store-cipher.js';
import { StoredToken, type TokenOwner } from './stored-token.js';
import { StoreObserver } from './store-observer.js';
import { Turn } from './turn.js';

/** On average: where all look at the same time, more than one finds that nobody asks. */
const POLL_MS = 100;
/** The same where no caller waits: all processes renew a token at about the same time. */
const RENEWAL_POLL_MS = 1_000;
const SECRET_MS = 1_000;

/**
 * Tokens shared between processes, before a token source: one process asks the endpoint, the others find its token in
 * the store. A store that fails, does not answer, is full or has wrong entries delays a token, but never prevents one.
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
   * @param source asked where the store has no token
   * @param owner asked each time, as another client certificate may be in use
   * @param clientSecret entries are encrypted with keys that come from it
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
    this.#observer = new StoreObserver(io);
    this.#store = new GuardedStore(store, io.clock, this.#observer);
  }

  open(): void {
    this.#store.open();
  }

  /** When the requests under way have been ended: what they still write is written, and the store closed. */
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

  /** Takes the token out of the store too, if it is still the one there. */
  dropped(scope: string, accessToken: string): void {
    void this.#track(this.#remove(scope, accessToken));
  }

  /** What comes first: the token of another process, or the outcome of our own request. */
  async #request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock } = this.#io;
    const deadline = clock.monotonic() + context.timeoutMs;
    const { found: shared, entry } = await this.#look(scope, context);
    if (shared) return shared;
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    try {
      return await new Promise<TokenGrant>((resolve, reject) => {
        const ask = (turn: Turn): void => {
          const left = { ...context, signal, timeoutMs: deadline - clock.monotonic() };
          this.#requestAndShare(scope, turn, left).then(resolve, reject);
        };
        this.#track(this.#follow(entry, { ...context, signal }, ask)).then(resolve, reject);
      });
    } finally {
      over.abort(new Error('There is a token'));
    }
  }

  /** Asks when it is our turn, and looks for the token of another process until there is one. */
  async #follow(
    entry: StoredToken,
    context: TokenRequestContext,
    ask: (turn: Turn) => void,
  ): Promise<TokenGrant> {
    const { clock, random } = this.#io;
    const { signal, isAwaited } = context;
    const turn = new Turn(this.#store, entry, context, this.#io);
    for (let isFirst = true; !(await turn.take()); isFirst = false) {
      if (isFirst && this.#store.works) this.#observer.count('storeLockWaits');
      const until = clock.monotonic() + RENEWAL_POLL_MS * (0.5 + random());
      // A caller may begin to wait meanwhile.
      do await sleep(clock, POLL_MS * (0.5 + random()), signal);
      while (!isAwaited() && clock.monotonic() < until);
      const found = await this.#find(entry, context);
      if (found) return found;
    }
    // The process whose turn it was until now may have just written.
    let found = await this.#find(entry, context);
    if (found || signal.aborted) void this.#track(turn.end());
    else {
      if (this.#store.works) this.#observer.count('storeMisses');
      ask(turn);
    }
    while (!found) {
      await sleep(clock, POLL_MS * (0.5 + random()), signal);
      found = await this.#find(entry, context);
      if (!found) await turn.sign();
    }
    return found;
  }

  async #requestAndShare(scope: string, turn: Turn, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock } = this.#io;
    const begun = clock.monotonic();
    let told: Promise<void> | undefined;
    try {
      const grant = await this.#source.request(scope, context);
      const issuedAt = clock.now() - (clock.monotonic() - begun);
      if (!context.signal.aborted) told = this.#write(scope, grant, issuedAt);
      // A wait for our turn does not make the token older.
      return { ...grant, requestedAt: begun };
    } catch (error) {
      if (!context.signal.aborted) told = turn.sign();
      throw error;
    } finally {
      // Callers do not wait for this. Our turn ends when others can find the token, or the sign of a failure.
      void this.#track(Promise.resolve(told).then(() => turn.end()));
    }
  }

  /** With the last secret, then with the newest: after a rotation, others have their tokens under its name. */
  async #look(
    scope: string,
    context: Pick<TokenRequestContext, 'signal' | 'accepts'>,
  ): Promise<{ found?: TokenGrant; entry: StoredToken }> {
    const { last } = this.#clientSecret;
    const secret = last ?? (await untilAborted(this.#clientSecret.read(), context.signal));
    const known = this.#entry(scope, secret);
    const shared = await this.#find(known, context);
    if (shared) return { found: shared, entry: known };
    // Read as the endpoint reads it. Not waited for where it needs time: the endpoint waits for it, if it is asked.
    const read = () => this.#clientSecret.read();
    const newest = await answerWithin(this.#io.clock, SECRET_MS, read).catch(() => secret);
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
    // Its age is that of this moment. Counted from before a wait for the lock, it would be renewed too early.
    if (!grant || !accepts(grant)) return undefined;
    this.#observer.count('storeHits');
    return { ...grant, requestedAt: clock.monotonic() };
  }

  /** Under secret and certificate that the endpoint accepted: they may have changed since the lock was taken. */
  async #write(scope: string, grant: TokenGrant, issuedAt: number): Promise<void> {
    const { requestedWith } = grant;
    const entry = requestedWith && this.#entry(scope, requestedWith.secret, requestedWith);
    const written = entry?.write(grant, issuedAt);
    if (entry && written) await this.#store.set(entry.key, written.value, written.ttlMs);
  }

  async #remove(scope: string, accessToken: string): Promise<void> {
    const entry = this.#lastEntry(scope);
    const value = entry && (await this.#store.get(entry.key));
    if (typeof value !== 'string') return;
    if (entry?.read(value, this.#io.clock.now())?.accessToken !== accessToken) return;
    await this.#store.delete(entry.key, value);
  }

  #lastEntry(scope: string): StoredToken | undefined {
    const { last } = this.#clientSecret;
    return last && this.#entry(scope, last);
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
