import { inspect } from 'node:util';

/** A secret as text, or its file. Line breaks at its end are removed. */
export type SecretValue = string | { file: string };

/** A secret, its file, or a function that returns it (vault, KMS). */
export type SecretSource = SecretValue | (() => string | Promise<string>);

/** PEM text (real or `\n`-escaped newlines), its base64, or its file. */
export type PemValue = string | { file: string };

/** Milliseconds for a function, such as a vault, to return a secret: fewer than a token request has, so that the error names it. */
export const SOURCE_MS = 8_000;

/** Whether a value is in a file that it names. */
export function isFile(value: unknown): value is { file: string } {
  return typeof value === 'object' && typeof (value as { file?: unknown } | null)?.file === 'string';
}

const HIDDEN = '[secret]';

/** A value that must not be printed. Logs, JSON and util.inspect show `[secret]` in its place. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Without line breaks at its end: editors, `echo` and the command lines of vaults add them, and nobody means them. */
  static of(text: string): Secret {
    return new Secret(text.replace(/[\r\n]+$/, ''));
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
