import { type ServiceEnvironment, type ServiceUrls } from '../config/options.js';
import { type CertificateRequest } from './certificate-authority.js';
import { type RecordedRequest, type SimulatorFace } from './request-log.js';
import { type TlsAlert } from './servers/client-certificate.js';
import { type TokenClaims } from './token-issuer.js';

/** The keys of the six addresses, as in `ServiceModuleOptions.urls`. */
export type SimulatorAddress = keyof ServiceUrls;

/** Options of {@link ServiceSimulator.start}. */
export interface SimulatorOptions {
  /** Fixed ports, by address. Default: free ports. */
  ports?: { [Address in SimulatorAddress]?: number | undefined } | undefined;
  /** The IP address to listen on. Default: 127.0.0.1. With another address, other hosts may be able to call the simulator. */
  host?: string | undefined;
  /**
   * Further names and IP addresses in the server certificate, for clients on other hosts. The first one becomes the host in
   * all addresses, instead of `host`.
   */
  serverNames?: readonly string[] | undefined;
  /** A path at the end of every address, for example `/api`. Default: none. */
  basePath?: string | undefined;
  /** The lifetime of access tokens in seconds. Default: 3600. */
  tokenLifetime?: number | undefined;
  /** The application id. Default: a random UUID. */
  clientId?: string | undefined;
  /** Default: random. It contains characters that a client must form-encode. */
  clientSecret?: string | undefined;
  /** Default: the application id, which is usual at the service. */
  appToken?: string | undefined;
  /** Default: `service-app-token`. */
  appTokenHeader?: string | undefined;
  /** The secret of the webhooks that `sendWebhook()` signs. Default: random. */
  webhookSecret?: string | undefined;
  /** The header with the signature of webhooks. Default: `service-signature`. */
  webhookHeader?: string | undefined;
  /** The hash function of that signature, by its name in `node:crypto`. Default: `sha512`. */
  webhookAlgorithm?: string | undefined;
  /** The text before the hexadecimal digits of that signature. Default: `<algorithm>=`, for example `sha512=`. */
  webhookPrefix?: string | undefined;
  /** Milliseconds before each response, for all servers or by server. Default: 0. */
  delayMs?: number | { [Face in SimulatorFace]?: number | undefined } | undefined;
  /** Milliseconds after which a server closes an idle connection. Default: 5,000. */
  keepAliveTimeoutMs?: number | undefined;
  /** Default: true. When false, no tokens are issued and bearer tokens are refused (docs/service.md#oauth). */
  oauth?: { enabled: boolean } | undefined;
  /** Answers 400 to a call with both an app token and a bearer, like the service. Default: true. False: both are checked. */
  refuseBoth?: boolean | undefined;
  /** Makes the payload of each token. Default: claims like the service's. The client reads no claims, only tests do. */
  tokenClaims?: TokenClaims | undefined;
  /**
   * A token that was requested with a client certificate is accepted only with that certificate (RFC 8705, 3). Default:
   * false.
   */
  certificateBoundTokens?: boolean | undefined;
  /**
   * {base_url} requires a client certificate for every connection. Default: false. Then calls with a bearer need none, and a
   * call with neither bearer nor certificate gets nginx's HTML 400.
   */
  requireClientCertificate?: boolean | undefined;
  /**
   * How the servers refuse a client certificate that is foreign, expired or revoked, or missing where it is required: with
   * a TLS alert (default), or with an HTML 400 like nginx.
   */
  clientCertificateRefusal?: 'tls-alert' | 'http-400' | undefined;
  /** Default: `TLSv1.3`. On TLS 1.2 a refused certificate closes the connection without an alert. */
  maxTlsVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  /** `applicationLifetime`: seconds for which the application's certificate is valid. Default: a year. */
  certificates?: { applicationLifetime?: number | undefined } | undefined;
  /** The body of the response to GET /banks/v1. Default: a list of ten banks. */
  banks?: unknown;
  /** How many requests to keep, and how many refusals of certificates. The oldest are removed first. Default: 50,000. */
  maxRequests?: number | undefined;
  /**
   * Called when the response has been sent or the connection has ended, with the milliseconds since the request was read.
   * An error of the callback becomes a warning of the process.
   */
  onRequest?: ((request: RecordedRequest, milliseconds: number) => void) | undefined;
  /** Called when a connection ends because of its client certificate. */
  onRefusal?: ((refusal: CertificateRefusal) => void) | undefined;
}

/** A client certificate to issue. */
export interface ClientCertificateRequest extends CertificateRequest {
  /** True: issued by an authority that the service does not trust. */
  foreign?: boolean | undefined;
}

/** The certificate that the simulator's servers present. What is left out is valid. */
export interface ServerCertificateRequest {
  /** The servers that present it. Default: all. */
  face?: SimulatorFace | undefined;
  /** True: issued by an authority outside `simulator.chain`. */
  foreign?: boolean | undefined;
  notBefore?: Date | undefined;
  notAfter?: Date | undefined;
  /** DNS names and IP addresses. Default: those of the certificate at the start. */
  names?: readonly string[] | undefined;
}

/** An access token to issue without the token endpoint. */
export interface AccessTokenRequest {
  /** Default: `api`. */
  scope?: string | undefined;
  /** Default: `production`. */
  environment?: ServiceEnvironment | undefined;
  /** Seconds. A negative number makes an expired token. Default: the simulator's `tokenLifetime`. */
  lifetime?: number | undefined;
  /** True: a token that the service has not issued, and refuses. */
  foreign?: boolean | undefined;
}

/** The number of TLS handshakes of a server since its start. */
export interface HandshakeCount {
  /** Completed handshakes, including refused ones. */
  total: number;
  /** Handshakes that resumed a session. */
  resumed: number;
  /** Connections that the server ended because of the client certificate, or because of a `tlsAlert` fault. */
  refused: number;
}

/** A connection that a server ended because of the client certificate. No request on it was read. */
export interface CertificateRefusal {
  face: SimulatorFace;
  alert: TlsAlert;
  certificateSubject?: string;
  certificateFingerprint256?: string;
}
