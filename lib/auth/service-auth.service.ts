import { type Agent } from 'node:https';
import { type SecureContext } from 'node:tls';
import { Injectable } from '@nestjs/common';
import { type CertificateSummary } from '../errors/index.js';
import { checkSignal, checkTimeout } from '../config/http.options.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { untilAborted } from '../time/time.js';
import { type Identity } from '../tls/client-identity.js';
import { type IdentityStatus } from '../tls/identity-source.js';
import {
  type AccessToken,
  type TokenOptions,
  type TokenStatus,
  type WaitOptions,
  API_SCOPE,
  checkScope,
  customerScope,
} from './access-token.js';
import { type Authenticator } from './authenticator.js';
import { type TokenCache } from './token-cache.js';

/** Tokens, authenticating headers and the mTLS identity, for the host's own clients too. */
@Injectable()
export class ServiceAuthService {
  readonly #authenticator: Authenticator;
  readonly #identity: Identity;
  readonly #tokens: TokenCache | undefined;
  readonly #calls: Pick<CallsInFlight, 'closed' | 'run'>;

  /**
   * @param tokens absent if no OAuth credentials are configured
   * @internal
   */
  constructor(
    authenticator: Authenticator,
    identity: Identity,
    tokens: TokenCache | undefined,
    calls: Pick<CallsInFlight, 'closed' | 'run'>,
  ) {
    this.#authenticator = authenticator;
    this.#identity = identity;
    this.#tokens = tokens;
    this.#calls = calls;
  }

  /**
   * A token from the cache, or a new one (docs/service.md#tokens).
   * @param scope `api` or `customer.<customer_id>`
   * @throws ServiceRequestError for another scope, or a time limit or signal that is not valid; ServiceTokenError or
   * ServiceConnectionError if no token can be obtained (`oauth_not_configured` without OAuth credentials); `signal.reason`
   * if the caller aborts
   */
  async getToken(scope: string, options?: TokenOptions): Promise<AccessToken> {
    return this.#getCopy(checkScope(scope), options);
  }

  /**
   * The token for backend calls.
   * @throws as {@link getToken}
   */
  async getApiToken(options?: TokenOptions): Promise<AccessToken> {
    return this.#getCopy(API_SCOPE, options);
  }

  /**
   * A token for one customer's SDK session. At least `linkSdk.minTokenLife` seconds, or half of its lifetime, are left.
   * @throws as {@link getToken}
   */
  async getCustomerToken(customerId: string, options?: TokenOptions): Promise<AccessToken> {
    return this.#getCopy(customerScope(customerId), options);
  }

  /**
   * The headers that authenticate a call of the API: the app token for `mtls` and `app-token`, the bearer for `oauth`, with
   * the app token if `sendAppTokenWithBearer` is set (docs/service.md#authentication).
   * @throws as {@link getToken}
   */
  async authorizationHeaders(options?: TokenOptions): Promise<Record<string, string>> {
    const get = (wait: WaitOptions) => this.#authenticator.get(wait);
    return { ...(await this.#runCounted(options, get)) };
  }

  /** Drops a token that does not work, if it is still cached. */
  invalidate(accessToken: string): void {
    this.#tokens?.invalidate(accessToken);
  }

  /** The module's https.Agent with the client certificate. It stays the same object when the certificate is reloaded. */
  get httpsAgent(): Agent {
    return this.#identity.httpsAgent;
  }

  /**
   * The current client certificate, its key and `tls.chain`, for clients that take no https.Agent, such as fetch
   * (docs/recipes.md). Another one after a reload: take it for each connection, with `rejectUnauthorized: true`.
   */
  get secureContext(): SecureContext {
    return this.#identity.loaded.apiContext;
  }

  /** The client certificate in use; undefined if there is none. */
  get certificate(): CertificateSummary | undefined {
    return this.#identity.certificate;
  }

  /**
   * For health checks: the `certificate` that ends first among those in `tls.certificate`, `daysLeft` until then, `healthy`
   * (false afterwards, and before they are valid), and `lastReloadFault` while the newest files, or what the function returned last, cannot be used.
   */
  get identityStatus(): IdentityStatus {
    return this.#identity.status;
  }

  /**
   * For health checks: the times of the cached api token; undefined without a valid one, for example if calls need no token
   * (`mtls`, `app-token`). Never requests one.
   */
  get apiTokenStatus(): TokenStatus | undefined {
    return this.#tokens?.scope(API_SCOPE).status;
  }

  /**
   * Reads certificate and key again, for example after a vault rotated them. Resolves with true if another one is in use.
   * @throws ServiceConnectionError `connection_closed` if the module ends meanwhile
   */
  async reloadCertificate(): Promise<boolean> {
    return this.#calls.run(() => untilAborted(this.#identity.reload(), this.#calls.closed));
  }

  /** Checks the options, and counts the work as a call in flight, which a shutdown waits for. */
  async #runCounted<T>(options: TokenOptions = {}, work: (wait: WaitOptions) => Promise<T>): Promise<T> {
    const { signal, once } = options;
    const timeoutMs = checkTimeout(options.timeout);
    checkSignal(signal);
    return this.#calls.run(() => work({ signal, timeoutMs, once }));
  }

  /** Returns a copy, because the host application may change it, and other callers share the cached object. */
  async #getCopy(scope: string, options?: TokenOptions): Promise<AccessToken> {
    const token = await this.#runCounted(options, (wait) => this.#authenticator.getToken(scope, wait));
    const { accessToken, tokenType, expiresAt } = token;
    return { accessToken, tokenType, scope, expiresAt: new Date(expiresAt) };
  }
}
