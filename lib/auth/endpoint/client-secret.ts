import { type Clock, watching } from '../../config/clock.js';
import { type OAuthSettings } from '../../config/resolved-options.js';
import { type Secret } from '../../config/secret.js';
import { ServiceTokenError } from '../../errors/index.js';
import { within } from '../../exchange/timing.js';

/** Milliseconds for which a first reading counts as new. Longer than a request waits for a lock of a shared store. */
const FIRST_READING_MS = 10_000;
/** Milliseconds for a vault to answer. Less than a token request has, so that the error names the secret. */
const SOURCE_TIMEOUT_MS = 8_000;

/** One reading of the secret. */
export interface SecretReading {
  secret: Secret;
  /** Monotonic milliseconds at which it arrived. */
  at: number;
}

/** Reads the client secret from its source, one reading at a time: callers share the one under way. */
export class ClientSecret {
  readonly canChange: boolean;
  readonly #source: () => Promise<Secret>;
  readonly #clock: Clock;
  #underWay: Promise<SecretReading> | undefined;
  #last: SecretReading | undefined;
  /** One that {@link current} began; others may use it as if they had begun it. */
  #first: SecretReading | undefined;

  constructor(settings: Pick<OAuthSettings, 'clientSecret' | 'clientSecretCanChange'>, clock: Clock) {
    this.#source = settings.clientSecret;
    this.canChange = settings.clientSecretCanChange;
    // Those who wait for a token have timers of their own.
    this.#clock = watching(clock);
  }

  /** The last reading, however old. */
  get last(): SecretReading | undefined {
    return this.#last;
  }

  /**
   * The last reading, however old. Where there is none it reads the secret, and so saves the next {@link read} the work.
   * @throws ServiceTokenError as {@link read}
   */
  async current(): Promise<SecretReading> {
    if (this.#last) return this.#last;
    const reading = await this.read();
    if (reading === this.#last) this.#first = reading;
    return reading;
  }

  /** @throws ServiceTokenError `client_secret_unavailable` where the source throws, gives nothing or takes too long */
  read(): Promise<SecretReading> {
    const first = this.#first;
    if (first && this.#clock.monotonic() - first.at < FIRST_READING_MS) return Promise.resolve(first);
    this.#first = undefined;
    this.#underWay ??= this.#ask().finally(() => (this.#underWay = undefined));
    return this.#underWay;
  }

  /** A reading that began after this one had arrived: readings do not overlap. */
  async readAfter(earlier: SecretReading): Promise<SecretReading> {
    if (this.#last && this.#last !== earlier) return this.#last;
    this.#first = undefined;
    return this.read();
  }

  async #ask(): Promise<SecretReading> {
    const limit = { clock: this.#clock, timeoutMs: SOURCE_TIMEOUT_MS, expired: unavailable };
    // An error of a vault's client may quote the secret, a token of its own or a request.
    const secret = await within(limit, () => this.#source()).catch(() => undefined);
    if (typeof secret?.reveal() !== 'string' || secret.reveal() === '') throw unavailable();
    this.#last = { secret, at: this.#clock.monotonic() };
    return this.#last;
  }
}

function unavailable(): ServiceTokenError {
  return new ServiceTokenError({
    code: 'client_secret_unavailable',
    message:
      'The source of the client secret (oauth.clientSecret) threw, gave no text, or took longer than ' +
      `${SOURCE_TIMEOUT_MS / 1000} s. Its own error is left out because it may quote the secret.`,
    hint: 'Check that what oauth.clientSecret names can be read.',
    options: ['oauth.clientSecret'],
  });
}
