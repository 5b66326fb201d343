import { Flag, IsSourceOrFunction, IsUuid, OneOf } from './rules.js';
import { type SecretSource } from './secret.js';

/**
 * When a token is renewed:
 * - `ahead`: in the background before it expires, when a call uses the token.
 * - `scheduled`: in the background before it expires, by a timer, even if there are no calls.
 * - `on-expiry`: when a call needs a token and there is no valid one. That call waits for the token request.
 */
export type TokenRefresh = 'ahead' | 'scheduled' | 'on-expiry';

/** OAuth 2.0 client credentials (docs/service.md#oauth). */
export class ServiceOAuthOptions {
  /** The application id, a UUID. SERVICE_CLIENT_ID */
  @IsUuid('CLIENT_ID')
  clientId?: string | undefined;

  /**
   * The client secret, its file, or a function that returns it within 8 s (vault, KMS). If the token endpoint responds with
   * invalid_client, the file is read again, or the function is called again. SERVICE_CLIENT_SECRET,
   * SERVICE_CLIENT_SECRET_FILE
   */
  @IsSourceOrFunction('CLIENT_SECRET')
  clientSecret?: SecretSource | undefined;

  /** When a token is renewed. Default `ahead`. SERVICE_TOKEN_REFRESH */
  @OneOf('TOKEN_REFRESH', 'ahead', 'scheduled', 'on-expiry')
  refresh?: TokenRefresh | undefined;

  /** Present the client certificate to the token endpoint too (RFC 8705). Default false. SERVICE_OAUTH_MTLS */
  @Flag('OAUTH_MTLS')
  mtls?: boolean | undefined;
}
