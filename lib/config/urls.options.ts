import { Option } from './option.js';
import { IsAuthAddress, IsServiceAddress } from './rules.js';

/** The service's addresses. Only those that the environment and authentication use are required. */
export class ServiceUrls {
  /** {base_url}. SERVICE_BASE_URL */
  @Option('BASE_URL', 'address')
  @IsServiceAddress()
  baseUrl?: string | undefined;

  /** {oauth_base_url}: where set, production OAuth calls go there (specification 9.2). SERVICE_OAUTH_BASE_URL */
  @Option('OAUTH_BASE_URL', 'address')
  @IsServiceAddress()
  oauthBaseUrl?: string | undefined;

  /** {sandbox_url}: `app-token`, and `oauth` without a client certificate. SERVICE_SANDBOX_URL */
  @Option('SANDBOX_URL', 'address')
  @IsServiceAddress()
  sandboxUrl?: string | undefined;

  /** {sandbox_mtls_url}: `mtls`, and `oauth` with a client certificate. SERVICE_SANDBOX_MTLS_URL */
  @Option('SANDBOX_MTLS_URL', 'address')
  @IsServiceAddress()
  sandboxMtlsUrl?: string | undefined;

  /** {auth_url}. SERVICE_AUTH_URL */
  @Option('AUTH_URL', 'address')
  @IsServiceAddress()
  @IsAuthAddress()
  authUrl?: string | undefined;

  /** {sandbox_auth_url}. SERVICE_SANDBOX_AUTH_URL */
  @Option('SANDBOX_AUTH_URL', 'address')
  @IsServiceAddress()
  @IsAuthAddress()
  sandboxAuthUrl?: string | undefined;
}
