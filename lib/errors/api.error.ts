import { cleanText } from './clean-text.js';
import { type Explanation, hideFields, keepHidden, ServiceError } from './service.error.js';

/** The body of an error answer, as the service sends it (docs/service.md#errors). */
export interface ApiErrorBody {
  status?: string | number;
  /** A list is joined by `; `. Without it: `detail` or `title` of problem details (RFC 9457). */
  message?: string;
}

/** What front ends act on. Any other status may be text. */
const NAME = /^[A-Z][A-Z0-9_]{1,63}$/;

/** The service's name of the case, such as `CUSTOMER_ALREADY_EXISTS`; undefined if the body's status is none. */
export function caseOf({ status }: ApiErrorBody = {}): string | undefined {
  return typeof status === 'string' && NAME.test(status) ? status : undefined;
}

/** What the service answered, without credentials of this module; it may hold personal data. */
export interface ApiErrorResponse {
  readonly status: number;
  /** In lower case. Without `set-cookie`, `authorization` and the header of the app token. */
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON of the body. Undefined if it is not JSON, has more than 64 KiB, or holds a credential. */
  readonly data?: unknown;
}

/** What a {@link ServiceApiError} is made of. Default `code`: `api_error`; `retryable`: false. */
export interface ApiErrorDetails
  extends
    Explanation,
    Pick<ServiceApiError, 'status' | 'method' | 'path'>,
    Partial<Pick<ServiceApiError, 'code' | 'retryable'>>,
    Partial<Omit<ServiceApiError, 'status' | 'method' | 'path' | 'response' | keyof ServiceError>> {
  /** Makes {@link ServiceApiError.response}, each time that it is read. */
  response?: () => ApiErrorResponse;
  /** The credentials that a text of the answer may echo. */
  secrets?: () => readonly string[];
}

const SECRETS = Symbol('secrets');
/** Characters of a field that front ends get. */
const MAX_FIELD = 200;

/** The service answered with an error status, or with a body that cannot be used (docs/service.md#errors). */
export class ServiceApiError extends ServiceError {
  static {
    hideFields(this.prototype, ['path', 'response']);
  }

  /** `api_error`: an error status. `invalid_response`: a body that is not JSON, or that `parse` refused. */
  readonly code: 'api_error' | 'invalid_response';
  /** The HTTP status, which may differ from `body.status`. */
  readonly status: number;
  readonly body?: ApiErrorBody;
  readonly method: string;
  /** The path without ids: with `pathParams` the template, without them what is known of the API: `/data/v2/accounts/{}/balances`. */
  readonly route: string;
  /** The path without query, which may hold a customer's id: no log, JSON or printed form of the error shows it. */
  declare readonly path: string;
  /** The answer's correlation id, for questions to the service's support; else the one that was sent. */
  readonly correlationId?: string;
  /** Seconds, from the Retry-After of the answer. */
  readonly retryAfter?: number;
  /**
   * True if the service refused our credentials or client certificate: 401, 403, and a proxy's page about the client
   * certificate (400). A caller of the host cannot correct that.
   */
  readonly credentialFault: boolean;
  /**
   * True if a POST, PUT, PATCH or DELETE may have been carried out: a 408, a status of 500 or more, a page (HTML) with 401 or
   * 403 or about the client certificate, a success whose body cannot be used or that `parse` refused, or an earlier attempt
   * that may have been carried out.
   */
  readonly outcomeUnknown: boolean;
  /**
   * The key of the call (`http.idempotencyHeader`), if `outcomeUnknown` is true. The same call can be sent again with
   * it. For programs: do not show it to callers.
   */
  readonly idempotencyKey?: string;
  /**
   * The whole answer, for programs; also the body that `parse` refused. No log, JSON or printed form of the error shows it.
   */
  declare readonly response?: ApiErrorResponse;

  constructor(details: ApiErrorDetails) {
    super(details.message, details);
    this.code = details.code ?? 'api_error';
    this.status = details.status;
    this.body = details.body;
    this.method = details.method;
    this.route = details.route ?? details.path;
    this.correlationId = details.correlationId;
    this.retryAfter = details.retryAfter;
    this.credentialFault = details.credentialFault ?? false;
    this.outcomeUnknown = details.outcomeUnknown ?? false;
    this.idempotencyKey = details.idempotencyKey;
    keepHidden(this, { path: () => details.path, response: details.response });
    if (details.secrets) Object.defineProperty(this, SECRETS, { value: details.secrets });
  }
}

/**
 * The fields of these names in the service's answer: numbers, and texts, cleaned as its message is. Undefined if there is
 * none.
 */
export function fieldsOf(
  error: ServiceApiError & { [SECRETS]?: () => readonly string[] },
  names: readonly string[],
): Record<string, string | number> | undefined {
  if (names.length === 0) return undefined;
  const data = Object(error.response?.data) as Record<string, unknown>;
  const fields: [string, string | number][] = [];
  for (const name of names) {
    const value = Object.hasOwn(data, name) ? data[name] : undefined;
    if (typeof value === 'number' && Number.isFinite(value)) fields.push([name, value]);
    if (typeof value !== 'string') continue;
    const text = cleanText(value, error[SECRETS]?.() ?? [], MAX_FIELD);
    fields.push([name, text.length > MAX_FIELD ? `${text.slice(0, MAX_FIELD - 1)}…` : text]);
  }
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}
