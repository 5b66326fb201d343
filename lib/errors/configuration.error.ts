import { inspect } from 'node:util';
import { ServiceError, type Remedy } from './service.error.js';

/** Where an option is set. */
export interface OptionLocation {
  /** The option's path, as in `ServiceModuleOptions`: `oauth.clientId`. */
  option: string;
  /** The option's environment variable: `SERVICE_CLIENT_ID`. Absent where it has none. */
  variable?: string;
}

/** One fault of the configuration, and where to correct it. */
export interface ConfigurationFault extends OptionLocation {
  /** What is wrong and what to do. Never contains a secret. */
  message: string;
}

/** Thrown at start-up, with all faults at once. Code: `invalid_configuration`. */
export class ServiceConfigurationError extends ServiceError {
  readonly code: string = 'invalid_configuration';
  readonly faults: readonly ConfigurationFault[];

  /** @param explanation in place of the heading and the faults */
  constructor(
    faults: readonly ConfigurationFault[],
    heading = 'The configuration of ServiceModule is not usable',
    explanation: Remedy & { message?: string } = {},
  ) {
    super(
      explanation.message ??
        [`${heading}:`, ...faults.map((fault) => `  - ${describeFault(fault)}`)].join('\n'),
      explanation,
    );
    this.faults = faults.map(({ option, variable, message }) => ({ option, variable, message }));
  }

  /** @internal */
  static of(option: string, message: string): ServiceConfigurationError {
    return new ServiceConfigurationError([{ option, message }]);
  }

  /** Leaves `faults` out where the error is printed, because the message has them all. */
  [inspect.custom](): string {
    return `${this.stack} {\n  code: '${this.code}'\n}`;
  }
}

/**
 * `startupCheck` is `fail`, and the module does not reach the service as it should. Code: `startup_check_failed`. It is a
 * ServiceConfigurationError, so that one `catch` at start-up sees all; but the cause may also be the network, or the
 * service itself. `faults` has one entry: the cause, and what to do.
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
