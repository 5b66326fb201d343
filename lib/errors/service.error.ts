import { type ServiceErrorCode } from './error-codes.js';

/** What to do about an error. For those who run the application; never for its callers. */
export interface Remedy {
  hint?: string;
  /** The paths of the options that it is about, the most to blame first: `['oauth.clientSecret', 'oauth.clientId']`. */
  options?: readonly string[];
}

/** What happened, in whole sentences, and what to do about it. */
export interface Explanation extends Remedy {
  message: string;
}

/**
 * The base class of all errors of this module. An error has only plain values from an allow-list. It has no request,
 * response, agent or foreign error, not even as `cause`, so that printing it never prints a key or a token.
 */
export abstract class ServiceError extends Error {
  /** A stable code for programs. Each class documents its codes. */
  abstract readonly code: ServiceErrorCode;
  /**
   * Whether the same call may be sent again later without harm, and may succeed then; for queues. A change only if it surely
   * was not carried out, or if its caller named its `idempotencyKey`.
   */
  readonly retryable: boolean;
  /** What to do, if known. For those who run the application; do not show it to callers. */
  declare readonly hint?: string;
  /** The paths of the options that the hint is about, the most to blame first. */
  declare readonly options?: readonly string[];

  constructor(message: string, { hint, options, retryable = false }: Remedy & { retryable?: boolean } = {}) {
    super(message);
    this.retryable = retryable;
    // Not enumerable, like the name of a built-in error.
    Object.defineProperty(this, 'name', { value: new.target.name, configurable: true, writable: true });
    if (hint === undefined) return;
    Object.assign(this, { hint, options });
    // Much that prints an error prints its stack alone.
    this.stack = this.stack?.replace(message, () => `${message}\n${hint}`);
  }

  /** Name, message, code and the documented fields of the class. */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...Object.fromEntries(Object.entries(this)) };
  }
}

const HIDDEN = Symbol('hidden');
type Hidden = Readonly<Record<string, (() => unknown) | undefined>>;

/**
 * Defines getters for what an error keeps for programs alone, so that nothing that prints or copies the error shows it,
 * not even the `%o` of util.format(). util.inspect({ showHidden, getters }) reads the getters of classes too, but looks at no
 * prototype from one on whose constructor is a built-in.
 */
export function hideFields(prototype: ServiceError, names: readonly string[]): void {
  const getterOf = (name: string): PropertyDescriptor => ({
    get(this: { [HIDDEN]?: Hidden }) {
      return this[HIDDEN]?.[name]?.();
    },
  });
  const getters = Object.fromEntries(names.map((name) => [name, getterOf(name)]));
  const properties = { constructor: { value: Error }, ...getters };
  const above = Object.getPrototypeOf(prototype) as object;
  Object.setPrototypeOf(prototype, Object.create(above, properties) as object);
}

/** @param values functions, as a value would be printed with the error's hidden properties */
export function keepHidden(error: ServiceError, values: Hidden): void {
  Object.defineProperty(error, HIDDEN, { value: values });
}

/**
 * A copy for one of several callers that fail for one reason. Each may write into its error: a host adds fields, and
 * axios adds the caller's frames to the stack, which would grow with each caller. Other errors are returned as they are.
 */
export function copyOf(error: Error): Error {
  if (!(error instanceof ServiceError)) return error;
  const copy = Object.setPrototypeOf(new Error(), Object.getPrototypeOf(error) as object) as Error;
  // Node 22 has a getter for the stack of the error that it is of.
  const stack = { value: error.stack, configurable: true, writable: true };
  return Object.defineProperties(copy, { ...Object.getOwnPropertyDescriptors(error), stack });
}

/** The same as `error instanceof ServiceError`. */
export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof ServiceError;
}
