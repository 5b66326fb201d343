import { ServiceApiError } from './api.error.js';
import { ServiceConnectionError } from './connection.error.js';
import { type ServiceError } from './service.error.js';

/** What happened, as a sentence: that of an API error with its call and status, which the service's own text leaves out. */
export function whatHappened(error: ServiceError): string {
  if (!(error instanceof ServiceApiError) || error.body?.message !== error.message) return error.message;
  return `${error.method} ${error.path}: HTTP ${error.status} ("${error.message}").`;
}

/** For the log, what an operator needs: what happened, how the service's support finds it, and what to do. */
export function describeError(error: ServiceError): string {
  const { code, hint } = error;
  const message = whatHappened(error).replace(/\.$/, '');
  const isOfCall = error instanceof ServiceApiError || error instanceof ServiceConnectionError;
  const { method, path, correlationId } = isOfCall ? error : {};
  const call = path === undefined || message.includes(path) ? '' : `${method} ${path}: `;
  const doubt =
    error instanceof ServiceConnectionError && error.outcomeUnknown && 'it may have been carried out';
  const id = correlationId && `correlation id ${correlationId}`;
  const said = [`${code}: ${call}${message}`, doubt, id].filter(Boolean).join('; ');
  return hint ? `${said}. ${hint}` : said;
}
