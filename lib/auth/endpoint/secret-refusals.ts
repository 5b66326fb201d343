import { type Secret } from '../../config/secret.js';
import { type ServiceTokenError } from '../../errors/index.js';
import { type Clock, untilAborted } from '../../time/time.js';
import { API_SCOPE, type TokenCredentials } from '../access-token.js';
import { BackOff } from '../request-limiter.js';
import { stillFailing } from './token-errors.js';

/** A refused secret is not sent again for this time. */
const REMEMBERED_MS = 10_000;
/** The same for health checks, which never stop: those of a thousand replicas would send 100 wrong passwords a second. */
const REMEMBERED_FOR_PROBES_MS = 60_000;
/** The most customers whose pauses are remembered. */
const MAX_CUSTOMERS = 1_000;

interface Refusal {
  error: ServiceTokenError;
  /** Milliseconds of the monotonic clock, as all times here. */
  at: number;
}

/**
 * Remembers for whom the token endpoint has refused the client secret, so that 10,000 callers do not send 10,000 wrong passwords.
 * - The refusal of the api scope concerns all scopes.
 * - If the secret has never been accepted, the refusal of a customer concerns all customers.
 * - If the secret has been accepted, the endpoint may refuse it for one customer only (`unauthorized_client`). It is refused for
 *   all customers once two scopes were refused within 10 s, without a granted token in between. Until then this customer alone
 *   makes a pause of 1 s, doubling to 30 s, and the secret is in doubt: requests with it are sent one at a time, so that a
 *   rotation leads to few wrong passwords.
 * - Customers' refusals do not stop the api scope, whose own request shows whether the secret is wrong.
 */
export class SecretRefusals {
  readonly #clock: Clock;
  /** The secret with which the last token was granted. */
  #accepted?: Secret;
  /** The credentials that were refused last. All that follows is about them. */
  #refused?: TokenCredentials;
  #ofApi?: Refusal;
  #ofAllCustomers?: Refusal;
  /** The last refusal since a token was granted. */
  #last?: { scope: string; at: number };
  /** By scope. The customer that was refused least recently comes first. */
  readonly #ofCustomers = new Map<string, BackOff>();
  /** Pending while a request with a secret in doubt is in flight. */
  #turn?: Promise<void>;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws the refusal of this customer alone, while its pause lasts. */
  throwIfPaused(scope: string, credentials: TokenCredentials): void {
    const { error, remainingMs = 0 } = this.#ofCustomers.get(scope) ?? {};
    if (error && remainingMs > 0 && this.#isRefused(credentials))
      throw stillFailing(error, scope, remainingMs);
  }

  /**
   * Sends a request, unless the refusal of these credentials is remembered for its scope. While the secret is in doubt, waits until
   * no other request with it is in flight.
   * @param isProbe whether only health checks wait
   */
  async send<T>(
    { scope, isProbe, signal }: { scope: string; isProbe?: boolean; signal: AbortSignal },
    credentials: TokenCredentials,
    request: () => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const refusal =
        this.#isRefused(credentials) && (scope === API_SCOPE ? this.#ofApi : this.#ofAllCustomers);
      const rememberedMs = isProbe ? REMEMBERED_FOR_PROBES_MS : REMEMBERED_MS;
      const leftMs = refusal ? refusal.at + rememberedMs - this.#clock.monotonic() : 0;
      if (refusal && leftMs > 0) throw stillFailing(refusal.error, scope, leftMs);
      if (scope === API_SCOPE || !this.#isInDoubt(credentials)) return request();
      if (!this.#turn) break;
      await untilAborted(this.#turn, signal);
    }
    const response = request();
    const end = (): void => (this.#turn = undefined);
    this.#turn = response.then(end, end);
    return response;
  }

  /** Records that the endpoint has granted a token. */
  accept(scope: string, { secret }: TokenCredentials): void {
    this.#accepted = secret;
    this.#ofApi = this.#ofAllCustomers = this.#last = undefined;
    this.#ofCustomers.delete(scope);
  }

  /** Records that the endpoint has refused these credentials. */
  record(scope: string, credentials: TokenCredentials, error: ServiceTokenError): void {
    if (!this.#isRefused(credentials)) {
      this.#ofApi = this.#ofAllCustomers = this.#last = undefined;
      this.#ofCustomers.clear();
      this.#refused = credentials;
    }
    const at = this.#clock.monotonic();
    const last = this.#last;
    const isSecond = last !== undefined && last.scope !== scope && at - last.at < REMEMBERED_MS;
    this.#last = { scope, at };
    if (scope === API_SCOPE) this.#ofApi = { error, at };
    if (scope === API_SCOPE || isSecond || !this.#accepted?.equals(credentials.secret))
      this.#ofAllCustomers = { error, at };
    else this.#pauseCustomer(scope, error);
  }

  #pauseCustomer(scope: string, error: ServiceTokenError): void {
    const pause = this.#ofCustomers.get(scope) ?? new BackOff(this.#clock);
    pause.record(error, 0);
    this.#ofCustomers.delete(scope);
    this.#ofCustomers.set(scope, pause);
    const [oldest] = this.#ofCustomers.keys();
    if (this.#ofCustomers.size > MAX_CUSTOMERS) this.#ofCustomers.delete(oldest);
  }

  #isRefused({ secret, fingerprint256 }: TokenCredentials): boolean {
    return this.#refused?.secret.equals(secret) === true && this.#refused.fingerprint256 === fingerprint256;
  }

  /** Whether the secret was refused for one scope, although it has been accepted before. */
  #isInDoubt(credentials: TokenCredentials): boolean {
    if (!this.#last || !this.#isRefused(credentials) || !this.#accepted?.equals(credentials.secret))
      return false;
    return this.#clock.monotonic() - this.#last.at < REMEMBERED_MS;
  }
}
