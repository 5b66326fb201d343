import { ServiceConfigurationError, type ConfigurationFault } from './configuration.error.js';

/** The public facts of a certificate, enough to find it in the developer portal. */
export interface CertificateSummary {
  subject: string;
  issuer: string;
  fingerprint256: string;
  validFrom: Date;
  validTo: Date;
}

/**
 * The client certificate, its key or the service's chain is not usable (code `invalid_certificate`, at start-up or
 * reload), or the server refused our certificate in a call (code `certificate_refused`). Specification 5.2.
 */
export class ServiceCertificateError extends ServiceConfigurationError {
  override readonly code: 'invalid_certificate' | 'certificate_refused';
  /** The certificate in question, where one could be read. */
  readonly certificate?: CertificateSummary;

  constructor(
    faults: readonly ConfigurationFault[],
    details: { code?: 'invalid_certificate' | 'certificate_refused'; certificate?: CertificateSummary } = {},
  ) {
    const refused = details.code === 'certificate_refused';
    super(
      faults,
      refused ? 'The server refused the client certificate' : 'The client certificate is not usable',
    );
    this.code = details.code ?? 'invalid_certificate';
    this.certificate = details.certificate;
  }
}
