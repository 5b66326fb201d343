import { isPromise } from 'node:util/types';
import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { ServiceError } from '../errors/index.js';

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

/**
 * The outcome of a call or of a token request, for `http.onCall`. It contains no query, body or token, and of the
 * headers only the two ids.
 */
export interface ServiceCallEvent {
  /** The `name` of the ServiceModule, if it has one. */
  module?: string;
  /** `api`: a call of the API. `token`: a request to the token endpoint. */
  kind: 'api' | 'token';
  method: string;
  /**
   * The path without ids: with `pathParams` its template, such as `/data/v2/accounts/{account_id}/balances`. Without them,
   * each segment that may be an id is `{}`: `/data/v2/accounts/{}/balances`.
   */
  route: string;
  /** The HTTP status of the last response. Absent if the call ended without a response. */
  status?: number;
  /** Attempts that were sent. 0 if there was no token, or if an interceptor of the application did not settle in time. */
  attempts: number;
  startedAt: Date;
  /** Milliseconds that the caller waited, including the waits for a token, a connection and retries. */
  durationMs: number;
  /** The correlation id of the response, if it has one. */
  correlationId?: string;
  /** The correlation id that was sent: from `http.requestId`, or from the call's own header. */
  requestId?: string;
  /** The error's code. `aborted`: the caller aborted the call. `host_error`: a function of the application threw. */
  error?: string;
}

export type OnCall = (event: ServiceCallEvent) => void;

/** Wraps the application's listener so that each event has the module's name. */
export function withModuleName(name: string | undefined, onCall: OnCall | undefined): OnCall | undefined {
  if (name === undefined) return onCall;
  return onCall && ((event) => onCall({ module: name, ...event }));
}

/**
 * The `error` of a call event.
 * @param signal the signal of the call's caller
 */
export function eventErrorCode(error: unknown, signal: AbortSignal | undefined): string {
  if (error instanceof ServiceError) return error.code;
  return signal?.aborted ? 'aborted' : 'host_error';
}

/** Reports a call that has just ended. Errors of the listener are ignored, because the call is over. */
export function reportCall(onCall: OnCall, ended: Omit<ServiceCallEvent, 'startedAt'>): void {
  const event = { ...ended, startedAt: new Date(Date.now() - ended.durationMs) };
  const present = Object.entries(event).filter(([, value]) => value !== undefined);
  void ignoreErrors(() => onCall(Object.fromEntries(present) as unknown as ServiceCallEvent));
}
