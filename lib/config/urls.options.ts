import { IsAuthAddress, IsServiceAddress } from './rules.js';

/** The service's addresses. Only those that `environment` and `authentication` use are required. */
export class ServiceUrls {
  /** The API in production, {base_url}, for example `https://api.service.example`. SERVICE_BASE_URL */
  @IsServiceAddress('BASE_URL')
  baseUrl?: string | undefined;

  /**
   * The API in production for calls with OAuth, {oauth_base_url}. If it is not set, they go to `baseUrl`
   * (docs/service.md#addresses). SERVICE_OAUTH_BASE_URL
   */
  @IsServiceAddress('OAUTH_BASE_URL')
  oauthBaseUrl?: string | undefined;

  /** The API in the sandbox, {sandbox_url}, for `app-token`, and for `oauth` without a client certificate. SERVICE_SANDBOX_URL */
  @IsServiceAddress('SANDBOX_URL')
  sandboxUrl?: string | undefined;

  /** The API in the sandbox, {sandbox_mtls_url}, for `mtls`, and for `oauth` with a client certificate. SERVICE_SANDBOX_MTLS_URL */
  @IsServiceAddress('SANDBOX_MTLS_URL')
  sandboxMtlsUrl?: string | undefined;

  /** The token endpoint in production, {auth_url}, without `/oauth2/token`. SERVICE_AUTH_URL */
  @IsAuthAddress('AUTH_URL')
  authUrl?: string | undefined;

  /** The token endpoint in the sandbox, {sandbox_auth_url}, without `/oauth2/token`. SERVICE_SANDBOX_AUTH_URL */
  @IsAuthAddress('SANDBOX_AUTH_URL')
  sandboxAuthUrl?: string | undefined;
}
