import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { type Log } from '../exchange/io.js';
import { harmless } from './harmless.js';

type Level = keyof Log;
type Write = (message: unknown, ...more: unknown[]) => void;

/** Nest's Logger, made safe: a host's logger may throw, as pino does once its stream has ended. */
export class SafeLogger extends Logger implements Log {
  /** Nest drops the promise of an asynchronous logger, so it is handled here; so are lines that Nest buffers. */
  override get localInstance(): LoggerService {
    const logger = super.localInstance as Partial<Record<Level, Write>> | undefined;
    const level =
      (name: Level): Write =>
      (...line) =>
        void harmless(() => logger?.[name]?.(...line));
    return { debug: level('debug'), log: level('log'), warn: level('warn'), error: level('error') };
  }

  /** With fields for programs that read logs, where Nest's own logger writes JSON. */
  errorWith(message: string, fields: object): void {
    this.error(writesJson(super.localInstance) ? { message, ...fields } : message);
  }
}

function writesJson(logger: unknown): boolean {
  // A class of the host's may have `options` of its own.
  const read = (): unknown => (logger as { options: { json?: unknown } }).options.json;
  return logger instanceof ConsoleLogger && harmless(read) === true;
}
