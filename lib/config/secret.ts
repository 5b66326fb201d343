import { inspect } from 'node:util';

/** A secret: its text, or the file that contains it. Line breaks at the end are removed. */
export type SecretValue = string | { file: string };

/** A secret: its text, the file that contains it, or a function that returns it (vault, KMS). */
export type SecretSource = SecretValue | (() => string | Promise<string>);

/** A PEM: its text (newlines may be escaped as `\n`), the base64 of its text, or the file that contains it. */
export type PemValue = string | { file: string };

/**
 * Milliseconds that a function may take to return a secret, for example from a vault. The limit is shorter than that of
 * a token request, so that the error blames the function and not the token endpoint.
 */
export const SOURCE_MS = 8_000;

/** Whether a value names a file, as `{ file: path }`. */
export function isFile(value: unknown): value is { file: string } {
  return typeof value === 'object' && typeof (value as { file?: unknown } | null)?.file === 'string';
}

const HIDDEN = '[secret]';

/** Wraps a value that must not be printed: logs, JSON and util.inspect show `[secret]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Removes line breaks at the end, which editors, `echo` and command-line tools of vaults add. */
  static of(text: string): Secret {
    return new Secret(text.replace(/[\r\n]+$/, ''));
  }

  reveal(): string {
    return this.#value;
  }

  equals(other: Secret | undefined): boolean {
    return other !== undefined && other.#value === this.#value;
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
