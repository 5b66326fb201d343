import { type Remedy, ServiceError } from './service.error.js';

const CORRECT_THE_CODE = "Correct the application's code: its users cannot.";

/** One fault in the input of a call. */
export interface RequestFault {
  property: string;
  /** What is wrong. Never quotes the value. */
  message: string;
}

/**
 * The input of a call is not valid, so nothing was sent. Code: `invalid_request`. If the error has a `hint`, the mistake is
 * in the application's own code, for example in an option of the call, and not in what its users sent.
 */
export class ServiceRequestError extends ServiceError {
  readonly code = 'invalid_request';
  readonly faults: readonly RequestFault[];

  /** @param advice for the developer: ends the message, but is not in `faults`, which the callers of the application get */
  constructor(faults: readonly RequestFault[], remedy?: Remedy, advice?: string) {
    const texts = faults.map(({ property, message }) => `${property} ${message}`);
    super(`Nothing was sent: ${[...texts, advice ?? []].flat().join('; ')}`, remedy);
    this.faults = faults;
  }

  /** @internal Invalid input, which may come from a user of the application. */
  static of(property: string, message: string): ServiceRequestError {
    return new ServiceRequestError([{ property, message }]);
  }

  /** @internal A mistake in the application's own code. */
  static ofMisuse(property: string, message: string): ServiceRequestError {
    return new ServiceRequestError([{ property, message }], { hint: CORRECT_THE_CODE });
  }
}
