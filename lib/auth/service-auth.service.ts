import { type Agent } from 'node:https';
import { Injectable } from '@nestjs/common';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type CertificateSummary, ServiceTokenError } from '../errors/index.js';
import { followSignal } from '../exchange/call-limits.js';
import { untilAborted } from '../time/timers.js';
import { type Identity, type IdentityStatus } from '../tls/client-identity.js';
import { type AccessToken, type TokenStatus } from './access-token.js';
import { API_SCOPE, checkScope, customerScope } from './scope.js';
import { type TokenCache } from './cache/token-cache.js';
import { checkedWait, type TokenOptions, type WaitOptions } from './cache/waiting-callers.js';

const BEARER = 'Bearer ';

/** The parts of the client identity that are used here. */
export type IdentityView = Pick<Identity, 'httpsAgent' | 'certificate' | 'status' | 'reload'>;

type CallHeaders = Readonly<Record<string, string>>;

/** Headers for a replay after a 401. */
export interface RenewedHeaders {
  headers: CallHeaders;
  /** Their token is one of the shared store: it may be revoked too. */
  isFromStore: boolean;
}

/** Runs calls so that a shutdown waits for them. `run` rejects once the module has ended. */
interface CallCount {
  /** Aborted when the shutdown's time is over. */
  readonly closed: AbortSignal;
  run<T>(work: () => Promise<T>): Promise<T>;
}

/** What authenticates calls: tokens, headers and the mTLS identity, for the module and for the host's own clients. */
@Injectable()
export class ServiceAuthService {
  readonly #options: ResolvedOptions;
  readonly #identity: IdentityView;
  readonly #tokens: TokenCache | undefined;
  readonly #calls: CallCount;
  /** The origin of the API's configured address. */
  readonly #origin: string;
  /** The app token's header; empty where no app token is set. */
  readonly #appToken: Readonly<Record<string, string>>;
  /** The headers with the last token: calls use the same one for minutes. */
  #last: { token: AccessToken; alone: CallHeaders; withAppToken: CallHeaders } | undefined;

  /**
   * @param tokens absent where no OAuth credentials are configured
   * @internal
   */
  constructor(
    options: ResolvedOptions,
    identity: IdentityView,
    tokens: TokenCache | undefined,
    calls: CallCount,
  ) {
    this.#options = options;
    this.#identity = identity;
    this.#tokens = tokens;
    this.#calls = calls;
    const { appToken, appTokenHeader, addresses } = options;
    this.#origin = new URL(addresses.baseUrl).origin;
    this.#appToken = Object.freeze(appToken ? { [appTokenHeader]: appToken.reveal() } : {});
  }

  /**
   * A token from the cache, or a new one (docs/service.md#tokens).
   * @param scope `api` or `customer.<customer_id>`
   * @throws ServiceRequestError for another scope, and for a time limit or signal that is none; ServiceTokenError or
   * ServiceConnectionError where there is no token (`oauth_not_configured` without OAuth credentials); `signal.reason`
   * where the caller aborts
   */
  async getToken(scope: string, options?: TokenOptions): Promise<AccessToken> {
    return this.#copyOf(checkScope(scope), options);
  }

  /** The token for backend calls. */
  async getApiToken(options?: TokenOptions): Promise<AccessToken> {
    return this.#copyOf(API_SCOPE, options);
  }

  /** A token for one customer's SDK session, with at least `linkSdk.minTokenLife` (or half of its life) left. */
  async getCustomerToken(customerId: string, options?: TokenOptions): Promise<AccessToken> {
    return this.#copyOf(customerScope(customerId), options);
  }

  /**
   * The token of a scope, the cached object itself. Scope and options are checked by the caller.
   * @internal
   */
  async tokenFor(scope: string, wait: WaitOptions): Promise<AccessToken> {
    return this.#counted(wait, (followed) => this.#get(scope, followed));
  }

  /**
   * The headers that authenticate a call of the API at its configured address: the app token for `mtls` and `app-token`,
   * the bearer for `oauth`, with the app token where calls to that address carry both (docs/service.md#authentication).
   * @throws as {@link getToken}
   */
  async authorizationHeaders(options?: TokenOptions): Promise<Record<string, string>> {
    return this.#counted(checkedWait(options), async (followed) => ({
      ...(this.peekHeaders() ?? (await this.headers(followed))),
    }));
  }

  /**
   * The same for a call of the module itself: it is counted already. Waits for a token. Frozen.
   * @internal
   */
  async headers(wait?: WaitOptions, origin = this.#origin): Promise<CallHeaders> {
    return this.#withBearer(await this.#get(API_SCOPE, wait), origin);
  }

  /**
   * The headers without a promise; undefined where a call has to wait for a token. Frozen.
   * @param origin where the call goes
   * @internal
   */
  peekHeaders(origin = this.#origin): CallHeaders | undefined {
    if (this.#options.authentication !== 'oauth') return this.#appToken;
    const token = this.#tokens?.peek(API_SCOPE);
    return token && this.#withBearer(token, origin);
  }

  /**
   * For a call that was answered 401: headers with another token.
   * @param usedAuthorization the Authorization header that was refused
   * @param origin where the call goes
   * @returns undefined where there is no other token: the caller gets the 401
   * @throws as {@link getToken}
   * @internal
   */
  async renewedHeaders(
    usedAuthorization: string,
    wait?: WaitOptions,
    origin = this.#origin,
  ): Promise<RenewedHeaders | undefined> {
    if (this.#options.authentication !== 'oauth' || !usedAuthorization.startsWith(BEARER)) return undefined;
    const used = usedAuthorization.slice(BEARER.length);
    const renewed = await this.#tokens?.forceRefresh(API_SCOPE, used, wait);
    return renewed && { headers: this.#withBearer(renewed.token, origin), isFromStore: renewed.isFromStore };
  }

  /**
   * For health checks: whether an api token is at hand; undefined without OAuth credentials. Begins no request.
   * @internal
   */
  get hasApiToken(): boolean | undefined {
    return this.#tokens && this.#tokens.status(API_SCOPE) !== undefined;
  }

  /**
   * For health checks: an api token, by one request where none is at hand.
   * @throws as {@link getToken}
   * @internal
   */
  async requestApiTokenOnce(wait: WaitOptions): Promise<void> {
    await this.tokenFor(API_SCOPE, { ...wait, once: true });
  }

  /** Drops a token that does not work, if it is still the cached one. */
  invalidate(accessToken: string): void {
    this.#tokens?.invalidate(accessToken);
  }

  /** The module's https.Agent with the client certificate: one object, also across certificate reloads. */
  get httpsAgent(): Agent {
    return this.#identity.httpsAgent;
  }

  /** The client certificate in use; undefined where none is configured. */
  get certificate(): CertificateSummary | undefined {
    return this.#identity.certificate;
  }

  /**
   * For health checks: `healthy` (false once the certificate has expired), `daysLeft` until then, and
   * `lastReloadFault` while the newest files, or the function's newest answer, cannot be used.
   */
  get identityStatus(): IdentityStatus {
    return this.#identity.status;
  }

  /**
   * For health checks: the times of the api token in the cache; undefined while there is none that is valid, and where
   * calls need none (`mtls`, `app-token`) and nobody asked for it. Never requests one.
   */
  get apiTokenStatus(): TokenStatus | undefined {
    return this.#tokens?.status(API_SCOPE);
  }

  /** Reads the certificate and key anew, for example after a vault rotated them; true where another one is in use. */
  async reloadCertificate(): Promise<boolean> {
    return this.#calls.run(() => untilAborted(this.#identity.reload(), this.#calls.closed));
  }

  /** Runs what a host asks for: a call under way that it may abort. */
  async #counted<T>(wait: WaitOptions, work: (wait: WaitOptions) => Promise<T>): Promise<T> {
    const { signal, release } = followSignal(wait.signal);
    return this.#calls.run(() => work({ ...wait, signal })).finally(release);
  }

  /** A copy, as a host may change it and the next caller gets the cached one. */
  async #copyOf(scope: string, options?: TokenOptions): Promise<AccessToken> {
    const token = await this.tokenFor(scope, checkedWait(options));
    return { ...token, expiresAt: new Date(token.expiresAt) };
  }

  async #get(scope: string, wait?: WaitOptions): Promise<AccessToken> {
    if (!this.#tokens) throw notConfigured(this.#options, scope);
    return this.#tokens.get(scope, wait);
  }

  /** The same frozen object for the same token and origin. */
  #withBearer(token: AccessToken, origin: string): CallHeaders {
    if (this.#last?.token !== token) {
      const bearer = { Authorization: BEARER + token.accessToken };
      const withAppToken = Object.freeze({ ...this.#appToken, ...bearer });
      this.#last = { token, alone: Object.freeze(bearer), withAppToken };
    }
    return this.#options.addresses.appTokenOrigins.has(origin) ? this.#last.withAppToken : this.#last.alone;
  }
}

function notConfigured({ environment }: ResolvedOptions, scope: string): ServiceTokenError {
  const authUrl = environment === 'production' ? 'urls.authUrl' : 'urls.sandboxAuthUrl';
  const options = ['oauth.clientId', 'oauth.clientSecret', authUrl];
  const message = 'A token needs OAuth credentials, and there are none.';
  const hint = `Set ${options.join(', ')}.`;
  return new ServiceTokenError({ code: 'oauth_not_configured', message, hint, options, scope });
}
