import { type Clock, sleep, watching, within } from '../time/time.js';

/** A value that arrived less than this time ago is used without reading it again. Milliseconds, as all times here. */
const NEW_MS = 1_000;

/** From the first refusal of a value that has worked, requests wait for another value for this time. */
const WAIT_MS = 2_000;

/** Time between two readings while a value is refused. A text never changes, and a function may send a request to a vault. */
export const REREAD_MS = { text: Infinity, file: 1_000, function: 10_000 };

interface RotatingSettings<T> {
  /** Reads the value from its source. `isRefused`: because a server has refused the last value. */
  read: (isRefused: boolean) => Promise<T>;
  isSame?: (one: T, other: T) => boolean;
  clock: Clock;
  /** While a value is refused, it is read at most once per this time. See {@link REREAD_MS}. */
  rereadMs: number;
  /**
   * Requests wait for another value at most once per this time. If the source is a function, they then wait at most 2 s for a call of
   * it that is in flight. Default 0: requests wait until the function has returned, and they wait after every refusal of a value
   * that a server has accepted since the refusal before.
   */
  waitEveryMs?: number;
}

/** What one server has said about a value. */
interface Verdict<T> {
  value: T;
  /** Whether the server accepted the value after it refused it last. */
  isAccepted: boolean;
  /** Until when requests wait for another value; -Infinity if the refused value has never worked. */
  waitsUntil: number;
  /** Whether the source is read at once. If not, it is read when `rereadMs` have passed since the start of the reading before. */
  isReadAtOnce: boolean;
}

interface RefusalOptions {
  /** Which server refused the value, if several servers get it. */
  server?: string;
  /** False if something else than the value may be wrong. Then no request waits for another value. Default: true. */
  isSure?: boolean;
  /** When the caller has to have a result. */
  endsAt?: number;
  /** Ends the wait of the caller, which rejects with the signal's reason. */
  signal?: AbortSignal;
}

/**
 * A credential that somebody else replaces while this process runs, for example a client secret in a file. The server may
 * know the new credential before the file has it. A refusal therefore makes all callers together read the source again. If the
 * refused value has worked before, it is probably being rotated, and they go on reading for up to 2 s. Meanwhile new
 * requests wait too: they would only be refused.
 */
export class Rotating<T> {
  readonly #settings: Required<RotatingSettings<T>>;
  readonly #clock: Clock;
  readonly #verdicts = new Map<string, Verdict<T>>();
  #last: { value: T; at: number } | undefined;
  #reading: Promise<T> | undefined;
  /** When the latest reading started. */
  #startedAt = -Infinity;
  /** When a caller last stopped waiting for a slow source. */
  #gaveUpAt = -Infinity;

  constructor(settings: RotatingSettings<T>) {
    this.#settings = { isSame: Object.is, waitEveryMs: 0, ...settings };
    // The callers' own timers keep the process running, so these need not.
    this.#clock = watching(settings.clock);
  }

  /** The value that was read last, however long ago. */
  get last(): T | undefined {
    return this.#last?.value;
  }

  /** Sets a value that came another way than by {@link read}. */
  set(value: T): void {
    this.#last = { value, at: this.#clock.monotonic() };
  }

  /**
   * The newest value: the source is read again if the last value is older than 1 s. If that fails, for example because a vault is
   * down, the last value serves. Rejects with the error of the source if there is no last value.
   */
  async get(): Promise<T> {
    const last = this.#last;
    if (!last) return this.read();
    const now = this.#clock.monotonic();
    const isRefused = this.#verdictOn(last.value)?.isAccepted === false;
    const isKnown = isRefused && now - this.#startedAt < this.#settings.rereadMs;
    return isKnown || now - last.at < NEW_MS ? last.value : this.read().catch(() => last.value);
  }

  /** Reads the source now. Callers that come during a reading share its result. */
  read(isRefused = false): Promise<T> {
    return (this.#reading ??= this.#readSource(isRefused).finally(() => (this.#reading = undefined)));
  }

  /** Reads the source with a reading that begins after this call, because the source may just have changed. */
  async readNext(): Promise<T> {
    await this.#reading?.catch(() => undefined);
    return this.read();
  }

  /** Records that a server has accepted this value. */
  accept(value: T, server = ''): void {
    const verdict = this.#verdictOn(value, server);
    if (verdict) verdict.isAccepted = true;
    else this.#verdicts.set(server, { value, isAccepted: true, waitsUntil: -Infinity, isReadAtOnce: false });
  }

  /** The search for another value, while requests to this server should wait for its end before they are sent. */
  search(server = ''): Promise<T | undefined> | undefined {
    const verdict = this.#last && this.#verdictOn(this.#last.value, server);
    const isOn = verdict && !verdict.isAccepted && this.#clock.monotonic() < verdict.waitsUntil;
    return isOn ? this.findOther(verdict.value, { server }) : undefined;
  }

  /**
   * Looks for another value after a server has refused this one. Resolves with undefined if there is none.
   *
   * After the first sure refusal, the source is read at once: the reading before may be older than the rotation. Later the
   * source is read at most once per `rereadMs`. When the wait ends, it is read one last time, even if less time has passed since the
   * reading before.
   */
  async findOther(
    refused: T,
    { server, isSure = true, endsAt = Infinity, signal }: RefusalOptions = {},
  ): Promise<T | undefined> {
    const { isSame, rereadMs } = this.#settings;
    let verdict: Verdict<T> | undefined;
    for (;;) {
      if (this.#last && !isSame(this.#last.value, refused)) return this.#last.value;
      if (isSure) verdict ??= this.#recordRefusal(refused, server);
      const { waitsUntil = -Infinity, isReadAtOnce } = verdict ?? {};
      const now = this.#clock.monotonic();
      const usualAt = isReadAtOnce ? now : this.#startedAt + rereadMs;
      const isLastDue = rereadMs < WAIT_MS && this.#startedAt < waitsUntil;
      const nextAt = isLastDue ? Math.min(usualAt, waitsUntil) : usualAt;
      if (this.#reading || nextAt <= now) {
        if (!(await this.#readAfterRefusal(verdict))) return undefined;
      } else if (nextAt > Math.min(waitsUntil, endsAt)) return undefined;
      else await sleep(this.#clock, nextAt - now, signal);
    }
  }

  /**
   * Reads the source after a refusal. Resolves with false if the caller cannot wait for the end of the reading. It goes on, and its
   * value is used afterwards.
   */
  async #readAfterRefusal(verdict?: Verdict<T>): Promise<boolean> {
    // If the source is down, it is not asked again at once.
    const reading = this.read(true).catch(() => verdict && (verdict.isReadAtOnce = false));
    const { waitEveryMs, rereadMs } = this.#settings;
    if (waitEveryMs === 0 || rereadMs < WAIT_MS) return reading.then(() => true);
    const now = this.#clock.monotonic();
    if (now - this.#gaveUpAt <= waitEveryMs) return false;
    const limit = {
      clock: this.#clock,
      timeoutMs: this.#startedAt + WAIT_MS - now,
      expired: () => new Error(),
    };
    return within(limit, () => reading).then(
      () => true,
      () => {
        this.#gaveUpAt = this.#clock.monotonic();
        return false;
      },
    );
  }

  /** What the server has said about this value; undefined if its last verdict was about another one. */
  #verdictOn(value: T, server = ''): Verdict<T> | undefined {
    const verdict = this.#verdicts.get(server);
    return verdict && this.#settings.isSame(verdict.value, value) ? verdict : undefined;
  }

  #recordRefusal(value: T, server = ''): Verdict<T> {
    const { waitEveryMs } = this.#settings;
    const before = this.#verdictOn(value, server);
    const now = this.#clock.monotonic();
    if (before && (!before.isAccepted || now <= before.waitsUntil - WAIT_MS + waitEveryMs))
      return Object.assign(before, { isAccepted: false });
    // If some servers accept the value and others refuse it, only the first refusal is a reason to call a function at once.
    const isFirst = !before || before.waitsUntil === -Infinity || waitEveryMs === 0;
    const verdict = {
      value,
      isAccepted: false,
      waitsUntil: before ? now + WAIT_MS : -Infinity,
      isReadAtOnce: isFirst,
    };
    this.#verdicts.set(server, verdict);
    return verdict;
  }

  async #readSource(isRefused: boolean): Promise<T> {
    this.#startedAt = this.#clock.monotonic();
    for (const verdict of this.#verdicts.values()) verdict.isReadAtOnce = false;
    const value = await this.#settings.read(isRefused);
    this.set(value);
    return value;
  }
}
