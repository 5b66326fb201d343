import { ServiceError } from '../errors/index.js';
import { harmless } from './harmless.js';

/** What became of a call, for `http.onCall`. It has no query, no body, no header's value but the two ids, no token. */
export interface ServiceCallEvent {
  /** The `name` of the module; absent without one. */
  module?: string;
  /** A call of the API, or a request to the token endpoint. */
  kind: 'api' | 'token';
  method: string;
  /** The path without ids: with `pathParams` the template, without them what is known of the API: `/data/v2/accounts/{}/balances`. */
  route: string;
  /** Of the answer that it ended with; absent if it ended without one. */
  status?: number;
  /** 0 if nothing was sent, because there was no token, or an interceptor of the application had not settled. */
  attempts: number;
  startedAt: Date;
  /** How long the caller waited: for a token, a connection and retries too. */
  durationMs: number;
  /** The service's own id of the call, if the answer has one. */
  correlationId?: string;
  /** The id that was sent: of `http.requestId`, or of the call's own header. */
  requestId?: string;
  /** The error's code; `aborted` if its caller ended it, `host_error` if a function of the host threw. */
  error?: string;
}

export type OnCall = (event: ServiceCallEvent) => void;

/** The host's listener, with the module's name in each event. */
export function ofModule(name: string | undefined, onCall: OnCall | undefined): OnCall | undefined {
  if (name === undefined) return onCall;
  return onCall && ((event) => onCall({ module: name, ...event }));
}

/** The code for the end of a call. @param signal its caller's */
export function codeOf(error: unknown, signal: AbortSignal | undefined): string {
  if (error instanceof ServiceError) return error.code;
  return signal?.aborted ? 'aborted' : 'host_error';
}

/** Tells the host of a call that has just ended. Whatever the listener does, the call is over. */
export function tellCall(onCall: OnCall, ended: Omit<ServiceCallEvent, 'startedAt'>): void {
  const event = { ...ended, startedAt: new Date(Date.now() - ended.durationMs) };
  const known = Object.entries(event).filter(([, value]) => value !== undefined);
  void harmless(() => onCall(Object.fromEntries(known) as unknown as ServiceCallEvent));
}
