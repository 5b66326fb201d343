import { type Clock, watching } from '../../time/clock.js';
import { UnreadableFile } from '../../config/read-file.js';
import { type Secret, SOURCE_MS } from '../../config/secret.js';
import { type DescribeOption, ServiceTokenError } from '../../errors/index.js';
import { within } from '../../time/timers.js';

/** Milliseconds for which a reading counts as new: the source is not asked more often, unless the secret was refused. */
const NEW_MS = 1_000;

/** Reads the client secret from its source, one reading at a time: callers share the one under way. */
export class ClientSecret {
  readonly #source: () => Promise<Secret>;
  readonly #clock: Clock;
  readonly #describeOption: DescribeOption;
  #underWay: Promise<Secret> | undefined;
  #last: Secret | undefined;
  /** Monotonic milliseconds at which it arrived. */
  #lastAt = -Infinity;
  /** Monotonic milliseconds at which the latest reading began. */
  #begunAt = -Infinity;

  constructor(source: () => Promise<Secret>, clock: Clock, describeOption: DescribeOption) {
    this.#source = source;
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
    return isNew ? last : this.#readAnew().catch(() => last);
  }

  /**
   * Another secret than the refused one, or the same if the source still has it. A reading under way may have begun before
   * the rotation: if it brings the same secret, there is one more.
   * @param refusedAt of a refusal that is remembered, in monotonic milliseconds: one reading since then is enough for all
   */
  async readAfter(refused: Secret, refusedAt = Infinity): Promise<Secret> {
    const isOther = (secret?: Secret): secret is Secret =>
      secret !== undefined && secret.reveal() !== refused.reveal();
    if (isOther(this.#last)) return this.#last;
    const begunAt = this.#begunAt;
    const latest = (await this.#underWay) ?? refused;
    return isOther(latest) || begunAt >= refusedAt ? latest : this.#readAnew();
  }

  #readAnew(): Promise<Secret> {
    return (this.#underWay ??= this.#ask().finally(() => (this.#underWay = undefined)));
  }

  async #ask(): Promise<Secret> {
    const unavailable = (message?: string) => unavailableSecret(this.#describeOption, message);
    this.#begunAt = this.#clock.monotonic();
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
