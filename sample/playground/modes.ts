import { type ServiceAuthentication, type ServiceEnvironment, type ServiceUrls } from 'nestjs-service';

/** A mode of ServiceModule that the page offers. */
export interface PlaygroundMode {
  /** The name of its ServiceModule. */
  name: string;
  title: string;
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  /** The address that its calls go to. */
  address: keyof ServiceUrls;
  /**
   * - Left out: OAuth is enabled for the application, and the module has OAuth credentials, at least for customer tokens.
   * - `disabled`: OAuth is not enabled for the application.
   * - `missing`: OAuth is enabled for the application, but the module has no OAuth credentials.
   */
  oauth?: 'disabled' | 'missing';
}

export const MODES: readonly [PlaygroundMode, ...PlaygroundMode[]] = [
  {
    name: 'production-mtls',
    title: 'Production, mutual TLS',
    environment: 'production',
    authentication: 'mtls',
    address: 'baseUrl',
  },
  {
    name: 'production-oauth',
    title: 'Production, OAuth',
    environment: 'production',
    authentication: 'oauth',
    address: 'oauthBaseUrl',
  },
  {
    name: 'sandbox-mtls',
    title: 'Sandbox, mutual TLS',
    environment: 'sandbox',
    authentication: 'mtls',
    address: 'sandboxMtlsUrl',
  },
  {
    name: 'sandbox-oauth',
    title: 'Sandbox, OAuth',
    environment: 'sandbox',
    authentication: 'oauth',
    address: 'sandboxUrl',
  },
  {
    name: 'sandbox-app-token',
    title: 'Sandbox, app token',
    environment: 'sandbox',
    authentication: 'app-token',
    address: 'sandboxUrl',
  },
  {
    name: 'sandbox-without-oauth',
    title: 'Sandbox, app token, no OAuth',
    environment: 'sandbox',
    authentication: 'app-token',
    address: 'sandboxUrl',
    oauth: 'disabled',
  },
  {
    name: 'sandbox-oauth-missing',
    title: 'Sandbox, app token, no secret',
    environment: 'sandbox',
    authentication: 'app-token',
    address: 'sandboxUrl',
    oauth: 'missing',
  },
];
