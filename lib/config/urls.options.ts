import { IsAuthAddress, IsServiceAddress } from './rules.js';

/** The service's addresses. Only those that `environment` and `authentication` use are required. */
export class ServiceUrls {
  /** {base_url}. SERVICE_BASE_URL */
  @IsServiceAddress('BASE_URL')
  baseUrl?: string | undefined;

  /** {oauth_base_url}: if set, production OAuth calls go there (docs/service.md#addresses). SERVICE_OAUTH_BASE_URL */
  @IsServiceAddress('OAUTH_BASE_URL')
  oauthBaseUrl?: string | undefined;

  /** {sandbox_url}: `app-token`, and `oauth` without a client certificate. SERVICE_SANDBOX_URL */
  @IsServiceAddress('SANDBOX_URL')
  sandboxUrl?: string | undefined;

  /** {sandbox_mtls_url}: `mtls`, and `oauth` with a client certificate. SERVICE_SANDBOX_MTLS_URL */
  @IsServiceAddress('SANDBOX_MTLS_URL')
  sandboxMtlsUrl?: string | undefined;

  /** {auth_url}. SERVICE_AUTH_URL */
  @IsAuthAddress('AUTH_URL')
  authUrl?: string | undefined;

  /** {sandbox_auth_url}. SERVICE_SANDBOX_AUTH_URL */
  @IsAuthAddress('SANDBOX_AUTH_URL')
  sandboxAuthUrl?: string | undefined;
}
