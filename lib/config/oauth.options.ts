import { Flag, IsSourceOrFunction, IsUuid, OneOf, WholeNumber } from './rules.js';
import { type SecretValue } from './secret.js';

/**
 * - `ahead`: a token is renewed in the background before it expires, when a call uses it.
 * - `scheduled`: the same by a timer, also without calls.
 * - `on-expiry`: a new token is requested only when there is no valid one.
 */
export type TokenRefresh = 'ahead' | 'scheduled' | 'on-expiry';

/** OAuth 2.0 client credentials (docs/service.md#oauth). */
export class ServiceOAuthOptions {
  /** The application id, a UUID. SERVICE_CLIENT_ID */
  @IsUuid('CLIENT_ID')
  clientId?: string | undefined;

  /**
   * The client secret, its file, or a function that returns it within 8 s (vault, KMS). A file is read again, and a function
   * called again, when the endpoint answers invalid_client. SERVICE_CLIENT_SECRET, SERVICE_CLIENT_SECRET_FILE
   */
  @IsSourceOrFunction('CLIENT_SECRET')
  clientSecret?: SecretValue | (() => string | Promise<string>) | undefined;

  /** Default `ahead`. SERVICE_TOKEN_REFRESH */
  @OneOf('TOKEN_REFRESH', 'ahead', 'scheduled', 'on-expiry')
  refresh?: TokenRefresh | undefined;

  /** Offer the client certificate to the token endpoint too (RFC 8705). Default false. SERVICE_OAUTH_MTLS */
  @Flag('OAUTH_MTLS')
  mtls?: boolean | undefined;
}

/** Sessions of the browser's SDK (docs/service.md#linksdk-parameters). */
export class ServiceLinkSdkOptions {
  /**
   * Seconds that a cached customer token must still be valid to be used for a session; at most half of its lifetime.
   * Default 600. SERVICE_LINK_SDK_MIN_TOKEN_LIFE
   */
  @WholeNumber('LINK_SDK_MIN_TOKEN_LIFE', 0, 86_400, 'seconds')
  minTokenLife?: number | undefined;

  /**
   * `app_token` among the SDK's parameters. False leaves it out if there are OAuth credentials; true makes `appToken`
   * required. Default true, if one is set. SERVICE_LINK_SDK_INCLUDE_APP_TOKEN
   */
  @Flag('LINK_SDK_INCLUDE_APP_TOKEN')
  includeAppToken?: boolean | undefined;

  /**
   * Set it if OAuth is enabled for the application: a session without a customer token would fail,
   * so the module does not start without OAuth credentials. Default false. SERVICE_LINK_SDK_REQUIRE_OAUTH
   */
  @Flag('LINK_SDK_REQUIRE_OAUTH')
  requireOAuth?: boolean | undefined;
}
