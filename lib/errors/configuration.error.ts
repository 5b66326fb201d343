import { ServiceError, type Remedy } from './service.error.js';

/** Where an option is set. */
export interface OptionLocation {
  /** The option's path, as in `ServiceModuleOptions`: `oauth.clientId`. */
  option: string;
  /** The option's environment variable: `SERVICE_CLIENT_ID`. Absent if it has none. */
  variable?: string;
}

/** One fault of the configuration, and where to correct it. */
export interface ConfigurationFault extends OptionLocation {
  /** What is wrong and what to do. Never contains a secret. */
  message: string;
  /** @internal The option is not set, rather than wrong. */
  isMissing?: boolean;
}

/** Thrown at start-up, with all faults at once. Code: `invalid_configuration`. */
export class ServiceConfigurationError extends ServiceError {
  readonly code:
    'invalid_configuration' | 'invalid_certificate' | 'certificate_refused' | 'startup_check_failed' =
    'invalid_configuration';
  declare readonly faults: readonly ConfigurationFault[];

  /** @param explanation in place of the heading and the faults */
  constructor(
    faults: readonly ConfigurationFault[],
    heading = 'The configuration of ServiceModule is not usable',
    explanation: Remedy & { message?: string } = {},
  ) {
    const lines = faults.map((fault) => `\n  - ${describeFault(fault)}`);
    super(explanation.message ?? `${heading}:${lines.join('')}`, explanation);
    const value = faults.map(({ option, variable, message }) => ({ option, variable, message }));
    // Not enumerable: what prints the error prints its message, which has them all.
    Object.defineProperty(this, 'faults', { value, configurable: true, writable: true });
  }

  /** @internal */
  static of(option: string, message: string): ServiceConfigurationError {
    return new ServiceConfigurationError([{ option, message }]);
  }

  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), faults: this.faults };
  }
}

/** The public fields of a certificate, to find it in the developer portal. */
export interface CertificateSummary {
  /** If the certificate has no subject, its alternative names or its serial number. */
  subject: string;
  issuer: string;
  fingerprint256: string;
  validFrom: Date;
  validTo: Date;
}

/**
 * Code `invalid_certificate`: the client certificate, its key or the service's chain is not usable, at start-up or at a
 * reload. Code `certificate_refused`: the server refused our certificate in a call.
 */
export class ServiceCertificateError extends ServiceConfigurationError {
  override readonly code: 'invalid_certificate' | 'certificate_refused';
  /** The client certificate, if it could be read. */
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

/**
 * `startupCheck` is `fail`, and the module does not reach the service as it should. Code: `startup_check_failed`. `faults`
 * has one entry: the cause, which may also be the network or the service itself, and what to do.
 */
export class ServiceStartupError extends ServiceConfigurationError {
  override readonly code = 'startup_check_failed';

  /** @param check the call that failed, by its name in `nestjs-service doctor`: `token.api` or `api.banks` */
  constructor(check: string, fault: ConfigurationFault) {
    super([fault], `The start-up check failed (${check})`);
  }
}

/** "oauth.clientId (SERVICE_CLIENT_ID)": how a message names an option. */
export function describeLocation({ option, variable }: OptionLocation): string {
  return variable ? `${option} (${variable})` : option;
}

/** "oauth.clientId (SERVICE_CLIENT_ID): is missing ..." */
export function describeFault(fault: ConfigurationFault): string {
  return `${describeLocation(fault)}: ${fault.message}`;
}
