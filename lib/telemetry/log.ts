import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { type Log } from '../exchange/io.js';
import { ignoreErrors } from './ignore-errors.js';

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
