import { type ServiceEnvironment } from '../config/options.js';
import { type CertificateRequest } from './certificate-authority.js';
import { type TlsAlert } from './tls-alert.js';

/**
 * Where a request arrived: {base_url}, {oauth_base_url}, {sandbox_url}, {sandbox_mtls_url}, or one of the two token
 * endpoints ({auth_url}, {sandbox_auth_url}: see the request's `environment`).
 */
export type SimulatorFace = 'base' | 'oauth-base' | 'sandbox' | 'sandbox-mtls' | 'token';

/** The keys of the six addresses, as in `ServiceModuleOptions.urls`. */
export type SimulatorAddress =
  'baseUrl' | 'oauthBaseUrl' | 'sandboxUrl' | 'sandboxMtlsUrl' | 'authUrl' | 'sandboxAuthUrl';

export interface SimulatorOptions {
  /** Fixed ports, by address. Default: free ones. */
  ports?: Partial<Record<SimulatorAddress, number>>;
  /** A path that every address ends in, for example `/api`. Default: none. */
  basePath?: string;
  /** Seconds that access tokens live. Default 3600. */
  tokenLifetime?: number;
  /** The application id. Default: a random UUID. */
  clientId?: string;
  /** Default: random, with characters that break clients which do not form-encode it. */
  clientSecret?: string;
  /** Default: random. */
  appToken?: string;
  /** Default `service-app-token`. */
  appTokenHeader?: string;
  /** Milliseconds before each answer, for all servers or by server. Default 0. */
  delayMs?: number | Partial<Record<SimulatorFace, number>>;
  /** Milliseconds that an idle connection is kept. Default 5,000. */
  keepAliveTimeoutMs?: number;
  /** Default true. When false, no tokens are issued and bearers are refused (specification 5.1.2). */
  oauth?: { enabled: boolean };
  /** Accept an app token and a bearer in one call. Default false: such calls are answered with 400. */
  acceptBoth?: boolean;
  /**
   * Tokens that are requested with a client certificate only work together with it (RFC 8705, 3). Default false.
   */
  certificateBoundTokens?: boolean;
  /**
   * {base_url} demands a client certificate from every caller. Default false: as bearer calls do without one, a
   * call without bearer and certificate is answered with nginx's HTML 400.
   */
  requireClientCertificate?: boolean;
  /**
   * How an unusable client certificate (foreign, expired, revoked) is refused, and a missing one where the handshake
   * demands it: with a TLS alert (default), or with an HTML 400 as nginx does.
   */
  clientCertificateRefusal?: 'tls-alert' | 'http-400';
  /** Default `TLSv1.3`. On TLS 1.2 a refused certificate means a closed connection, a missing one an alert. */
  maxTlsVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** Seconds that the certificates made at the start are valid from now. Default: a year. */
  certificates?: { applicationLifetime?: number; serverLifetime?: number };
  /** What GET /banks/v1 answers. Default: a list of ten. */
  banks?: unknown;
  /** Requests kept in the record; beyond that the oldest are dropped. Default 50,000. */
  maxRequests?: number;
  /** Decides on faults with a probability. Default Math.random. */
  random?: () => number;
}

/** A certificate for tests of the client's side of TLS. */
export interface ClientCertificateRequest extends CertificateRequest {
  /** From an authority that the service does not know. */
  foreign?: boolean;
}

/** The certificate that the simulator itself presents. What is left out is as it should be. */
export interface ServerCertificateRequest {
  /** Only for these servers. Default: all. */
  face?: SimulatorFace;
  /** From an authority outside `simulator.chain`. */
  foreign?: boolean;
  notBefore?: Date;
  notAfter?: Date;
  /** DNS names and addresses. Default: localhost, 127.0.0.1, ::1. */
  names?: readonly string[];
}

/** An access token made without the token endpoint. */
export interface AccessTokenRequest {
  /** Default `api`. */
  scope?: string;
  /** Default `production`. */
  environment?: ServiceEnvironment;
  /** Seconds; negative for a token that has expired. Default: the simulator's `tokenLifetime`. */
  lifetime?: number;
  /** Signed with a key that the service does not know. */
  foreign?: boolean;
}

/** TLS connections of a server since the start. */
export interface HandshakeCount {
  /** Handshakes completed, refused ones included. */
  total: number;
  /** Those that resumed a session. */
  resumed: number;
  /** Connections ended because of the client's certificate, or by a `tlsAlert` fault. */
  refused: number;
}

/** A connection that ended because of the client's certificate; no request of it was read. */
export interface CertificateRefusal {
  face: SimulatorFace;
  alert: TlsAlert;
  certificateSubject?: string;
  certificateFingerprint256?: string;
}
