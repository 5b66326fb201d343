import { GUIDES } from '../version.js';

/** An error with a `code`, like those of Node. */
export function codedError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

/** The code of Node's errors if its permission model forbids something (https://nodejs.org/api/permissions.html). */
export const ACCESS_DENIED = 'ERR_ACCESS_DENIED';

/**
 * Why a call has no complete response. Kinds that need an explanation:
 * - `closed`: the client was closed, or the call's cancelToken was cancelled.
 * - `proxy`: the proxy of `http.proxy` cannot be reached, or it refused the connection.
 * - `network`: any network fault that is none of the other kinds.
 */
export type ConnectionErrorKind =
  | 'timeout'
  | 'reset'
  | 'refused'
  | 'dns'
  | 'tls'
  | 'redirect'
  | 'too_large'
  | 'protocol'
  | 'proxy'
  | 'closed'
  | 'network';

/**
 * - `token_refused`: the endpoint responded with an OAuth error (RFC 6749, 5.2) or another 4xx.
 * - `token_unavailable`: the endpoint decided nothing, so a later request may succeed: 5xx, 408, 425, an HTML page, or a 401
 *   or 403 without an OAuth error.
 * - `token_rate_limited`: the endpoint responded with 429, and its Retry-After has not passed yet.
 * - `invalid_token_response`: the response does not follow RFC 6749, 5.1 or docs/service.md#tokens.
 * - `oauth_not_configured`: a token was requested, but there are no OAuth credentials (docs/service.md#oauth).
 * - `client_secret_unavailable`: the client secret could not be read.
 */
export type TokenErrorCode =
  | 'token_refused'
  | 'token_unavailable'
  | 'token_rate_limited'
  | 'invalid_token_response'
  | 'oauth_not_configured'
  | 'client_secret_unavailable';

/** Every value of `ServiceError.code`. */
export type ServiceErrorCode =
  | 'invalid_configuration'
  | 'invalid_certificate'
  | 'certificate_refused'
  | 'startup_check_failed'
  | 'invalid_request'
  | 'api_error'
  | 'invalid_response'
  | `connection_${ConnectionErrorKind}`
  | TokenErrorCode;

const WORDS = Symbol('words');

/** The words by which the explanation of the error was chosen, for a log line; see explanations.ts. Undefined without such words. */
export function explanationWords(error: unknown): string | undefined {
  return error instanceof ServiceError ? (error as { [WORDS]?: string })[WORDS] : undefined;
}

/** What to do about an error. For operators of the application, never for its users. */
export interface Remedy {
  hint?: string;
  /** The options to check, the likeliest cause first: `['oauth.clientSecret', 'oauth.clientId']`. */
  options?: readonly string[];
}

/** What happened, and what to do about it. */
export interface Explanation extends Remedy {
  message: string;
  /** @internal The words by which the explanation was chosen; see explanations.ts. For the log line of a failed call only. */
  words?: string;
  /** Whether the message says that the call was or may have been executed, so that the hint need not say so. */
  saysOutcome?: boolean;
}

/** The fields that all classes of errors have in common. */
export type ErrorDetails = Omit<Explanation, 'message'> &
  Partial<Pick<ServiceError, 'retryable' | 'outcomeUnknown' | 'idempotencyKey'>>;

/**
 * The base class of all errors of this module. An error contains only plain values from an allow-list: no request, response
 * object, agent or error of a library, not even as `cause`. So printing an error never prints a key or a token.
 */
export abstract class ServiceError extends Error {
  /** A stable code for programs. Each class documents its codes. */
  abstract readonly code: ServiceErrorCode;
  /**
   * Whether a job queue may send the same call again later, because it may succeed then and does no harm. For a call that
   * changes something: true only if it was certainly not executed, or if the caller supplied an `idempotencyKey` or said that it is
   * `repeatable`.
   */
  readonly retryable: boolean;
  /**
   * True if the service may have executed a POST, PUT, PATCH or DELETE: find out whether it did before you send the call
   * again. False if the service certainly did nothing, and for calls that change nothing (GET, HEAD, OPTIONS, `readOnly`),
   * unless an interceptor of the application has sent a change within the call.
   */
  readonly outcomeUnknown: boolean;
  /**
   * The call's idempotency key (`http.idempotencyHeader`), if `outcomeUnknown` is true. Send the same call again with this
   * key. Do not show the key to users.
   */
  readonly idempotencyKey?: string;
  /** What to do, if known. For operators: do not show it to users of the application. */
  declare readonly hint?: string;
  /** The options that the hint is about, the likeliest cause first. */
  declare readonly options?: readonly string[];

  constructor(message: string, details: ErrorDetails = {}) {
    super(message);
    const { idempotencyKey, options, saysOutcome = false, words } = details;
    const { retryable = false, outcomeUnknown = false } = details;
    // Not enumerable, so that nothing prints or copies the words but copyError().
    if (words !== undefined) Object.defineProperty(this, WORDS, { value: words });
    const hint = outcomeUnknown && !saysOutcome ? explainDoubt(details, details.hint) : details.hint;
    this.retryable = retryable;
    this.outcomeUnknown = outcomeUnknown;
    this.idempotencyKey = idempotencyKey;
    // Not enumerable, like the name of Node's own errors.
    Object.defineProperty(this, 'name', { value: new.target.name, configurable: true, writable: true });
    // V8 keeps the objects of all frames until the stack is read for the first time.
    const { stack } = this;
    if (hint === undefined) return;
    Object.assign(this, { hint, options });
    // Many loggers print only the stack.
    this.stack = stack?.replace(message, () => `${message}\n${hint}`);
  }

  /** The name, the message, and the documented fields of the class. */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...Object.fromEntries(Object.entries(this)) };
  }
}

const DOUBT = 'The request may have been executed:';
const WITH_KEY = `${DOUBT} send it again later with the same idempotencyKey.`;
const REPEAT = `${DOUBT} send it again later.`;
const FIND_OUT = `${DOUBT} find out whether it was before you send it again (${GUIDES}/troubleshooting.md#an-unknown-outcome).`;

/** What to do first, before any other hint: a payment that is sent again without a look may be paid twice. */
function explainDoubt(
  { retryable, idempotencyKey }: Pick<ErrorDetails, 'retryable' | 'idempotencyKey'>,
  hint?: string,
): string {
  const repeat = idempotencyKey === undefined ? REPEAT : WITH_KEY;
  return [retryable ? repeat : FIND_OUT, hint].filter(Boolean).join(' ');
}

const HIDDEN = Symbol('hidden');
type Hidden = Readonly<Record<string, (() => unknown) | undefined>>;

/**
 * Defines getters for fields that programs may read, but that nothing prints or copies: no JSON, no spread, no `%o` of
 * util.format().
 *
 * util.inspect({ showHidden, getters }) also reads getters of prototypes, but stops at the first prototype whose
 * `constructor` is a built-in. So the getters are on a prototype of their own, whose constructor is `Error`.
 */
export function hideFields(prototype: ServiceError, names: readonly string[]): void {
  const getterOf = (name: string): PropertyDescriptor => ({
    get(this: { [HIDDEN]?: Hidden }) {
      return this[HIDDEN]?.[name]?.();
    },
  });
  const getters = Object.fromEntries(names.map((name) => [name, getterOf(name)]));
  const properties = { constructor: { value: Error }, ...getters };
  const above = Object.getPrototypeOf(prototype) as object;
  Object.setPrototypeOf(prototype, Object.create(above, properties) as object);
}

/**
 * Keeps the values of the fields that {@link hideFields} defines.
 * @param values functions, because inspect({ showHidden }) prints a plain value but does not call a function
 */
export function keepHidden(error: ServiceError, values: Hidden): void {
  Object.defineProperty(error, HIDDEN, { value: values });
}

/**
 * Copies an error for one of several callers that share its cause, for example a token request. Callers may write to their
 * error: applications add fields, and axios appends each caller's stack, so a shared stack would grow with every caller.
 * Errors of other classes are returned as they are.
 * @param changes fields of the copy
 */
export function copyError(error: Error, changes: { stack?: string } = {}): Error {
  if (!(error instanceof ServiceError)) return error;
  const copy = Object.setPrototypeOf(new Error(), Object.getPrototypeOf(error) as object) as Error;
  // Lets V8 forget the frames, and the objects in them.
  copy.stack = '';
  // In Node 22, `stack` is a getter that works only on the error that it belongs to, so copy its value.
  const { stack: value = error.stack, ...fields } = changes;
  return Object.defineProperties(copy, {
    ...Object.getOwnPropertyDescriptors(error),
    ...Object.getOwnPropertyDescriptors(fields),
    stack: { value, configurable: true, writable: true },
  });
}

/**
 * Makes the error of a call in which another request may have been executed than the one that the error is about. It is a copy,
 * because the host application may share or keep the error itself. An error that already says the same is returned as it is.
 * @param doubt what the caller may do after it has found the outcome unknown
 */
export function withDoubt(
  error: ServiceError,
  { retryable, idempotencyKey }: Pick<ServiceError, 'retryable' | 'idempotencyKey'>,
): ServiceError {
  const { outcomeUnknown, message, stack } = error;
  const isSame = error.retryable === retryable && error.idempotencyKey === idempotencyKey;
  if (outcomeUnknown && isSame) return error;
  const others = error.hint?.replace(WITH_KEY, '').replace(REPEAT, '').replace(FIND_OUT, '').trim();
  const hint = explainDoubt({ retryable, idempotencyKey }, others);
  const shown = error.hint === undefined ? message : `${message}\n${error.hint}`;
  const changes = { retryable, outcomeUnknown: true, idempotencyKey, hint };
  const changed = stack?.replace(shown, () => `${message}\n${hint}`);
  return copyError(error, { ...changes, stack: changed }) as ServiceError;
}

/** Whether an error is one of this module's: the same as `error instanceof ServiceError`. */
export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof ServiceError;
}

/** The message as a sentence. It may end in a text of the service, which may lack the full stop. */
export function messageSentence({ message }: ServiceError): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/** The log line for an error: its code and message, the correlation id for the service's support, and what to do. */
export function describeError(error: ServiceError): string {
  const { code, hint, correlationId }: ServiceError & { correlationId?: string } = error;
  const message = error.message.replace(/\.$/, '');
  const id = correlationId && `correlation id ${correlationId}`;
  const said = [`${code}: ${message}`, id].filter(Boolean).join('; ');
  return hint ? `${said}. ${hint}` : said;
}
