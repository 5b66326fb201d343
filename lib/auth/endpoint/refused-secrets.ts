import { type Clock } from '../../config/clock.js';
import { type Secret } from '../../config/secret.js';
import { type CertificateSummary, ServiceTokenError } from '../../errors/index.js';

/** How long a refusal is remembered. */
const MEMORY_MS = 10_000;
const MAX_SCOPES = 1_000;

interface Refusal {
  secret: Secret;
  certificate?: CertificateSummary;
  until: number;
  error: ServiceTokenError;
}

/**
 * Remembers for 10 s which secret the endpoint refused, so that 10,000 callers do not become 10,000 wrong passwords.
 * What is remembered is the secret and the client certificate of the request: others, after a rotation, are tried at
 * once.
 */
export class RefusedSecrets {
  readonly #clock: Clock;
  /** By scope. An invalid_client concerns all of them: its key is the empty text. */
  readonly #refusals = new Map<string, Refusal>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param certificate the one that the endpoint got with this secret; another one may be in use by now */
  remember(secret: Secret, scope: string, error: ServiceTokenError, certificate?: CertificateSummary): void {
    const key = concernsClient(error) ? '' : scope;
    this.#refusals.delete(key);
    const until = this.#clock.monotonic() + MEMORY_MS;
    this.#refusals.set(key, { secret, certificate, until, error });
    const [oldest] = this.#refusals.keys();
    if (this.#refusals.size > MAX_SCOPES && oldest !== undefined) this.#refusals.delete(oldest);
  }

  /**
   * The refusal again, with the seconds until the endpoint is asked anew; undefined where there was none.
   * @param certificate the one that the endpoint would get now
   */
  find(secret: Secret, scope: string, certificate?: CertificateSummary): ServiceTokenError | undefined {
    for (const key of ['', scope]) {
      const refusal = this.#refusals.get(key);
      if (!refusal || refusal.secret.reveal() !== secret.reveal()) continue;
      if (refusal.certificate?.fingerprint256 !== certificate?.fingerprint256) continue;
      const leftMs = refusal.until - this.#clock.monotonic();
      if (leftMs > 0) return repeat(refusal.error, scope, leftMs);
    }
    return undefined;
  }
}

/** A 403 may be about this customer alone; it must not keep the others from their tokens. */
function concernsClient({ error, status }: ServiceTokenError): boolean {
  return error === 'invalid_client' || (status === 401 && error === undefined);
}

function repeat(first: ServiceTokenError, scope: string, leftMs: number): ServiceTokenError {
  const { code, message, hint, options, error, error_description, status } = first;
  return new ServiceTokenError({
    code,
    message: `${message} This is remembered: the endpoint was not asked again.`,
    hint,
    options,
    error,
    error_description,
    status,
    scope,
    retryAfter: Math.ceil(leftMs / 1000),
  });
}
