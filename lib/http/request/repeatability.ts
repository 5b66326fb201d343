import { isTransient, type ServiceConnectionError } from '../../errors/index.js';
import { certificateVerdict } from '../../exchange/certificate-refusal.js';
import {
  type ExchangeFault,
  type ExchangeResponse,
  isUnsent,
  type Outcome,
} from '../../exchange/exchange.types.js';
import { isJsonObject, parseJson } from '../../exchange/decode.js';
import { type Call } from './call.js';

// RFC 9110, 9.2.1: methods that change nothing on the server.
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);
// 408: mostly a connection that a server was about to close (RFC 9110, 15.5.9).
const RETRYABLE_STATUS = new Set([408, 500, 502, 503, 504]);

type Repeated = Pick<Call, 'method'> & Partial<Pick<Call, 'readOnly' | 'idempotencyKey'>>;

/** Whether it changes nothing. */
export function isSafe({ method, readOnly }: Repeated): boolean {
  return readOnly === true || SAFE_METHODS.has(method);
}

/** Whether it may be sent again even if the service may have acted: it changes nothing, or has a key. */
export function isRepeatable(call: Repeated): boolean {
  return isSafe(call) || call.idempotencyKey !== undefined;
}

/**
 * After a 429 nothing was done, so any call may be sent again. The exception is a change without a key, if the service says
 * that the same one is under way. The other statuses may come after the server acted.
 */
export function isRetryableAnswer(call: Repeated, response: ExchangeResponse): boolean {
  const { status } = response;
  if (isRepeatable(call)) return status === 429 || RETRYABLE_STATUS.has(status);
  return status === 429 && !isDuplicate(response);
}

/** The same work is under way. */
export function isDuplicate({ status, body }: Pick<ExchangeResponse, 'status' | 'body'>): boolean {
  if (status !== 429) return false;
  const json = parseJson(body.toString('utf8'));
  return isJsonObject(json) && json.status === 'DUPLICATED_REQUEST';
}

/** The server cannot have acted: there was no connection yet, or it refused us in the handshake. */
function cannotHaveActed(fault: ExchangeFault): boolean {
  return isUnsent(fault) || fault.refusedInHandshake;
}

/**
 * Whether an answer that refuses our credentials or certificate came before the service could act. A page may come from a
 * firewall that looks at answers after the application acted, whatever the page says. A challenge (RFC 6750, 3) asks for
 * another token, so it comes first.
 */
function isRefusedBefore(response: ExchangeResponse): boolean {
  if (certificateVerdict(response) === undefined) return true;
  return response.status === 401 && /^bearer\b/i.test(response.headers['www-authenticate'] ?? '');
}

/** Whether the service may have carried out a call that changes something, in this attempt or an earlier one. */
export function isOutcomeUnknown(
  call: Repeated & Partial<Pick<Call, 'outcomeUnknown'>>,
  outcome: Outcome,
): boolean {
  const { response, fault } = outcome;
  if (isSafe(call)) return false;
  if (call.outcomeUnknown) return true;
  if (fault) return !cannotHaveActed(fault);
  const { status } = response;
  return status < 400 || status === 408 || status >= 500 || !isRefusedBefore(response);
}

/** What {@link isOutcomeUnknown} says, as fields of an error, with the key by which the call can be sent again. */
export function outcomeFields(
  call: Call,
  outcome: Outcome,
): Pick<ServiceConnectionError, 'outcomeUnknown' | 'idempotencyKey' | 'retryable'> {
  const outcomeUnknown = isOutcomeUnknown(call, outcome);
  const idempotencyKey = outcomeUnknown ? call.idempotencyKey : undefined;
  return { outcomeUnknown, idempotencyKey, retryable: mayBeSentLater(call, outcome, outcomeUnknown) };
}

/** A random key is lost with its call, so that only a caller's own makes a change repeatable later. */
function mayBeSentLater(call: Call, { response, fault }: Outcome, outcomeUnknown: boolean): boolean {
  const isPassing = fault
    ? isTransient(fault) && !fault.certificateRefused
    : response.status === 429 || RETRYABLE_STATUS.has(response.status);
  if (isSafe(call)) return isPassing;
  if (call.isKeyNamed) return outcomeUnknown || isPassing;
  return isPassing && !outcomeUnknown && !(response && isDuplicate(response));
}

/** Whether the same call may be sent again after a fault. */
export function isRetryableFault(call: Repeated, fault: ExchangeFault): boolean {
  if (fault.kind === 'closed' || fault.certificateRefused || !isTransient(fault)) return false;
  return isRepeatable(call) || cannotHaveActed(fault);
}

const CAPACITY = 500;
const RETRY_COST = 5;
const TIMEOUT_COST = 10;

/**
 * Bounds the retries of a whole module, so that a service in trouble is not given several times its load: a retry
 * takes tokens, a call that succeeds gives back what its last retry took, or one.
 */
export class RetryBudget {
  #tokens = CAPACITY;

  /** Takes the cost of a retry and returns it; undefined if the budget does not allow one. */
  take(afterTimeout: boolean): number | undefined {
    const cost = afterTimeout ? TIMEOUT_COST : RETRY_COST;
    if (cost > this.#tokens) return undefined;
    this.#tokens -= cost;
    return cost;
  }

  giveBack(taken = 1): void {
    this.#tokens = Math.min(CAPACITY, this.#tokens + taken);
  }
}
