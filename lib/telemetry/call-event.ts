import { ServiceError } from '../errors/index.js';
import { ignoreErrors } from './log.js';

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
