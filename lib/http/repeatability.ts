import { isTransient, type ServiceConnectionError } from '../errors/index.js';
import { certificateVerdict, isJsonObject, parseBody } from '../exchange/response.js';
import { type ExchangeFault, isUnsent, type Outcome } from '../exchange/fault.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { type Call } from './call.js';

// RFC 9110, 9.2.1: methods that change nothing on the server.
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);
// A server sends 408 mostly on a connection that it is about to close (RFC 9110, 15.5.9).
const RETRYABLE_STATUS = new Set([408, 429, 500, 502, 503, 504]);

type CallTraits = Pick<Call, 'method'> & Partial<Pick<Call, 'readOnly' | 'idempotencyKey'>>;

/** Whether the call changes nothing: by its method, or because the caller says so (`readOnly`). */
export function isSafe({ method, readOnly }: CallTraits): boolean {
  return readOnly === true || SAFE_METHODS.has(method);
}

/** Whether the call may be sent again even if the service may have executed it: it changes nothing, or has an idempotency key. */
export function isRepeatable(call: CallTraits): boolean {
  return isSafe(call) || call.idempotencyKey !== undefined;
}

/**
 * Whether a call may be sent again after this response. After a 429 the service has done nothing, so any call may be sent again,
 * except a change without a key when the service says that the same change is in progress (DUPLICATED_REQUEST). The other
 * statuses may come after the service has acted.
 */
export function isRetryableResponse(call: CallTraits, response: ExchangeResponse): boolean {
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
  return isUnsent(fault) || fault.refusedInHandshake;
}

/**
 * Whether a response below 500 came before the service could act. An HTML page may come from a firewall that inspects responses
 * after the service has acted, whatever the page says. A 401 with a Bearer challenge (RFC 6750, section 3) comes before.
 */
function isRefusedBeforeExecution(response: ExchangeResponse): boolean {
  if (certificateVerdict(response) === undefined) return true;
  return response.status === 401 && /^bearer\b/i.test(response.headers['www-authenticate'] ?? '');
}

/** Whether the service may have executed a call that changes something, in this attempt or an earlier one. */
export function isOutcomeUnknown(
  call: CallTraits & Partial<Pick<Call, 'outcomeUnknown'>>,
  outcome: Outcome,
): boolean {
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
  const idempotencyKey = outcomeUnknown ? call.idempotencyKey : undefined;
  return { outcomeUnknown, idempotencyKey, retryable: isRetryableByCaller(call, outcome, outcomeUnknown) };
}

/** A generated key is lost when the call ends. Only a key that the caller supplied makes a later call with it safe. */
function isRetryableByCaller(call: Call, { response, fault }: Outcome, outcomeUnknown: boolean): boolean {
  const isPassing = fault
    ? isTransient(fault) && !fault.certificateRefused
    : RETRYABLE_STATUS.has(response.status);
  if (isSafe(call)) return isPassing;
  if (call.hasCallerKey) return outcomeUnknown || isPassing;
  return isPassing && !outcomeUnknown && !(response && isDuplicate(response));
}

/** Whether a call may be sent again after this fault. */
export function isRetryableFault(call: CallTraits, fault: ExchangeFault): boolean {
  if (fault.kind === 'closed' || fault.certificateRefused || !isTransient(fault)) return false;
  return isRepeatable(call) || cannotHaveActed(fault);
}
