import { ServiceConfigurationError, type ConfigurationFault } from './configuration.error.js';

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
