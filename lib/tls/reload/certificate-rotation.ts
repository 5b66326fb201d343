import { certificateRefusal } from '../../exchange/response.js';
import { type Outcome } from '../../exchange/fault.js';
import { type Identity } from '../client-identity.js';

/**
 * What requests to one server do while the client certificate rotates. The server may refuse the old certificate before the
 * files of the new one have reached this machine. If the old certificate has worked with this server, it is most likely
 * such a rotation: all requests then wait for the same search for the new certificate, and are not sent with the old one.
 */
export class CertificateRotation {
  readonly #identity: Pick<Identity, 'reloadAfterRefusal'>;
  /** Fingerprint of the certificate with which the last request succeeded. */
  #acceptedFingerprint: string | undefined = undefined;
  #search: Promise<boolean> | undefined = undefined;

  constructor(identity: Pick<Identity, 'reloadAfterRefusal'>) {
    this.#identity = identity;
  }

  /** The search for a new certificate, while one is in progress. Requests wait for it before they are sent. */
  get search(): Promise<boolean> | undefined {
    return this.#search;
  }

  /** A request has succeeded with this certificate. */
  recordSuccess(fingerprint: string | undefined): void {
    this.#acceptedFingerprint = fingerprint;
    // Another server behind the same address still accepts the certificate, so later requests need not wait.
    this.#search = undefined;
  }

  /**
   * Looks for another certificate after the server refused the one of a request. Resolves with whether another one is in use.
   * @param waits false for a request that cannot be sent again: during a rotation it does not wait for the search
   */
  async findOther(
    refused: Parameters<Identity['reloadAfterRefusal']>[0],
    outcome: Outcome,
    waits = true,
  ): Promise<boolean> {
    const isSure = certificateRefusal(outcome) === 'refused';
    const hasWorked = isSure && refused !== undefined && refused.fingerprint256 === this.#acceptedFingerprint;
    // A server that crashed ends the connection without an alert too, which should not cost a call of the tls function.
    const filesOnly = outcome.fault?.kind === 'reset';
    const reloaded = this.#identity.reloadAfterRefusal(refused, hasWorked, filesOnly);
    if (!hasWorked) return reloaded;
    const search = reloaded.finally(() => {
      if (this.#search === search) this.#search = this.#acceptedFingerprint = undefined;
    });
    this.#search ??= search;
    return waits && search;
  }
}
