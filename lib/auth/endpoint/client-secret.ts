import { type Clock, watching, sleep } from '../../time/time.js';
import { readInTime, type Secret } from '../../config/secret.js';
import { type OAuthSettings } from '../../config/resolve-options.js';
import { type DescribeOption, ServiceTokenError } from '../../errors/index.js';
import { SECRET_UNAVAILABLE } from './token-errors.js';

/** A secret that was read less than this time ago is not read again, unless it was refused. Milliseconds. */
const NEW_MS = 1_000;

/** Milliseconds between two readings while the secret is refused, by the kind of its source. */
const REREAD_MS = { text: Infinity, file: 1_000, function: 10_000 };

/** Reads the client secret from its source: text, file or function. Callers that come during a reading share its result. */
export class ClientSecret {
  readonly #source: () => Promise<Secret>;
  readonly #clock: Clock;
  readonly #describeOption: DescribeOption;
  readonly #rereadMs: number;
  /** The secret that was refused last, and how many readings had started by then. */
  #refused: { secret: Secret; readings: number } | undefined;
  #pending: Promise<Secret> | undefined;
  #last: Secret | undefined;
  /** When the last secret arrived, in milliseconds of the monotonic clock. */
  #lastAt = -Infinity;
  /** When the latest reading started, in milliseconds of the monotonic clock. */
  #startedAt = -Infinity;
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
    // The callers' own timers keep the process running, so these need not.
    this.#clock = watching(clock);
  }

  /** The secret that was read last, however long ago. */
  get last(): Secret | undefined {
    return this.#last;
  }

  /**
   * Reads the newest secret. If the source fails, for example because a vault is down, returns the last secret.
   * @throws ServiceTokenError `client_secret_unavailable` if the source throws, returns nothing or takes too long, and there is
   * no last secret
   */
  async read(): Promise<Secret> {
    const last = this.#last;
    if (!last) return this.#readSource();
    const isNew = this.#clock.monotonic() - this.#lastAt < NEW_MS;
    return isNew || this.#isKnownRefusal(last) ? last : this.#readSource().catch(() => last);
  }

  /**
   * Reads the secret again after a refusal. Resolves with the same secret if the source still has it. A reading in progress may
   * have started before the rotation, so if it returns the same secret, the source is read once more.
   * @param refusedAt when a remembered refusal happened, in milliseconds of the monotonic clock: one reading since then is
   * enough for all callers
   */
  async readAfterRefusal(refused: Secret, refusedAt = Infinity): Promise<Secret> {
    const isOther = (secret?: Secret): secret is Secret => secret !== undefined && !secret.equals(refused);
    if (isOther(this.#last)) return this.#last;
    const isKnown = this.#isKnownRefusal(refused);
    if (!this.#refused || !this.#refused.secret.equals(refused))
      this.#refused = { secret: refused, readings: this.#readings };
    const startedAt = this.#startedAt;
    const latest = (await this.#pending) ?? refused;
    return isOther(latest) || isKnown || startedAt >= refusedAt ? latest : this.#readSource();
  }

  /**
   * Reads the source again and again until it has another secret than the refused one. Returns the refused secret if no reading
   * fits before `endsAt` any more. The last reading is at `endsAt`, even if the time since the previous one is shorter.
   */
  async waitForOther(refused: Secret, endsAt: number, signal: AbortSignal): Promise<Secret> {
    for (;;) {
      if (this.#last && !this.#last.equals(refused)) return this.#last;
      const [soonest, usual] = [this.#startedAt + this.#rereadMs / 2, this.#startedAt + this.#rereadMs];
      const nextReadingAt = Math.min(usual, Math.max(endsAt, soonest));
      const leftMs = nextReadingAt - this.#clock.monotonic();
      if (!this.#pending && nextReadingAt > endsAt) return refused;
      if (this.#pending || leftMs <= 0) await this.#readSource().catch(() => undefined);
      else await sleep(this.#clock, leftMs, signal);
    }
  }

  /** Forgets the refusal, because the endpoint has granted a token. */
  forgetRefusal(): void {
    this.#refused = undefined;
  }

  /** Whether this secret was refused, and the source has been read again since then, not long ago. */
  #isKnownRefusal(secret: Secret): boolean {
    if (!this.#refused || !this.#refused.secret.equals(secret)) return false;
    const isRecent = this.#clock.monotonic() - this.#startedAt < this.#rereadMs;
    return isRecent && this.#readings > this.#refused.readings;
  }

  #readSource(): Promise<Secret> {
    return (this.#pending ??= this.#readOnce().finally(() => (this.#pending = undefined)));
  }

  async #readOnce(): Promise<Secret> {
    this.#startedAt = this.#clock.monotonic();
    this.#readings += 1;
    try {
      const secret = await readInTime(this.#source, this.#clock);
      if (!secret.reveal()) throw new Error('it is empty.');
      this.#lastAt = this.#clock.monotonic();
      return (this.#last = secret);
    } catch (error) {
      throw unavailableSecret(this.#describeOption, (error as Error).message);
    }
  }
}

function unavailableSecret(describeOption: DescribeOption, reason: string): ServiceTokenError {
  return new ServiceTokenError({
    code: SECRET_UNAVAILABLE,
    message: `The client secret cannot be read. oauth.clientSecret: ${reason}`,
    hint: `Check that what ${describeOption('oauth.clientSecret')} names can be read.`,
    options: ['oauth.clientSecret'],
  });
}
