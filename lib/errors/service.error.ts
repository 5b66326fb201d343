/**
 * What every error of this module is. An error is made from an allow-list of plain values: it holds no request,
 * response, agent or foreign error, not even as `cause`, so that printing one never prints a key or a token.
 */
export abstract class ServiceError extends Error {
  /** Stable, machine-readable; documented with each class. */
  abstract readonly code: string;

  constructor(message: string) {
    super(message);
    // Not enumerable, like the name of a built-in error: it is no datum of its own.
    Object.defineProperty(this, 'name', { value: new.target.name, configurable: true, writable: true });
  }

  /** Name, message, code and the documented fields of the class; nothing else. */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...Object.fromEntries(Object.entries(this)) };
  }
}
