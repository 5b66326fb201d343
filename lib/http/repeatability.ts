import { isTransient, type ServiceConnectionError } from '../errors/index.js';
import { certificateVerdict, isCertain } from '../exchange/client-certificate.js';
import { isJsonObject, parseBody } from '../exchange/response.js';
import { type ExchangeFault, isUnsent, type Outcome } from '../exchange/fault.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { type Call } from './call.js';

// RFC 9110, 9.2.1: methods that change nothing on the server.
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);
// A server sends 408 mostly on a connection that it is about to close (RFC 9110, 15.5.9).
const RETRYABLE_STATUS = new Set([408, 429, 500, 502, 503, 504]);

/** Whether the call changes nothing: by its method, or because the caller says so (`readOnly`). */
export function isSafe({ method, details }: Pick<Call, 'method' | 'details'>): boolean {
  return details.readOnly === true || SAFE_METHODS.has(method);
}

/** Whether the call may be sent again even if the service may have executed it: it changes nothing, or has an idempotency key. */
export function isRepeatable(call: Call): boolean {
  return isSafe(call) || call.details.idempotencyKey !== undefined;
}

/**
 * Whether a call may be sent again after this response. After a 429 the service has done nothing, so any call may be sent again,
 * except a change without a key when the service says that the same change is in progress (DUPLICATED_REQUEST). The other
 * statuses may come after the service has acted.
 */
export function isRetryableResponse(call: Call, response: ExchangeResponse): boolean {
  const { status } = response;
  if (isRepeatable(call)) return RETRYABLE_STATUS.has(status);
  return status === 429 && !isDuplicate(response);
}

/** Whether the service refused the call because the same one is still in progress. */
export function isDuplicate(response: ExchangeResponse): boolean {
  if (response.status !== 429) return false;
  const json = parseBody(response);
  return isJsonObject(json) && json.status === 'DUPLICATED_REQUEST';
}

/** Whether the fault proves that the server did not act: there was no connection yet, or the server refused us in the handshake. */
function cannotHaveActed(fault: ExchangeFault): boolean {
  return isUnsent(fault) || fault.handshakeRefused;
}

/**
 * Whether a response below 500 came before the service could act. An HTML page may come from a firewall that inspects responses
 * after the service has acted, whatever the page says. A 401 with a Bearer challenge (RFC 6750, section 3) comes before.
 */
function isRefusedBeforeExecution(response: ExchangeResponse): boolean {
  if (certificateVerdict({ response }) === undefined) return true;
  return response.status === 401 && /^bearer\b/i.test(response.headers['www-authenticate'] ?? '');
}

/** Whether the service may have executed a call that changes something, in this attempt or an earlier one. */
export function isOutcomeUnknown(call: Call, outcome: Outcome): boolean {
  const { response, fault } = outcome;
  if (isSafe(call)) return false;
  if (call.outcomeUnknown) return true;
  if (fault) return !cannotHaveActed(fault);
  const { status } = response;
  return status < 400 || status === 408 || status >= 500 || !isRefusedBeforeExecution(response);
}

/** The fields of an error that tell the caller whether the call may have been executed, and whether it may be sent again. */
export function outcomeFields(
  call: Call,
  outcome: Outcome,
): Pick<ServiceConnectionError, 'outcomeUnknown' | 'idempotencyKey' | 'retryable'> {
  const outcomeUnknown = isOutcomeUnknown(call, outcome);
  const idempotencyKey = outcomeUnknown ? call.details.idempotencyKey : undefined;
  return { outcomeUnknown, idempotencyKey, retryable: isRetryableByCaller(call, outcome, outcomeUnknown) };
}

/** A generated key is lost when the call ends. Only a key that the caller supplied makes a later call with it safe. */
function isRetryableByCaller(call: Call, { response, fault }: Outcome, outcomeUnknown: boolean): boolean {
  const isPassing = fault
    ? isTransient(fault) && !isCertain(fault.certificateVerdict)
    : RETRYABLE_STATUS.has(response.status);
  if (isSafe(call)) return isPassing;
  if (call.details.hasCallerKey) return outcomeUnknown || isPassing;
  return isPassing && !outcomeUnknown && !(response && isDuplicate(response));
}

/** Whether a call may be sent again after this fault. */
export function isRetryableFault(call: Call, fault: ExchangeFault): boolean {
  if (fault.kind === 'closed' || isCertain(fault.certificateVerdict) || !isTransient(fault)) return false;
  return isRepeatable(call) || cannotHaveActed(fault);
}

const CAPACITY = 500;
const RETRY_COST = 5;
const TIMEOUT_COST = 10;

/**
 * Limits the retries of a whole client, so that a service in trouble does not get several times its normal load. The budget
 * is a token bucket: each retry takes units, and each successful call gives back what its last retry took (one unit if it had no
 * retry).
 */
export class RetryBudget {
  #left = CAPACITY;

  /** Takes the cost of a retry and returns it. Returns undefined, and takes nothing, if too little is left. */
  take(afterTimeout: boolean): number | undefined {
    const cost = afterTimeout ? TIMEOUT_COST : RETRY_COST;
    if (cost > this.#left) return undefined;
    this.#left -= cost;
    return cost;
  }

  giveBack(taken = 1): void {
    this.#left = Math.min(CAPACITY, this.#left + taken);
  }
}
