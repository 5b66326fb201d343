import { createHash } from 'node:crypto';
import { type Secret } from '../../config/secret.js';
import { ServiceTokenError } from '../../errors/index.js';
import { type Clock } from '../../time/clock.js';
import { untilAborted } from '../../time/timers.js';

const REMEMBERED_MS = 10_000;
/** A thousand replicas whose health is checked send 17 wrong passwords a second. */
const REMEMBERED_FOR_PROBES_MS = 60_000;
const MAX_REMEMBERED = 1_000;

/** The credentials of a token request. A refusal says nothing about others. */
export interface TokenCredentials {
  tokenUrl: string;
  clientId: string;
  secret: Secret;
  /** Of the client certificate, if the endpoint gets one. */
  fingerprint256?: string;
}

interface Refusal {
  /** Monotonic milliseconds. */
  at: number;
  error: ServiceTokenError;
}

/**
 * Remembers for 10 s what the endpoint refused, so that 10,000 callers do not become 10,000 wrong passwords; for health
 * checks, which have no end, 60 s. Another secret or client certificate is tried at once. Several clients may share it: it keeps hashes, and no secret.
 */
export class RefusedSecrets {
  readonly #clock: Clock;
  readonly #refusals = new Map<string, Refusal>();
  readonly #accepted = new Set<string>();
  /** First requests under way, with credentials that were not accepted yet. They do not reject. */
  readonly #first = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs the request, unless its refusal is remembered. If several clients begin at once with the same credentials and
   * scope, the others wait for the first: a wrong secret is sent once. Within a client, a scope has one request at a time.
   * @throws the refusal; `signal.reason` if it aborts during the wait
   */
  async guard<T>(
    sent: CredentialsKey,
    scope: string,
    { signal, isProbe }: { signal: AbortSignal; isProbe?: boolean },
    request: () => Promise<T>,
  ): Promise<T> {
    const first = this.#accepted.has(sent) ? undefined : this.#first.get(sent + scope);
    if (first) await untilAborted(first, signal);
    const refusal = this.find(sent, scope, isProbe);
    if (refusal) throw refusal;
    if (first || this.#accepted.has(sent)) return request();
    const asked = request();
    const end = (): void => void this.#first.delete(sent + scope);
    this.#first.set(sent + scope, asked.then(() => this.#accept(sent)).then(end, end));
    return asked;
  }

  remember(sent: CredentialsKey, scope: string, error: ServiceTokenError): void {
    // A 403 may be about this customer alone; it must not keep the others from their tokens.
    const concernsAll = error.error === 'invalid_client' || (error.status === 401 && !error.error);
    const key = concernsAll ? sent : sent + scope;
    this.#accepted.delete(key);
    this.#refusals.delete(key);
    this.#refusals.set(key, { at: this.#clock.monotonic(), error });
    forgetOldest(this.#refusals);
  }

  /**
   * The remembered refusal, with the seconds until the endpoint is asked again; undefined if there was none.
   * @param sent stands for the credentials that the endpoint would get now
   */
  find(sent: CredentialsKey, scope: string, isProbe = false): ServiceTokenError | undefined {
    const { at, error } = this.#refusalOf(sent, scope, isProbe) ?? {};
    if (at === undefined || !error) return undefined;
    const message = `${error.message} This is remembered: the endpoint was not asked again.`;
    const leftMs = at + rememberedMs(isProbe) - this.#clock.monotonic();
    return new ServiceTokenError({ ...error, message, scope, retryAfter: Math.ceil(leftMs / 1000) });
  }

  /** Monotonic milliseconds of the remembered refusal. */
  refusedAt(sent: CredentialsKey, scope: string, isProbe = false): number | undefined {
    return this.#refusalOf(sent, scope, isProbe)?.at;
  }

  #refusalOf(sent: CredentialsKey, scope: string, isProbe: boolean): Refusal | undefined {
    const endedAt = this.#clock.monotonic() - rememberedMs(isProbe);
    const refusals = [sent, sent + scope].map((key) => this.#refusals.get(key));
    return refusals.find((refusal) => refusal && refusal.at > endedAt);
  }

  #accept(key: string): void {
    this.#accepted.add(key);
    forgetOldest(this.#accepted);
  }
}

function rememberedMs(isProbe: boolean): number {
  return isProbe ? REMEMBERED_FOR_PROBES_MS : REMEMBERED_MS;
}

function forgetOldest(kept: Map<string, unknown> | Set<string>): void {
  const [oldest] = kept.keys();
  if (kept.size > MAX_REMEMBERED && oldest !== undefined) kept.delete(oldest);
}

/** Stands for credentials, and shows nothing of them. With a scope appended, for that scope alone. */
type CredentialsKey = string;

export function keyOf({ tokenUrl, clientId, secret, fingerprint256 }: TokenCredentials): CredentialsKey {
  const parts = [tokenUrl, clientId, secret.reveal(), fingerprint256 ?? null];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}
