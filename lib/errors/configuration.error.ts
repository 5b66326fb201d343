import { ServiceError, type Remedy } from './service.error.js';

/** The names of an option, in code and in the environment. */
export interface OptionLocation {
  /** The path in `ServiceModuleOptions`: `oauth.clientId`. */
  option: string;
  /** The environment variable: `SERVICE_CLIENT_ID`. Absent if the option has none. */
  variable?: string;
}

/** One fault of the configuration, with the option to correct. */
export interface ConfigurationFault extends OptionLocation {
  /** What is wrong and what to do. Never contains a secret. */
  message: string;
  /** @internal True if the option is not set; false if its value is wrong. */
  isMissing?: boolean;
}

/** Thrown at start-up, with all faults at once. Code: `invalid_configuration`. */
export class ServiceConfigurationError extends ServiceError {
  /** @internal A bundler may rename the class. */
  static override readonly name: string = 'ServiceConfigurationError';
  readonly code:
    'invalid_configuration' | 'invalid_certificate' | 'certificate_refused' | 'startup_check_failed' =
    'invalid_configuration';
  declare readonly faults: readonly ConfigurationFault[];

  /** @param explanation its message replaces the heading and the list of faults */
  constructor(
    faults: readonly ConfigurationFault[],
    heading = 'The configuration of ServiceModule is not usable',
    explanation: Remedy & { message?: string } = {},
  ) {
    const lines = faults.map((fault) => `\n  - ${describeFault(fault)}`);
    super(explanation.message ?? `${heading}:${lines.join('')}`, explanation);
    const value = faults.map(({ option, variable, message }) => ({ option, variable, message }));
    // Not enumerable, because the message already lists the faults: a logger would print them twice.
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

/** Public fields of a certificate, with which you find it in the developer portal. */
export interface CertificateSummary {
  /** The subject. If the certificate has none, its alternative names or its serial number. */
  subject: string;
  issuer: string;
  fingerprint256: string;
  validFrom: Date;
  validTo: Date;
}

/**
 * A fault of certificates. Codes:
 * - `invalid_certificate`: the client certificate, its key or the service's chain is not usable, at start-up or at a reload.
 * - `certificate_refused`: the server refused the client certificate in a call.
 */
export class ServiceCertificateError extends ServiceConfigurationError {
  /** @internal A bundler may rename the class. */
  static override readonly name: string = 'ServiceCertificateError';
  override readonly code: 'invalid_certificate' | 'certificate_refused';
  /** The client certificate, if it could be read. */
  readonly certificate?: CertificateSummary;

  constructor(
    faults: readonly ConfigurationFault[],
    details: Remedy & Partial<Pick<ServiceCertificateError, 'code' | 'certificate' | 'message'>> = {},
  ) {
    const isRefused = details.code === 'certificate_refused';
    const heading = isRefused
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
 * The start-up check failed, and `startupCheck` is `fail`. Code: `startup_check_failed`. `faults` has one entry with the
 * cause and what to do. The cause may also be the network or the service itself.
 */
export class ServiceStartupError extends ServiceConfigurationError {
  /** @internal A bundler may rename the class. */
  static override readonly name: string = 'ServiceStartupError';
  override readonly code = 'startup_check_failed';

  /** @param check the failed call, named as in `nestjs-service doctor`: `token.api` or `api.banks` */
  constructor(check: string, fault: ConfigurationFault) {
    super([fault], `The start-up check failed (${check})`);
  }
}

/** How messages name an option: "oauth.clientId (SERVICE_CLIENT_ID)". */
export function describeLocation({ option, variable }: OptionLocation): string {
  return variable ? `${option} (${variable})` : option;
}

/** "oauth.clientId (SERVICE_CLIENT_ID): is missing ..." */
export function describeFault(fault: ConfigurationFault): string {
  return `${describeLocation(fault)}: ${fault.message}`;
}
