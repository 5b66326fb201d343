import { type ServiceAuthentication, type ServiceEnvironment, type ServiceUrls } from 'nestjs-service';

/** One of the five modes of the module; each has OAuth credentials too, for customer tokens. */
export interface PlaygroundMode {
  /** The name of its ServiceModule. */
  name: string;
  title: string;
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  /** Where its calls go. */
  address: keyof ServiceUrls;
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
];
