import { type ServiceEnvironment } from '../config/options.js';
import { type ServiceUrls } from '../config/urls.options.js';
import { type CertificateRequest } from './certificate-authority.js';
import { type RecordedRequest, type SimulatorFace } from './request-log.js';
import { type TlsAlert } from './tls-alert.js';
import { type TokenClaims } from './token-issuer.js';

/** The keys of the six addresses, as in `ServiceModuleOptions.urls`. */
export type SimulatorAddress = keyof ServiceUrls;

/** How a simulator answers where docs/service.md leaves it open. */
export interface SimulatorOptions {
  /** Fixed ports, by address. Default: free ones. */
  ports?: { [Address in SimulatorAddress]?: number | undefined } | undefined;
  /** The IP address to listen on. Default 127.0.0.1. On another one, every host that reaches it can call. */
  host?: string | undefined;
  /**
   * Further names and IP addresses in the server certificate, for callers from other hosts. The first is the host of all
   * addresses in place of `host`.
   */
  serverNames?: readonly string[] | undefined;
  /** A path that every address ends in, for example `/api`. Default: none. */
  basePath?: string | undefined;
  /** Seconds that access tokens live. Default 3600. */
  tokenLifetime?: number | undefined;
  /** The application id. Default: a random UUID. */
  clientId?: string | undefined;
  /** Default: random, with characters that a client must form-encode. */
  clientSecret?: string | undefined;
  /** Default: the application id, as mostly at the service. */
  appToken?: string | undefined;
  /** Default `service-app-token`. */
  appTokenHeader?: string | undefined;
  /** The secret of the webhooks that `sendWebhook()` signs. Default: random. */
  webhookSecret?: string | undefined;
  /** The header of their signature. Default `service-signature`. */
  webhookHeader?: string | undefined;
  /** Milliseconds before each answer, for all servers or by server. Default 0. */
  delayMs?: number | { [Face in SimulatorFace]?: number | undefined } | undefined;
  /** Milliseconds that an idle connection is kept. Default 5,000. */
  keepAliveTimeoutMs?: number | undefined;
  /** Default true. When false, no tokens are issued and bearers are refused (docs/service.md#oauth). */
  oauth?: { enabled: boolean } | undefined;
  /** Answer 400 to an app token and a bearer in one call, as the service does. Default true. False: both are checked. */
  refuseBoth?: boolean | undefined;
  /** Makes the whole payload of each token. Default: claims as the service's. Nobody but a test reads them. */
  tokenClaims?: TokenClaims | undefined;
  /**
   * Tokens that are requested with a client certificate only work together with it (RFC 8705, 3). Default false.
   */
  certificateBoundTokens?: boolean | undefined;
  /**
   * {base_url} requires a client certificate from every caller. Default false: bearer calls need none, and a call
   * without bearer and certificate is answered with nginx's HTML 400.
   */
  requireClientCertificate?: boolean | undefined;
  /**
   * How a client certificate that is foreign, expired or revoked is refused, and a missing one if the handshake
   * requires it: with a TLS alert (default), or with an HTML 400 as nginx does.
   */
  clientCertificateRefusal?: 'tls-alert' | 'http-400' | undefined;
  /** Default `TLSv1.3`. On TLS 1.2 the connection is closed for a refused certificate; a missing one gets an alert. */
  maxTlsVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  /** Seconds for which the application's certificate is valid. Default: a year. */
  certificates?: { applicationLifetime?: number | undefined } | undefined;
  /** What GET /banks/v1 answers. Default: a list of ten. */
  banks?: unknown;
  /** How many requests, and refusals of certificates, to record. The oldest are removed first. Default 50,000. */
  maxRequests?: number | undefined;
  /**
   * Called when a request has been answered, or its connection has ended; with the milliseconds since it was read. What a
   * callback throws becomes a warning of the process.
   */
  onRequest?: ((request: RecordedRequest, milliseconds: number) => void) | undefined;
  /** Called when a connection ends because of its client certificate. */
  onRefusal?: ((refusal: CertificateRefusal) => void) | undefined;
}

/** A client certificate to issue. */
export interface ClientCertificateRequest extends CertificateRequest {
  /** From an authority that the service does not know. */
  foreign?: boolean | undefined;
}

/** The certificate that the simulator's servers present. What is left out is valid. */
export interface ServerCertificateRequest {
  /** Only for these servers. Default: all. */
  face?: SimulatorFace | undefined;
  /** From an authority outside `simulator.chain`. */
  foreign?: boolean | undefined;
  notBefore?: Date | undefined;
  notAfter?: Date | undefined;
  /** DNS names and IP addresses. Default: those of the start. */
  names?: readonly string[] | undefined;
}

/** An access token to issue without the token endpoint. */
export interface AccessTokenRequest {
  /** Default `api`. */
  scope?: string | undefined;
  /** Default `production`. */
  environment?: ServiceEnvironment | undefined;
  /** Seconds. Negative for an expired token. Default: the simulator's `tokenLifetime`. */
  lifetime?: number | undefined;
  /** One that the service has not issued. */
  foreign?: boolean | undefined;
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

/** A connection that was ended because of the client's certificate. No request on it was read. */
export interface CertificateRefusal {
  face: SimulatorFace;
  alert: TlsAlert;
  certificateSubject?: string;
  certificateFingerprint256?: string;
}
