import { type Authenticator } from '../auth/authenticator.js';
import { systemClock } from '../time/clock.js';
import { type CertificateSummary } from '../errors/index.js';
import {
  certificateRefusal,
  type ReloadableIdentity,
  reloadRefused,
} from '../exchange/certificate-refusal.js';
import { CallCancelled, ExchangeFault, type Outcome } from '../exchange/exchange.types.js';
import { within } from '../time/timers.js';
import { setCredentials, type Call, type CallLimits } from './call.js';
import { faultToError } from './fault-to-error.js';
import { isRepeatable, mayHaveActed } from './retry-policy.js';

export interface CredentialRenewalParts {
  authenticator: Pick<Authenticator, 'renew'>;
  identity: ReloadableIdentity;
  /** The option with the API's address. */
  baseOption: string;
  /** Aborted at the end of a shutdown, just before the connections are closed. */
  closed: AbortSignal;
}

const MAX_REPLAYS = 3;

/**
 * Renews the credentials of one call: its token after a 401, our certificate after it was refused. Each once; the token
 * again only where the new one came from the shared store.
 */
export class CredentialRenewal {
  readonly #parts: CredentialRenewalParts;
  readonly #call: Call;
  readonly #limits: CallLimits;
  #replays = 0;
  #mayReplay = true;
  #reloaded = false;

  constructor(parts: CredentialRenewalParts, call: Call, limits: CallLimits) {
    this.#parts = parts;
    this.#call = call;
    this.#limits = limits;
  }

  /**
   * True where the call can be sent again with other credentials.
   * @param certificate ours, as it was in use
   */
  async renewAfter(outcome: Outcome, certificate: CertificateSummary | undefined): Promise<boolean> {
    const { signal } = this.#limits;
    if (!mayHaveActed(this.#call, outcome)) return this.#renew(outcome, certificate);
    // Also for the next call. Where it fails, the outcome of this one stays what it is; only its caller can end it earlier.
    const isRenewed = await this.#renew(outcome, certificate).catch(() => false);
    if (signal?.aborted && !(signal.reason instanceof CallCancelled)) throw signal.reason;
    return isRenewed && isRepeatable(this.#call);
  }

  async #renew(outcome: Outcome, certificate: CertificateSummary | undefined): Promise<boolean> {
    if (outcome.response?.status === 401 && this.#mayReplay) {
      this.#replays += 1;
      const { signal, endsAt } = this.#limits;
      const wait = { signal, timeoutMs: endsAt - performance.now() };
      const { credentials, url } = this.#call;
      const renewed = await this.#parts.authenticator.renew(credentials, url.origin, wait);
      // An endpoint that revokes all tokens revokes those in the shared store too. The last replay has a new token.
      this.#mayReplay = renewed?.isFromStore === true && this.#replays < MAX_REPLAYS;
      if (renewed) {
        setCredentials(this.#call, renewed.credentials);
        return true;
      }
    }
    if (this.#reloaded || certificateRefusal(outcome) === undefined) return false;
    this.#reloaded = await this.#reload(certificate);
    return this.#reloaded;
  }

  /** Reads the identity again, for as long as the call may take. */
  async #reload(refused: CertificateSummary | undefined): Promise<boolean> {
    const { identity, closed, baseOption } = this.#parts;
    const { signal, endsAt } = this.#limits;
    // The time ran out between two attempts, the first of which did nothing. No connection is at fault.
    const outOfTime = new ExchangeFault({ kind: 'timeout', phase: 'connecting', reusedSocket: true });
    const limit = {
      clock: systemClock,
      timeoutMs: endsAt - performance.now(),
      expired: () => faultToError(outOfTime, this.#call, baseOption),
      signals: [signal, closed],
    };
    return within(limit, (stop) => reloadRefused(identity, refused, stop));
  }
}
