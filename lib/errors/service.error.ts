/**
 * The base class of all errors of this module. An error has only plain values from an allow-list. It has no request,
 * response, agent or foreign error, not even as `cause`, so that printing it never prints a key or a token.
 */
export abstract class ServiceError extends Error {
  /** A stable code for programs. Each class documents its codes. */
  abstract readonly code: string;

  constructor(message: string) {
    super(message);
    // Not enumerable, like the name of a built-in error.
    Object.defineProperty(this, 'name', { value: new.target.name, configurable: true, writable: true });
  }

  /** Name, message, code and the documented fields of the class. */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...Object.fromEntries(Object.entries(this)) };
  }
}
