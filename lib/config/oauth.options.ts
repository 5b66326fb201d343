import { Flag, IsSourceOrFunction, IsUuid, OneOf } from './rules.js';
import { type SecretSource } from './secret.js';

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
  clientSecret?: SecretSource | undefined;

  /** Default `ahead`. SERVICE_TOKEN_REFRESH */
  @OneOf('TOKEN_REFRESH', 'ahead', 'scheduled', 'on-expiry')
  refresh?: TokenRefresh | undefined;

  /** Offer the client certificate to the token endpoint too (RFC 8705). Default false. SERVICE_OAUTH_MTLS */
  @Flag('OAUTH_MTLS')
  mtls?: boolean | undefined;
}
