import { Flag, IsSource } from './rules.js';
import { type PemValue, type SecretValue } from './secret.js';

/** The client identity as PEM, and what the service is verified against (docs/service.md#mutual-tls). */
export class TlsIdentityPems {
  /** The application certificate, alone or with chain certificates after it. SERVICE_TLS_CERTIFICATE(_FILE) */
  @IsSource('TLS_CERTIFICATE')
  certificate?: PemValue | undefined;

  /** The certificate's private key; both options may name one file that has both. SERVICE_TLS_PRIVATE_KEY(_FILE) */
  @IsSource('TLS_PRIVATE_KEY')
  privateKey?: PemValue | undefined;

  /** For an encrypted private key. SERVICE_TLS_PASSPHRASE(_FILE) */
  @IsSource('TLS_PASSPHRASE')
  passphrase?: SecretValue | undefined;

  /**
   * The service's public chain: the only trust anchor for the API. Needed with a client certificate in production
   * (specification, 5.2.4). SERVICE_TLS_CHAIN(_FILE)
   */
  @IsSource('TLS_CHAIN')
  chain?: PemValue | undefined;

  /** Node's public roots are meant as the anchor, in place of a chain. Default false. SERVICE_TLS_PUBLIC_ROOTS */
  @Flag('TLS_PUBLIC_ROOTS')
  publicRoots?: boolean | undefined;
}

/** The client identity, and whether it is loaded again when its files change. */
export class ServiceTlsOptions extends TlsIdentityPems {
  /**
   * Read the certificate, key, passphrase and chain again, and use what changed: files every 2 s, a function every 60 s.
   * Default true. SERVICE_TLS_RELOAD
   */
  @Flag('TLS_RELOAD')
  reload?: boolean | undefined;
}

/** Called at start-up, every 60 s and after a refusal, for example to read a vault. It has 30 s to answer. */
export type TlsIdentitySource = () => TlsIdentityPems | Promise<TlsIdentityPems>;
