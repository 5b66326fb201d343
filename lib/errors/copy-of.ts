import { ServiceError } from './service.error.js';

/**
 * A copy for one of several callers that fail for one reason. Each may write into its error: a host adds fields, and
 * axios adds the caller's frames to the stack, which would grow with each caller. Other errors are returned as they are.
 */
export function copyOf(error: Error): Error {
  if (!(error instanceof ServiceError)) return error;
  const { name, message, stack } = error;
  const copy = Object.setPrototypeOf(new Error(message), Object.getPrototypeOf(error) as object) as Error;
  for (const [key, value] of Object.entries({ name, stack })) {
    Object.defineProperty(copy, key, { value, configurable: true, writable: true });
  }
  return Object.assign(copy, error);
}
