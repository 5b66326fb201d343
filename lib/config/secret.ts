import { inspect } from 'node:util';

/** A secret's text, or the file that holds it (one trailing newline is dropped). */
export type SecretValue = string | { file: string };

/** PEM text (real or `\n`-escaped newlines), the base64 of it, or the file that holds it. */
export type PemValue = string | { file: string };

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
