import { createHash } from 'node:crypto';
import { type Secret } from '../../config/secret.js';
import { ServiceTokenError } from '../../errors/index.js';
import { type Clock } from '../../time/clock.js';

const REMEMBERED_MS = 10_000;
const MAX_REMEMBERED = 1_000;

/** With what a token is requested: a refusal of it says nothing of another. */
export interface TokenCredentials {
  tokenUrl: string;
  clientId: string;
  secret: Secret;
  /** Of the client certificate, where the endpoint gets one. */
  fingerprint256?: string;
}

interface Refusal {
  until: number;
  error: ServiceTokenError;
}

/**
 * Remembers for 10 s what the endpoint refused, so that 10,000 callers do not become 10,000 wrong passwords. Another
 * secret or client certificate is tried at once. Several clients may share it: it keeps hashes, and no secret.
 */
export class RefusedSecrets {
  readonly #clock: Clock;
  readonly #refusals = new Map<string, Refusal>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  remember(sent: TokenCredentials, scope: string, error: ServiceTokenError): void {
    // A 403 may be about this customer alone; it must not keep the others from their tokens.
    const concernsAll = error.error === 'invalid_client' || (error.status === 401 && !error.error);
    const key = keyOf(sent, concernsAll ? ALL_SCOPES : scope);
    this.#refusals.delete(key);
    this.#refusals.set(key, { until: this.#clock.monotonic() + REMEMBERED_MS, error });
    const [oldest] = this.#refusals.keys();
    if (this.#refusals.size > MAX_REMEMBERED && oldest !== undefined) this.#refusals.delete(oldest);
  }

  /**
   * The refusal again, with the seconds until the endpoint is asked anew; undefined where there was none.
   * @param sent what the endpoint would get now
   */
  find(sent: TokenCredentials, scope: string): ServiceTokenError | undefined {
    for (const key of [keyOf(sent, ALL_SCOPES), keyOf(sent, scope)]) {
      const { until = 0, error } = this.#refusals.get(key) ?? {};
      const leftMs = until - this.#clock.monotonic();
      if (!error || leftMs <= 0) continue;
      const message = `${error.message} This is remembered: the endpoint was not asked again.`;
      return new ServiceTokenError({ ...error, message, scope, retryAfter: Math.ceil(leftMs / 1000) });
    }
    return undefined;
  }
}

const ALL_SCOPES = '';

function keyOf({ tokenUrl, clientId, secret, fingerprint256 }: TokenCredentials, scope: string): string {
  const parts = [tokenUrl, clientId, secret.reveal(), fingerprint256 ?? null, scope];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}
