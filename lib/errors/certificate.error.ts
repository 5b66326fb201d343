import { ServiceConfigurationError, type ConfigurationFault } from './configuration.error.js';
import { type Remedy } from './service.error.js';

/** The public fields of a certificate, to find it in the developer portal. */
export interface CertificateSummary {
  subject: string;
  issuer: string;
  fingerprint256: string;
  validFrom: Date;
  validTo: Date;
}

/**
 * Code `invalid_certificate`: the client certificate, its key or the service's chain is not usable, at start-up or at a
 * reload. Code `certificate_refused`: the server refused our certificate in a call. Specification 5.2.
 */
export class ServiceCertificateError extends ServiceConfigurationError {
  override readonly code: 'invalid_certificate' | 'certificate_refused';
  /** The client certificate, where it could be read. */
  readonly certificate?: CertificateSummary;

  constructor(
    faults: readonly ConfigurationFault[],
    details: Remedy & Partial<Pick<ServiceCertificateError, 'code' | 'certificate' | 'message'>> = {},
  ) {
    const refused = details.code === 'certificate_refused';
    const heading = refused
      ? 'The server refused the client certificate'
      : faults.every(({ option }) => option === 'tls.chain')
        ? "The chain of the service's certificate is not usable"
        : 'The client certificate is not usable';
    super(faults, heading, details);
    this.code = details.code ?? 'invalid_certificate';
    this.certificate = details.certificate;
  }
}
