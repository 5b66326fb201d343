import { isPromise } from 'node:util/types';
import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { type ConnectionErrorKind, ServiceError } from '../errors/index.js';
import { type Clock, systemClock } from '../time/time.js';

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

  /**
   * Logs an error. If Nest's own logger writes JSON, the line has these fields for log processors. The logger of NestJS 12 writes
   * them as `params`. That of NestJS 11 would write them as a line of their own, so they are part of the message there.
   */
  errorWith(message: string, fields: object): void {
    const logger = super.localInstance;
    const { json, structuredParams = true } = consoleOptionsOf(logger);
    if (json !== true) this.error(message);
    else if ('stringifyParams' in Object(logger) && structuredParams) this.error(message, fields);
    else this.error({ message, ...fields });
  }
}

/** A logger class of the application may extend ConsoleLogger and have different `options`. */
function consoleOptionsOf(logger: unknown): { json?: unknown; structuredParams?: unknown } {
  const read = (): object => (logger as { options: object }).options;
  return (logger instanceof ConsoleLogger && ignoreErrors(read)) || {};
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
  /** The `name` of the ServiceModule, or of the client of `createServiceClient()`, if it has one. */
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
  /** The attempts that `attempts` counts, in their order. */
  attemptDetails: ServiceCallAttempt[];
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

/**
 * One attempt of a call or of a token request, for `http.onCall`. Times are in milliseconds. All of them but `startMs` count from the start
 * of the attempt, and are absent if the attempt did not get so far.
 */
export interface ServiceCallAttempt {
  /** The HTTP status of the response. */
  status?: number;
  /** Why there was no complete response: the kind of the fault, such as `reset` or `timeout`. `aborted`: the caller aborted the call. */
  fault?: ConnectionErrorKind | 'aborted';
  /** Whether the request reused a keep-alive connection. A connection that was opened ahead for the request is `new`. */
  connection?: 'new' | 'reused';
  /** From the start of the call to the start of the attempt. The pause before a retry lies between two attempts. */
  startMs: number;
  /** Until the bearer token was there. Absent for calls without one, and for token requests. */
  tokenMs?: number;
  /** Until the request could be written: after the wait for a free connection, and after the TLS handshake of a new one. */
  connectedMs?: number;
  /** Until the response began. */
  firstByteMs?: number;
  /** Until the response was read, or the attempt failed. */
  durationMs: number;
}

/** The status of the response, or the fault. */
export type AttemptOutcome = number | ConnectionErrorKind | 'aborted';

/** Notes how one attempt goes. It is made only while somebody listens, so that a call without a listener pays nothing for it. */
export class AttemptTrace {
  readonly attempt: ServiceCallAttempt;
  readonly #clock: Clock;
  readonly #startedAt: number;

  /** @param callStartedAt milliseconds of the monotonic clock */
  constructor(callStartedAt: number, clock = systemClock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.attempt = { startMs: this.#startedAt - callStartedAt, durationMs: 0 };
  }

  mark(moment: 'tokenMs' | 'connectedMs' | 'firstByteMs' | 'durationMs'): void {
    this.attempt[moment] = this.#clock.monotonic() - this.#startedAt;
  }

  end(outcome: AttemptOutcome): void {
    if (typeof outcome === 'number') this.attempt.status = outcome;
    else this.attempt.fault = outcome;
    this.mark('durationMs');
  }
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
export function reportCall(
  onCall: OnCall,
  traces: readonly AttemptTrace[],
  ended: Omit<ServiceCallEvent, 'startedAt' | 'attempts' | 'attemptDetails'>,
): void {
  const attempts = { attempts: traces.length, attemptDetails: traces.map(({ attempt }) => attempt) };
  const event = { ...ended, ...attempts, startedAt: new Date(Date.now() - ended.durationMs) };
  const present = Object.entries(event).filter(([, value]) => value !== undefined);
  void ignoreErrors(() => onCall(Object.fromEntries(present) as unknown as ServiceCallEvent));
}
