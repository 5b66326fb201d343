import { type LoggerService } from '@nestjs/common';
import { inspect, type InspectOptions } from 'node:util';

/** A logger for Nest that collects everything that is logged, at all levels. */
export class CollectingLogger implements LoggerService {
  readonly lines: unknown[] = [];
  private readonly calls: unknown[][] = [];
  private readonly take = (...parts: unknown[]): void => {
    this.lines.push(...parts);
    this.calls.push(parts);
  };
  log = this.take;
  error = this.take;
  warn = this.take;
  debug = this.take;
  verbose = this.take;
  fatal = this.take;

  /** The messages of one part of the application. Nest passes the part's name as the last argument. */
  linesOf(context: string): string[] {
    return this.calls.filter((parts) => parts.at(-1) === context).map(([line]) => String(line));
  }
}

/** `compact: false`, because to lay out arrays in columns would take most of the time. */
const EVERYTHING: InspectOptions = {
  depth: 20,
  showHidden: true,
  maxStringLength: Infinity,
  maxArrayLength: Infinity,
  compact: false,
  breakLength: Infinity,
};

/** Returns every text into which a value can turn: inspected, as JSON, its stack, and the same for its causes. */
export function everyForm(thing: unknown, depth = 0): string {
  if (depth > 10) return '';
  const { stack, cause, errors } = (thing ?? {}) as { stack?: unknown; cause?: unknown; errors?: unknown };
  return [
    inspect(thing, EVERYTHING),
    safeJson(thing),
    String(stack),
    String(thing),
    cause === undefined ? '' : everyForm(cause, depth + 1),
    errors === undefined ? '' : everyForm(errors, depth + 1),
  ].join('\n');
}

/** Returns the names of the secrets that a text contains: unchanged, URL- or form-encoded, in JSON, or as lines of a PEM. */
export function secretsIn(text: string, secrets: Readonly<Record<string, string>>): string[] {
  return Object.entries(secrets)
    .filter(([, secret]) => formsOf(secret).some((form) => text.includes(form)))
    .map(([name]) => name);
}

function formsOf(secret: string): string[] {
  const lines = secret.includes('-----BEGIN') ? secret.split('\n').filter((line) => line.length > 40) : [];
  return [
    secret,
    encodeURIComponent(secret),
    new URLSearchParams({ s: secret }).toString().slice(2),
    JSON.stringify(secret).slice(1, -1),
    ...lines,
  ];
}

function safeJson(thing: unknown): string {
  try {
    return JSON.stringify(thing) ?? '';
  } catch {
    return '';
  }
}
