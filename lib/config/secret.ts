import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** A value that must not be printed: it shows as `[secret]` in logs, JSON and util.inspect at any depth. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}
