import { Logger, type LoggerService } from '@nestjs/common';
import { harmless } from './telemetry.js';

type Level = 'debug' | 'log' | 'warn' | 'error';
type Write = (message: unknown, ...more: unknown[]) => void;

/** Where log lines go. */
export type Log = Record<Level, (message: string) => void>;

/** A logger of the host's, which may throw: pino does once its stream has ended. What this returns never does. */
function safeLog(logger: Partial<Record<Level, Write>> | undefined): Record<Level, Write> {
  const level =
    (name: Level): Write =>
    (...line) =>
      void harmless(() => logger?.[name]?.(...line));
  return { debug: level('debug'), log: level('log'), warn: level('warn'), error: level('error') };
}

/** Nest's Logger, which never throws. */
export class SafeLogger extends Logger implements Log {
  /** Nest drops what a logger returns, so the promise of an asynchronous one is met here; so are lines kept for later. */
  override get localInstance(): LoggerService {
    return safeLog(super.localInstance);
  }
}
