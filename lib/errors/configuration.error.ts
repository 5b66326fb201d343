import { ServiceError } from './service.error.js';

/** One thing wrong with the configuration, and where to mend it. */
export interface ConfigurationFault {
  /** The option's path, as in `ServiceModuleOptions`: `oauth.clientId`. */
  option: string;
  /** The environment variable that sets the same: `SERVICE_CLIENT_ID`; absent where an option has none. */
  variable?: string;
  /** What is wrong and what to do. Never holds a secret's value. */
  message: string;
}

/** Thrown at start-up, with every fault there is at once. Code: `invalid_configuration`. */
export class ServiceConfigurationError extends ServiceError {
  readonly code: string = 'invalid_configuration';
  readonly faults: readonly ConfigurationFault[];

  constructor(
    faults: readonly ConfigurationFault[],
    heading = 'The configuration of ServiceModule is not usable',
  ) {
    super([`${heading}:`, ...faults.map(describeFault)].join('\n'));
    this.faults = faults.map(({ option, variable, message }) => ({ option, variable, message }));
  }
}

function describeFault({ option, variable, message }: ConfigurationFault): string {
  return `  - ${option}${variable ? ` (${variable})` : ''}: ${message}`;
}
