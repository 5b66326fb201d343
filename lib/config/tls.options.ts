import { type Given, Flag, IsSource, OptionsSection } from './option.js';
import { type PemValue, type SecretValue } from './secret.js';

/** The client certificate with its key, and the trust anchors for the service (docs/service.md#mutual-tls). */
class TlsPems extends OptionsSection<ServiceTlsOptions> {
  /** The application certificate. Certificates of its chain may follow it. SERVICE_TLS_CERTIFICATE(_FILE) */
  @IsSource('TLS_CERTIFICATE')
  certificate?: PemValue;

  /** The certificate's private key. Both options may name the same file. SERVICE_TLS_PRIVATE_KEY(_FILE) */
  @IsSource('TLS_PRIVATE_KEY')
  privateKey?: PemValue;

  /** The passphrase of an encrypted private key. SERVICE_TLS_PASSPHRASE(_FILE) */
  @IsSource('TLS_PASSPHRASE')
  passphrase?: SecretValue;

  /**
   * The service's public chain: the only trust anchor for the API. Required with a client certificate in production
   * (specification, 5.2.4), unless `publicRoots` is true. SERVICE_TLS_CHAIN(_FILE)
   */
  @IsSource('TLS_CHAIN')
  chain?: PemValue;

  /** Verify the service against Node's public roots instead of a chain. Default false. SERVICE_TLS_PUBLIC_ROOTS */
  @Flag('TLS_PUBLIC_ROOTS')
  publicRoots = false;
}

/** The client certificate, and whether it is reloaded when its files change. */
export class TlsOptions extends TlsPems {
  /**
   * Reload the certificate, key, passphrase and chain when they change. Files are read every 2 s, a function is called
   * every 60 s. Default true. SERVICE_TLS_RELOAD
   */
  @Flag('TLS_RELOAD')
  reload = true;
}

/**
 * Returns the PEMs, for example from a vault. Called at start-up, every 60 s, and after a server has refused the
 * certificate. It may take 30 s.
 */
export type TlsIdentitySource = () => TlsIdentityPems | Promise<TlsIdentityPems>;
/** The client certificate with its key, and the trust anchors for the service, as an application gives them. */
export interface TlsIdentityPems extends Given<TlsPems> {}
/** The same, and whether it is reloaded when its files change. */
export interface ServiceTlsOptions extends Given<TlsOptions> {}
