import { Logger, type LoggerService } from '@nestjs/common';
import { type Log } from '../exchange/io.js';
import { harmless } from './telemetry.js';

type Level = keyof Log;
type Write = (message: unknown, ...more: unknown[]) => void;

/** Nest's Logger, which never throws. A logger of the host's may: pino does once its stream has ended. */
export class SafeLogger extends Logger implements Log {
  /** Nest drops what a logger returns, so the promise of an asynchronous one is met here; so are lines kept for later. */
  override get localInstance(): LoggerService {
    const logger = super.localInstance as Partial<Record<Level, Write>> | undefined;
    const level =
      (name: Level): Write =>
      (...line) =>
        void harmless(() => logger?.[name]?.(...line));
    return { debug: level('debug'), log: level('log'), warn: level('warn'), error: level('error') };
  }
}
