import { isTransient, type ServiceConnectionError } from '../errors/index.js';
import { certificateVerdict, isCertain, isJsonObject, parseBody } from '../exchange/response.js';
import { type ExchangeFault, isUnsent, type Outcome } from '../exchange/fault.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { type Call } from './call.js';

// RFC 9110, 9.2.1: methods that change nothing on the server.
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);
/**
 * The statuses below 500 after which a later attempt may succeed. A server sends 408 mostly on a connection that it is about to close
 * (RFC 9110, 15.5.9), and 425 if it will not act on early data (RFC 8470, 5.2).
 */
const TEMPORARY = new Set([408, 425, 429]);
/** "Not Implemented" and "HTTP Version Not Supported". All other statuses from 500 on are temporary, also those of proxies, such as 520. */
const LASTING = new Set([501, 505]);

function isTemporary({ status }: ExchangeResponse): boolean {
  return TEMPORARY.has(status) || (status >= 500 && !LASTING.has(status));
}

/** Whether the call changes nothing: by its method, or because the caller says so (`readOnly`). */
export function isSafe({ method, details }: Pick<Call, 'method' | 'details'>): boolean {
  return details.readOnly === true || SAFE_METHODS.has(method);
}

/**
 * Whether the call may be sent again even if the service may have executed it: it changes nothing, has an idempotency key, or has the
 * same effect twice as once (`repeatable`).
 */
export function isRepeatable(call: Call): boolean {
  const { idempotencyKey, repeatable } = call.details;
  return isSafe(call) || idempotencyKey !== undefined || repeatable === true;
}

/**
 * Whether a call may be sent again after this response. After a 429 the service has done nothing, so any call may be sent again,
 * except a change without a key when the service says that the same change is in progress (DUPLICATED_REQUEST). The other
 * statuses may come after the service has acted.
 */
export function isRetryableResponse(call: Call, response: ExchangeResponse): boolean {
  const { status } = response;
  if (isRepeatable(call)) return isTemporary(response);
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
export function mayHaveActed(call: Call, outcome: Outcome): boolean {
  const { response, fault } = outcome;
  if (isSafe(call)) return false;
  if (call.mayHaveActed) return true;
  if (fault) return !cannotHaveActed(fault);
  const { status } = response;
  return status < 400 || status === 408 || status >= 500 || !isRefusedBeforeExecution(response);
}

/** The fields of an error that tell the caller whether the call may have been executed, and whether it may be sent again. */
export function outcomeFields(
  call: Call,
  outcome: Outcome,
): Pick<ServiceConnectionError, 'outcomeUnknown' | 'idempotencyKey' | 'retryable'> {
  const outcomeUnknown = mayHaveActed(call, outcome);
  const idempotencyKey = outcomeUnknown ? call.details.idempotencyKey : undefined;
  return { outcomeUnknown, idempotencyKey, retryable: isRetryableByCaller(call, outcome, outcomeUnknown) };
}

/**
 * Whether the caller may send the call again after it may have been executed. A generated key is lost when the call ends: only a key that
 * the caller supplied makes a later call with it safe.
 */
export function isRepeatableByCaller({ details }: Pick<Call, 'details'>): boolean {
  return details.hasCallerKey === true || details.repeatable === true;
}

function isRetryableByCaller(call: Call, { response, fault }: Outcome, outcomeUnknown: boolean): boolean {
  const isPassing = fault
    ? isTransient(fault) && !isCertain(fault.certificateVerdict)
    : isTemporary(response);
  if (isSafe(call)) return isPassing;
  if (isRepeatableByCaller(call)) return outcomeUnknown || isPassing;
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
