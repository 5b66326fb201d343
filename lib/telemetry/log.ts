import { isPromise } from 'node:util/types';
import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';

/**
 * Calls a function, and returns undefined if it throws. For functions of the application that only observe, such as a logger or a
 * listener: their errors and rejections must fail no call, token request or certificate rotation. Also for checks whose error is
 * thrown later, in another place.
 */
export function ignoreErrors<T>(call: () => T): T | undefined {
  try {
    const result = call();
    // Nothing awaits this promise. Without a handler, its rejection would end the process.
    if (isPromise(result)) result.catch(() => undefined);
    return result;
  } catch {
    return undefined;
  }
}

type Level = keyof Log;
type Write = (message: unknown, ...more: unknown[]) => void;

/**
 * Nest's Logger, but errors of the application's logger are ignored. For example, pino throws after its stream has
 * ended.
 */
export class SafeLogger extends Logger implements Log {
  /**
   * The application's logger, with each method made safe. Nest ignores the promise of an asynchronous logger, so its
   * rejection is handled here. Lines that Nest buffers pass through here too.
   */
  override get localInstance(): LoggerService {
    const logger = super.localInstance as Partial<Record<Level, Write>> | undefined;
    const level =
      (name: Level): Write =>
      (...line) =>
        void ignoreErrors(() => logger?.[name]?.(...line));
    return { debug: level('debug'), log: level('log'), warn: level('warn'), error: level('error') };
  }

  /** Logs an error. If Nest's own logger writes JSON, the line has these fields for log processors. */
  errorWith(message: string, fields: object): void {
    this.error(writesJson(super.localInstance) ? { message, ...fields } : message);
  }
}

function writesJson(logger: unknown): boolean {
  // A logger class of the application may extend ConsoleLogger and have different `options`.
  const read = (): unknown => (logger as { options: { json?: unknown } }).options.json;
  return logger instanceof ConsoleLogger && ignoreErrors(read) === true;
}

/** Where log lines go. */
export type Log = Record<'debug' | 'log' | 'warn' | 'error', (message: string) => void>;

const ignore = (): void => undefined;
export const SILENT: Log = { debug: ignore, log: ignore, warn: ignore, error: ignore };
