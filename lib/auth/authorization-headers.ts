import { type ResolvedOptions } from '../config/resolved-options.js';
import { type AccessToken } from './access-token.js';

const BEARER = 'Bearer ';

type Settings = Pick<
  ResolvedOptions,
  'authentication' | 'appToken' | 'appTokenHeader' | 'sendAppTokenWithBearer'
>;

/** The headers that authenticate a call, by mode (specification 5.2.5, 5.2.6, 5.4.7). */
export class AuthorizationHeaders {
  /** Sent with each call, whatever the token: the app token, or nothing. */
  readonly #fixed: Readonly<Record<string, string>>;
  /** The headers of the last token: calls use the same one for minutes. */
  #last: { token: AccessToken; headers: Readonly<Record<string, string>> } | undefined;

  constructor({ authentication, appToken, appTokenHeader, sendAppTokenWithBearer }: Settings) {
    const sendsAppToken = appToken !== undefined && (authentication !== 'oauth' || sendAppTokenWithBearer);
    this.#fixed = Object.freeze(sendsAppToken ? { [appTokenHeader]: appToken.reveal() } : {});
  }

  withoutBearer(): Readonly<Record<string, string>> {
    return this.#fixed;
  }

  /** The same frozen object for the same token. */
  withBearer(token: AccessToken): Readonly<Record<string, string>> {
    if (this.#last?.token !== token) {
      const headers = Object.freeze({ ...this.#fixed, Authorization: BEARER + token.accessToken });
      this.#last = { token, headers };
    }
    return this.#last.headers;
  }
}

/** The token of an Authorization header; undefined where it is no bearer. */
export function bearerOf(authorization: string): string | undefined {
  return authorization.startsWith(BEARER) ? authorization.slice(BEARER.length) : undefined;
}
