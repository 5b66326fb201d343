import { type TokenStore } from '../../config/token-cache.options.js';
import { type ServiceIo } from '../../exchange/io.js';
import { sleep } from '../../exchange/timing.js';
import { type TokenGrant, type TokenRequestContext, type TokenSource } from '../access-token.js';
import { type ClientSecret } from '../endpoint/client-secret.js';
import { type StoreObserver } from '../token-observers.js';
import { GuardedStore, UNAVAILABLE } from './guarded-store.js';
import { StoreCiphers } from './store-cipher.js';
import { StoredToken, type TokenOwner } from './stored-token.js';
import { type Release, Turn } from './turn.js';

/** On average: where all look at the same time, more than one finds that nobody asks. */
const POLL_MS = 100;

/**
 * Tokens shared between processes, before a token source: one process asks the endpoint, the others find its token in
 * the store. A store that fails, does not answer, is full or has wrong entries delays a token, but never prevents one.
 */
export class SharedStore implements TokenSource {
  readonly #source: TokenSource;
  readonly #store: GuardedStore;
  readonly #owner: () => TokenOwner;
  readonly #ciphers: StoreCiphers;
  readonly #io: Pick<ServiceIo, 'clock' | 'random'>;
  readonly #observer: StoreObserver;
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /**
   * @param source asked where the store has no token
   * @param owner asked each time, as another client certificate may be in use
   * @param clientSecret entries are encrypted with keys that come from it
   */
  constructor(
    source: TokenSource,
    store: TokenStore,
    owner: () => TokenOwner,
    clientSecret: ClientSecret,
    io: Pick<ServiceIo, 'clock' | 'random'>,
    observer: StoreObserver,
  ) {
    this.#source = source;
    this.#store = new GuardedStore(store, io.clock, observer);
    this.#owner = owner;
    this.#ciphers = new StoreCiphers(clientSecret);
    this.#io = io;
    this.#observer = observer;
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
    this.#source.dropped?.(scope, accessToken);
    const cipher = this.#ciphers.last;
    if (cipher) void this.#track(this.#remove(new StoredToken(cipher, scope, this.#owner()), accessToken));
  }

  /** What comes first: the token of another process, or the outcome of our own request. */
  async #request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock } = this.#io;
    const deadline = clock.monotonic() + context.timeoutMs;
    const entry = new StoredToken(await this.#ciphers.current(), scope, this.#owner());
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    try {
      return await new Promise<TokenGrant>((resolve, reject) => {
        const ask = (release: Release): void => {
          const left = { ...context, signal, timeoutMs: deadline - clock.monotonic() };
          this.#requestAndShare(scope, release, left).then(resolve, reject);
        };
        this.#track(this.#follow(entry, { ...context, signal }, ask)).then(resolve, reject);
      });
    } finally {
      over.abort(new Error('There is a token'));
    }
  }

  /** Looks for the token of another process until there is one. Asks as well, where it is our turn. */
  async #follow(
    entry: StoredToken,
    context: TokenRequestContext,
    ask: (release: Release) => void,
  ): Promise<TokenGrant> {
    const { clock, random } = this.#io;
    const { signal, timeoutMs } = context;
    const turn = new Turn(this.#store, entry, clock, timeoutMs, random());
    let release: Release | undefined;
    for (let isFirst = true; ; isFirst = false) {
      let found = await this.#find(entry, context);
      if (release) await turn.sign();
      else if (typeof found !== 'object') {
        release = found === UNAVAILABLE ? () => Promise.resolve() : await turn.take();
        // The process whose turn it was until now may have just written.
        if (release) found = await this.#find(entry, context);
        if (release && (typeof found === 'object' || signal.aborted)) void this.#track(release());
        else if (release) {
          if (found === undefined) this.#observer.count('storeMisses');
          ask(release);
        } else if (isFirst) this.#observer.count('storeLockWaits');
      }
      if (typeof found === 'object') {
        this.#observer.count('storeHits');
        return found;
      }
      await sleep(clock, POLL_MS * (0.5 + random()), signal);
    }
  }

  async #requestAndShare(scope: string, release: Release, context: TokenRequestContext): Promise<TokenGrant> {
    const { clock } = this.#io;
    const begun = clock.monotonic();
    let written: Promise<void> | undefined;
    try {
      const grant = await this.#source.request(scope, context);
      const issuedAt = clock.now() - (clock.monotonic() - begun);
      if (!context.signal.aborted) written = this.#write(scope, grant, issuedAt);
      // A wait for our turn does not make the token older.
      return { ...grant, requestedAt: begun };
    } finally {
      // Callers do not wait for this. Our turn ends when others can find the token.
      void this.#track(Promise.resolve(written).then(release));
    }
  }

  /** With the secret that the endpoint accepted: it may have changed since the lock was taken. */
  async #write(scope: string, grant: TokenGrant, issuedAt: number): Promise<void> {
    const cipher = this.#ciphers.last;
    const entry = cipher && new StoredToken(cipher, scope, this.#owner());
    const written = entry?.write(grant, issuedAt);
    if (entry && written) await this.#store.set(entry.key, written.value, written.ttlMs);
  }

  async #remove(entry: StoredToken, accessToken: string): Promise<void> {
    const value = await this.#store.get(entry.key);
    if (typeof value !== 'string') return;
    if (entry.read(value, this.#io.clock.now())?.accessToken !== accessToken) return;
    await this.#store.delete(entry.key, value);
  }

  async #find(
    entry: StoredToken,
    { accepts }: TokenRequestContext,
  ): Promise<TokenGrant | undefined | typeof UNAVAILABLE> {
    const { clock } = this.#io;
    const value = await this.#store.get(entry.key);
    if (value === UNAVAILABLE) return UNAVAILABLE;
    const grant = entry.read(value, clock.now());
    // Its age is that of this moment. Counted from before a wait for the lock, it would be renewed too early.
    return grant && accepts(grant) ? { ...grant, requestedAt: clock.monotonic() } : undefined;
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
