import { codedError } from '../errors/coded-error.js';

/** Without a prototype: a `get` that somebody put into Object.prototype would make it invalid. */
const UNDEFINED = { __proto__: null, value: undefined, writable: true, enumerable: true, configurable: true };

function Bare(): void {
  // Only its prototype matters.
}
Bare.prototype = Object.create(null) as object;

/**
 * An object for headers that inherits nothing: what somebody put into Object.prototype is no header, and no setter of
 * theirs gets a value. Not by Object.create(null), whose objects V8 treats as hash tables: 10 us more for each call.
 */
export function emptyHeaders<T extends object>(): T {
  return new (Bare as unknown as new () => T)();
}

/**
 * Options for Node, which looks for those that are missing in Object.prototype too: what somebody put there (`auth`,
 * `setHost`, `path`) becomes undefined in them. An object without a prototype would not do: Node 20 copies it into one
 * that has a prototype. Throws for `encoding`, which every socket of Node takes from there: text in the place of bytes
 * would end the process.
 */
export function ownOptions<T extends object>(options: T): T {
  for (const name in Object.prototype) {
    if (name === 'encoding') throw codedError('Object.prototype has an encoding', 'ERR_OBJECT_PROTOTYPE');
    if (!Object.hasOwn(options, name)) Object.defineProperty(options, name, UNDEFINED as PropertyDescriptor);
  }
  return options;
}

/** A copy without what is undefined. */
export function defined<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const copy = {} as T;
  for (const key of Object.keys(values) as (keyof T)[])
    if (values[key] !== undefined) copy[key] = values[key];
  return copy;
}
