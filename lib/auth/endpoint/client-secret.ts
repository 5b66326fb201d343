import { type Clock } from '../../config/clock.js';
import { type OAuthSettings } from '../../config/resolved-options.js';
import { type Secret } from '../../config/secret.js';
import { ServiceTokenError } from '../../errors/index.js';
import { within } from '../../exchange/timing.js';

/** Milliseconds for a vault to answer. Less than a token request has, so that the error names the secret. */
const SOURCE_DEADLINE_MS = 8_000;

/** One reading of the secret. */
export interface SecretReading {
  secret: Secret;
  /** Counts the readings, from 1. */
  number: number;
  /** Monotonic milliseconds at which it arrived. */
  at: number;
}

/** Reads the client secret from its source; callers at the same time share one reading. */
export class ClientSecret {
  readonly canChange: boolean;
  readonly #read: () => Promise<Secret>;
  readonly #clock: Clock;
  #begun = 0;
  #underWay: { number: number; reading: Promise<SecretReading> } | undefined;
  #last: SecretReading | undefined;

  constructor(settings: Pick<OAuthSettings, 'clientSecret' | 'clientSecretCanChange'>, clock: Clock) {
    this.#read = settings.clientSecret;
    this.canChange = settings.clientSecretCanChange;
    this.#clock = clock;
  }

  /** The last reading, however old. */
  get last(): SecretReading | undefined {
    return this.#last;
  }

  /** @throws ServiceTokenError `client_secret_unavailable` where the source throws, gives nothing or takes too long */
  read(): Promise<SecretReading> {
    return this.#underWay?.reading ?? this.#begin();
  }

  /** A reading that began later than this one. */
  readAfter(earlier: SecretReading): Promise<SecretReading> {
    if (this.#last && this.#last.number > earlier.number) return Promise.resolve(this.#last);
    if (this.#underWay && this.#underWay.number > earlier.number) return this.#underWay.reading;
    return this.#begin();
  }

  #begin(): Promise<SecretReading> {
    this.#begun += 1;
    const underWay = { number: this.#begun, reading: this.#ask(this.#begun) };
    this.#underWay = underWay;
    const done = (): void => {
      if (this.#underWay === underWay) this.#underWay = undefined;
    };
    underWay.reading.then(done, done);
    return underWay.reading;
  }

  async #ask(number: number): Promise<SecretReading> {
    const clock = this.#clock;
    let secret: Secret;
    try {
      secret = await within({ clock, timeoutMs: SOURCE_DEADLINE_MS, expired: unavailable }, () =>
        this.#read(),
      );
      if (typeof secret.reveal() !== 'string' || secret.reveal() === '') throw unavailable();
    } catch {
      // An error of a vault's client may quote the secret, a token of its own or a request.
      throw unavailable();
    }
    const reading = { secret, number, at: clock.monotonic() };
    if (number > (this.#last?.number ?? 0)) this.#last = reading;
    return reading;
  }
}

function unavailable(): ServiceTokenError {
  return new ServiceTokenError({
    code: 'client_secret_unavailable',
    message:
      'The source of the client secret (oauth.clientSecret) threw, gave no text, or took longer than ' +
      `${SOURCE_DEADLINE_MS / 1000} s; its own error is left out because it may quote the secret`,
  });
}
