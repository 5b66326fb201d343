import { type Remedy, ServiceError } from './service.error.js';

const IN_CODE = "Correct it in the application's code: no caller of the application can.";

/** One fault in a caller's input. */
export interface RequestFault {
  property: string;
  /** What is wrong. Never quotes the value. */
  message: string;
}

/**
 * The caller's input was refused before anything was sent. Code: `invalid_request`. With a `hint` it is a fault of the
 * application's own code, such as an option of the call, and not of what its callers sent.
 */
export class ServiceRequestError extends ServiceError {
  readonly code = 'invalid_request';
  readonly faults: readonly RequestFault[];

  constructor(faults: readonly RequestFault[], remedy?: Remedy) {
    super(
      `Nothing was sent: ${faults.map((fault) => `${fault.property} ${fault.message}`).join('; ')}`,
      remedy,
    );
    this.faults = faults;
  }

  /** @internal */
  static of(property: string, message: string): ServiceRequestError {
    return new ServiceRequestError([{ property, message }]);
  }

  /** @internal */
  static ofCode(property: string, message: string): ServiceRequestError {
    return new ServiceRequestError([{ property, message }], { hint: IN_CODE });
  }
}
