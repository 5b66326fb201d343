import { ServiceApiError } from './api.error.js';
import { ServiceConnectionError } from './connection.error.js';
import { type ServiceErrorCode } from './error-codes.js';
import { type RequestFault, ServiceRequestError } from './request.error.js';
import { type ServiceError } from './service.error.js';
import { ServiceTokenError } from './token.error.js';

/** What an answer or a line of the log is made of. */
export interface ErrorFields {
  code: ServiceErrorCode;
  message: string;
  hint?: string;
  status?: number;
  /** That of `body`. */
  bodyMessage?: string;
  method?: string;
  path?: string;
  correlationId?: string;
  /** Finite, and from 0. */
  retryAfter?: number;
  outcomeUnknown: boolean;
  credentialFault: boolean;
  faults: RequestFault[];
}

/**
 * Reads an error as any object: one of another copy of the package, or one that a host made up, may lack fields, or have
 * some of other types, or that throw.
 */
export function fieldsOf(error: ServiceError): ErrorFields {
  const faults = read(error, 'faults');
  const retryAfter = numberOf(error, 'retryAfter') ?? -1;
  return {
    code: (textOf(error, 'code') as ServiceErrorCode | undefined) ?? codeOf(error),
    message: textOf(error, 'message') ?? 'The call failed.',
    hint: textOf(error, 'hint'),
    status: numberOf(error, 'status'),
    bodyMessage: textOf(read(error, 'body'), 'message'),
    method: textOf(error, 'method'),
    path: textOf(error, 'path'),
    correlationId: textOf(error, 'correlationId'),
    retryAfter: retryAfter < 0 ? undefined : retryAfter,
    outcomeUnknown: Boolean(read(error, 'outcomeUnknown')),
    credentialFault: Boolean(read(error, 'credentialFault')),
    faults: (Array.isArray(faults) ? faults : []).map((fault) => ({
      property: textOf(fault, 'property') ?? 'the input',
      message: textOf(fault, 'message') ?? 'is not valid',
    })),
  };
}

/** For an error without a code. */
function codeOf(error: ServiceError): ServiceErrorCode {
  if (error instanceof ServiceApiError) return 'api_error';
  if (error instanceof ServiceConnectionError) return 'connection_network';
  if (error instanceof ServiceTokenError) return 'token_unavailable';
  return error instanceof ServiceRequestError ? 'invalid_request' : 'invalid_configuration';
}

function textOf(thing: unknown, name: string): string | undefined {
  const value = read(thing, name);
  return typeof value === 'string' ? value : undefined;
}

function numberOf(thing: unknown, name: string): number | undefined {
  const value = read(thing, name);
  return Number.isFinite(value) ? (value as number) : undefined;
}

function read(thing: unknown, name: string): unknown {
  try {
    return (thing as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}
