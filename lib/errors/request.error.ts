import { recognizeCopies, ServiceError } from './service.error.js';

/** One fault in a caller's input. */
export interface RequestFault {
  property: string;
  /** What is wrong. Never quotes the value. */
  message: string;
}

/** The caller's input was refused before anything was sent. Code: `invalid_request`. */
export class ServiceRequestError extends ServiceError {
  static {
    recognizeCopies(this, 'ServiceRequestError');
  }

  readonly code = 'invalid_request';
  readonly faults: readonly RequestFault[];

  constructor(faults: readonly RequestFault[]) {
    super(`Nothing was sent: ${faults.map((fault) => `${fault.property} ${fault.message}`).join('; ')}`);
    this.faults = faults;
  }

  /** @internal */
  static of(property: string, message: string): ServiceRequestError {
    return new ServiceRequestError([{ property, message }]);
  }
}
