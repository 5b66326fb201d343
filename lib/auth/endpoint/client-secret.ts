import { type Clock, watching } from '../../time/clock.js';
import { UnreadableFile } from '../../config/read-file.js';
import { type OAuthSettings } from '../../config/resolved-options.js';
import { type Secret, SOURCE_MS } from '../../config/secret.js';
import { type DescribeOption, ServiceTokenError } from '../../errors/index.js';
import { sleep, within } from '../../time/timers.js';

/** Milliseconds for which a reading counts as new: the source is not asked more often, unless the secret was refused. */
const NEW_MS = 1_000;

/** Milliseconds between two readings while the secret is refused. */
const REREAD_MS = { text: Infinity, file: 1_000, function: 10_000 };

/** Reads the client secret from its source, one reading at a time: callers share the one under way. */
export class ClientSecret {
  readonly #source: () => Promise<Secret>;
  readonly #clock: Clock;
  readonly #describeOption: DescribeOption;
  readonly #rereadMs: number;
  /** The secret that was refused last, and how many readings had begun by then. */
  #refused: { secret: Secret; readings: number } | undefined;
  #underWay: Promise<Secret> | undefined;
  #last: Secret | undefined;
  /** Monotonic milliseconds at which it arrived. */
  #lastAt = -Infinity;
  /** Monotonic milliseconds at which the latest reading began. */
  #begunAt = -Infinity;
  #readings = 0;

  constructor(
    source: () => Promise<Secret>,
    clock: Clock,
    describeOption: DescribeOption,
    sourceKind: OAuthSettings['clientSecretIn'] = 'file',
  ) {
    this.#source = source;
    this.#rereadMs = REREAD_MS[sourceKind];
    this.#describeOption = describeOption;
    // Callers that wait for a token have timers of their own.
    this.#clock = watching(clock);
  }

  /** The last reading, however old. */
  get last(): Secret | undefined {
    return this.#last;
  }

  /**
   * The newest. If the source fails (a vault that is down), the last one goes on to serve.
   * @throws ServiceTokenError `client_secret_unavailable` if the source throws, gives nothing or takes too long, and did so
   * from the beginning
   */
  async read(): Promise<Secret> {
    const last = this.#last;
    if (!last) return this.#readAnew();
    const isNew = this.#clock.monotonic() - this.#lastAt < NEW_MS;
    return isNew || this.#isKnownRefusal(last) ? last : this.#readAnew().catch(() => last);
  }

  /**
   * Another secret than the refused one, or the same if the source still has it. A reading under way may have begun before
   * the rotation: if it brings the same secret, there is one more.
   * @param refusedAt of a refusal that is remembered, in monotonic milliseconds: one reading since then is enough for all
   */
  async readAfter(refused: Secret, refusedAt = Infinity): Promise<Secret> {
    const isOther = (secret?: Secret): secret is Secret => secret !== undefined && !isSame(secret, refused);
    if (isOther(this.#last)) return this.#last;
    const isKnown = this.#isKnownRefusal(refused);
    if (!this.#refused || !isSame(this.#refused.secret, refused))
      this.#refused = { secret: refused, readings: this.#readings };
    const begunAt = this.#begunAt;
    const latest = (await this.#underWay) ?? refused;
    return isOther(latest) || isKnown || begunAt >= refusedAt ? latest : this.#readAnew();
  }

  /**
   * Waits for another secret than the refused one, and reads the source again and again. Returns the same if there will be no
   * other reading until then. The last one is at the end, though sooner after the one before.
   */
  async waitForOther(refused: Secret, endsAt: number, signal: AbortSignal): Promise<Secret> {
    for (;;) {
      if (this.#last && !isSame(this.#last, refused)) return this.#last;
      const [soonest, usual] = [this.#begunAt + this.#rereadMs / 2, this.#begunAt + this.#rereadMs];
      const nextAt = Math.min(usual, Math.max(endsAt, soonest));
      const leftMs = nextAt - this.#clock.monotonic();
      if (!this.#underWay && nextAt > endsAt) return refused;
      if (this.#underWay || leftMs <= 0) await this.#readAnew().catch(() => undefined);
      else await sleep(this.#clock, leftMs, signal);
    }
  }

  /** The endpoint has granted a token. */
  accepted(): void {
    this.#refused = undefined;
  }

  /** Whether it is refused, and has been read again lately. */
  #isKnownRefusal(secret: Secret): boolean {
    if (!this.#refused || !isSame(this.#refused.secret, secret)) return false;
    const isRecent = this.#clock.monotonic() - this.#begunAt < this.#rereadMs;
    return isRecent && this.#readings > this.#refused.readings;
  }

  #readAnew(): Promise<Secret> {
    return (this.#underWay ??= this.#ask().finally(() => (this.#underWay = undefined)));
  }

  async #ask(): Promise<Secret> {
    const unavailable = (message?: string) => unavailableSecret(this.#describeOption, message);
    this.#begunAt = this.#clock.monotonic();
    this.#readings += 1;
    const limit = { clock: this.#clock, timeoutMs: SOURCE_MS, expired: unavailable };
    const secret = await within(limit, () => this.#source()).catch((error: unknown) => {
      throw error instanceof UnreadableFile
        ? unavailable(`oauth.clientSecret: ${error.message}`)
        : unavailable();
    });
    if (typeof secret?.reveal() !== 'string' || secret.reveal() === '') throw unavailable();
    this.#lastAt = this.#clock.monotonic();
    return (this.#last = secret);
  }
}

function isSame(one: Secret, other: Secret): boolean {
  return one.reveal() === other.reveal();
}

/** An error of a vault's client may quote the secret, a token of its own or a request. */
const WITHOUT_ITS_ERROR =
  'The source of the client secret (oauth.clientSecret) threw, gave no text, or took longer than ' +
  `${SOURCE_MS / 1000} s. Its own error is left out because it may quote the secret.`;

function unavailableSecret(describeOption: DescribeOption, message = WITHOUT_ITS_ERROR): ServiceTokenError {
  return new ServiceTokenError({
    code: 'client_secret_unavailable',
    message,
    hint: `Check that what ${describeOption('oauth.clientSecret')} names can be read.`,
    options: ['oauth.clientSecret'],
  });
}
