import { type ResolvedOptions } from '../config/resolve-options.js';
import { ServiceTokenError } from '../errors/index.js';
import { type WaitOptions, API_SCOPE, type CachedToken } from './access-token.js';
import { type TokenCache } from './token-cache.js';

/** The beginning of the Authorization header of a bearer token (https://www.rfc-editor.org/rfc/rfc6750#section-2.1). */
export const BEARER = 'Bearer ';

/**
 * The secret headers of a call: the app token, the bearer, or both (`sendAppTokenWithBearer`). All calls with the same token
 * share one frozen object.
 */
export type Credentials = Readonly<Record<string, string>>;

/** Gets the credentials of calls. The users of this class count the callers and check their input. */
export class Authenticator {
  readonly #options: ResolvedOptions;
  readonly #tokens: TokenCache | undefined;
  /** The app-token header; empty if no app token is set. */
  readonly #appToken: Credentials;
  /** The credentials of the current token. Calls use the same ones for minutes. */
  #last: { token: CachedToken; credentials: Credentials } | undefined;

  /** @param tokens absent if no OAuth credentials are configured */
  constructor(options: ResolvedOptions, tokens: TokenCache | undefined) {
    const { appToken, appTokenHeader } = options;
    this.#options = options;
    this.#tokens = tokens;
    this.#appToken = Object.freeze(appToken ? { [appTokenHeader]: appToken.reveal() } : {});
  }

  /**
   * Returns the credentials that are at hand, or undefined if a call has to wait for a token. Starts the renewal of the token if
   * that is due.
   */
  getCached(): Credentials | undefined {
    if (this.#options.authentication !== 'oauth') return this.#appToken;
    const token = this.#tokens?.scope(API_SCOPE).getCached();
    return token && this.#withBearer(token);
  }

  /**
   * Returns the credentials, and waits for a token if necessary.
   * @throws as {@link getToken}
   */
  async get(wait?: WaitOptions): Promise<Credentials> {
    return this.getCached() ?? this.#withBearer(await this.getToken(API_SCOPE, wait));
  }

  /** Whether credentials that were taken a moment ago can still be sent. Their token may have expired or been renewed. */
  areStillValid(credentials: Credentials): boolean {
    if (credentials.Authorization === undefined) return true;
    return this.#last?.credentials === credentials && this.#last.token.isAlive;
  }

  /**
   * Gets credentials with another token, for a call that got a 401.
   * @param refused the call's `Authorization` header
   * @returns undefined if there is no other token: the caller gets the 401
   * @throws as {@link getToken}
   */
  async replace(
    { Authorization: refused }: Credentials,
    wait?: WaitOptions,
  ): Promise<Credentials | undefined> {
    if (!refused?.startsWith(BEARER)) return undefined;
    const other = await this.#tokens?.scope(API_SCOPE).replace(refused.slice(BEARER.length), wait);
    return other && this.#withBearer(other);
  }

  /**
   * Returns the token of a scope, which the caller has checked. The token is the cached object itself.
   * @throws ServiceTokenError (`oauth_not_configured` without OAuth credentials), ServiceConnectionError;
   * `signal.reason` if the caller aborts
   */
  async getToken(scope: string, wait?: WaitOptions): Promise<CachedToken> {
    if (!this.#tokens) throw notConfigured(this.#options, scope);
    return this.#tokens.scope(scope).get(wait);
  }

  #withBearer(token: CachedToken): Credentials {
    if (this.#last?.token !== token) {
      const beside = this.#options.sendAppTokenWithBearer ? this.#appToken : {};
      const credentials = Object.freeze({ ...beside, Authorization: BEARER + token.accessToken });
      this.#last = { token, credentials };
    }
    return this.#last.credentials;
  }
}

function notConfigured({ environment, describeOption }: ResolvedOptions, scope: string): ServiceTokenError {
  const authUrl = environment === 'production' ? 'urls.authUrl' : 'urls.sandboxAuthUrl';
  const options = ['oauth.clientId', 'oauth.clientSecret', authUrl];
  const message = 'A token needs OAuth credentials, and there are none.';
  const hint = `Set ${options.map(describeOption).join(', ')}.`;
  return new ServiceTokenError({ code: 'oauth_not_configured', message, hint, options, scope });
}
