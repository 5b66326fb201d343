import { type ResolvedOptions } from '../config/resolved-options.js';
import { ServiceTokenError } from '../errors/index.js';
import { type Log, SILENT } from '../exchange/io.js';
import { type AccessToken } from './access-token.js';
import { type TokenCache } from './cache/token-cache.js';
import { type WaitOptions } from './cache/waiting-callers.js';
import { API_SCOPE } from './scope.js';

const BEARER = 'Bearer ';

/** The secret headers of a call: the app token, the bearer, or both (`sendAppTokenWithBearer`). One frozen object for one token. */
export type Credentials = Readonly<Record<string, string>>;

/** The credentials that follow a 401. */
export interface RenewedCredentials {
  credentials: Credentials;
  /** Their token is from the shared store: it may be revoked too. */
  isFromStore: boolean;
}

/** Gets the credentials of calls. Its users count callers and check their input. */
export class Authenticator {
  readonly #options: ResolvedOptions;
  readonly #tokens: TokenCache | undefined;
  readonly #log: Log;
  /** The header of the app token in use; empty if no app token is set. */
  #appToken: Credentials = Object.freeze({});
  /** The credentials of the last token, which calls use for minutes. */
  #last: { token: AccessToken; credentials: Credentials } | undefined;

  /** @param tokens absent if no OAuth credentials are configured */
  constructor(options: ResolvedOptions, tokens: TokenCache | undefined, log: Log = SILENT) {
    this.#log = log;
    this.#options = options;
    this.#tokens = tokens;
    this.#takeAppToken();
  }

  /**
   * The credentials, without a promise; undefined if a call has to wait for a token. Begins the renewal of a token that is
   * due.
   */
  use(): Credentials | undefined {
    if (this.#options.authentication !== 'oauth') return this.#appToken;
    const token = this.#tokens?.use(API_SCOPE);
    return token && this.#withBearer(token);
  }

  /**
   * The same, but waits for a token.
   * @throws as {@link token}
   */
  async get(wait?: WaitOptions): Promise<Credentials> {
    return this.use() ?? this.#withBearer(await this.token(API_SCOPE, wait));
  }

  /**
   * For a call that was answered 401: credentials with another token.
   * @param refused the call's `Authorization` header
   * @returns undefined if there is no other token: the caller gets the 401
   * @throws as {@link token}
   */
  async renew(
    { Authorization: refused }: Credentials,
    wait?: WaitOptions,
  ): Promise<RenewedCredentials | undefined> {
    if (this.#options.authentication !== 'oauth' || !refused?.startsWith(BEARER)) return undefined;
    const renewed = await this.#tokens?.renew(API_SCOPE, refused.slice(BEARER.length), wait);
    if (!renewed) return undefined;
    return { credentials: this.#withBearer(renewed.token), isFromStore: renewed.isFromStore };
  }

  /**
   * For a call that was answered 401 or 403: the same credentials with another app token, which is to be judged then.
   * @param refused those of the call
   * @param tried all secrets that it was sent with
   * @returns undefined if they have none, or no other is known
   */
  withOtherAppToken(refused: Credentials, tried: readonly string[]): Credentials | undefined {
    const { appToken, appTokenHeader } = this.#options;
    const other = refused[appTokenHeader] === undefined ? undefined : appToken?.toTry(tried);
    return other === undefined ? undefined : Object.freeze({ ...refused, [appTokenHeader]: other });
  }

  /** All calls use this app token from now on. */
  acceptAppToken(tried: Credentials): void {
    const { appToken, appTokenHeader } = this.#options;
    appToken?.accepted(tried[appTokenHeader], this.#log);
    this.#takeAppToken();
  }

  /** The next calls try this app token. */
  offerAppToken(found: Credentials): void {
    const { appTokenHeader } = this.#options;
    this.#appToken = Object.freeze({ [appTokenHeader]: found[appTokenHeader] });
    this.#last = undefined;
  }

  /** Whether the service has not taken their app token yet. */
  isNewAppToken(credentials: Credentials): boolean {
    const { appToken, appTokenHeader } = this.#options;
    const sent = credentials[appTokenHeader];
    return sent !== undefined && sent !== appToken?.reveal();
  }

  /**
   * The same after the app token was read again, which happens once in 10 s for all calls. A reading that fails is logged.
   */
  async rereadAppToken(refused: Credentials, tried: readonly string[]): Promise<Credentials | undefined> {
    const { appToken, appTokenHeader } = this.#options;
    if (refused[appTokenHeader] === undefined) return undefined;
    await appToken?.readAgain(this.#log);
    return this.withOtherAppToken(refused, tried);
  }

  /**
   * The token of a scope, which the caller has checked: the cached object itself.
   * @throws ServiceTokenError (`oauth_not_configured` without OAuth credentials), ServiceConnectionError;
   * `signal.reason` if the caller aborts
   */
  async token(scope: string, wait?: WaitOptions): Promise<AccessToken> {
    if (!this.#tokens) throw notConfigured(this.#options, scope);
    return this.#tokens.get(scope, wait);
  }

  #takeAppToken(): void {
    const { appToken, appTokenHeader } = this.#options;
    if (!appToken || this.#appToken[appTokenHeader] === appToken.reveal()) return;
    this.#appToken = Object.freeze({ [appTokenHeader]: appToken.reveal() });
    this.#last = undefined;
  }

  #withBearer(token: AccessToken): Credentials {
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
