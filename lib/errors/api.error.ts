import { cleanText, NOT_SHOWN } from './clean-text.js';
import {
  type ErrorDetails,
  type Explanation,
  hideFields,
  keepHidden,
  ServiceError,
} from './service.error.js';

/** The body of an error response, as the service sends it (docs/service.md#errors). */
export interface ApiErrorBody {
  status?: string | number;
  /** A list of messages is joined by `; `. If there is no `message`: `detail` or `title` of problem details (RFC 9457). */
  message?: string;
}

/** Only a status of this form is an error code that a front end can act on. Any other may be a sentence. */
const ERROR_CODE = /^[A-Z][A-Z0-9_]{1,63}$/;

/** The service's error code, such as `CUSTOMER_ALREADY_EXISTS`; undefined if the body has none. */
export function serviceErrorCode({ status }: ApiErrorBody = {}): string | undefined {
  return typeof status === 'string' && ERROR_CODE.test(status) ? status : undefined;
}

/** The whole response of the service, without the credentials of this module. It may contain personal data. */
export interface ApiErrorResponse {
  readonly status: number;
  /** In lower case. Without `set-cookie`, `authorization` and the header of the app token. */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed JSON body. Undefined if the body is not JSON, is larger than 64 KiB, or contains a credential. */
  readonly data?: unknown;
}

/** The fields of a {@link ServiceApiError}. Default `code`: `api_error`. Default `retryable`: false. */
export interface ApiErrorDetails
  extends
    Explanation,
    ErrorDetails,
    Pick<ServiceApiError, 'status' | 'method' | 'path'>,
    Partial<Pick<ServiceApiError, 'code'>>,
    Partial<Omit<ServiceApiError, 'status' | 'method' | 'path' | 'response' | keyof ServiceError>> {
  /** Called each time that {@link ServiceApiError.response} is read. */
  response?: () => ApiErrorResponse;
  /** The names of the fields that findSecretFields() has found. */
  secretFields?: readonly string[];
}

const SECRET_FIELDS = Symbol('secretFields');
/** The most characters of a field that is passed on to front ends. */
const MAX_FIELD_LENGTH = 200;

/** The service responded with an error status, or with a body that cannot be used (docs/service.md#errors). */
export class ServiceApiError extends ServiceError {
  /** @internal A bundler may rename the class. */
  static override readonly name: string = 'ServiceApiError';
  static {
    hideFields(this.prototype, ['path', 'response']);
  }

  /** `api_error`: an error status. `invalid_response`: a body that is not JSON, or that `parse` refused. */
  readonly code: 'api_error' | 'invalid_response';
  /** The HTTP status, which may differ from `body.status`. */
  readonly status: number;
  readonly body?: ApiErrorBody;
  readonly method: string;
  /**
   * The path without ids: with `pathParams` its template, such as `/data/v2/accounts/{account_id}/balances`. Without them,
   * each segment that may be an id is `{}`: `/data/v2/accounts/{}/balances`.
   */
  readonly route: string;
  /** The path without its query. It may contain a customer's id, so logs, JSON and printed forms of the error omit it. */
  declare readonly path: string;
  /** The response's correlation id, for questions to the service's support. If it has none, the id that was sent. */
  readonly correlationId?: string;
  /** Seconds to wait, from the response's Retry-After header. */
  readonly retryAfter?: number;
  /**
   * True if the service refused the application's credentials or client certificate: 401, 403, nginx's 495 and 496, and a
   * proxy's page about the client certificate (400). A user of the application cannot correct that. False for the 403
   * `CONSENT_EXPIRED`, which a user can correct.
   */
  readonly credentialFault: boolean;
  /**
   * The whole response, including a body that `parse` refused. Logs, JSON and printed forms of the error omit it.
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
    // These functions must not hold `details`, because an error may be kept for long, for example by a queue.
    const { path, response, secretFields = [] } = details;
    keepHidden(this, { path: () => path, response });
    if (secretFields.length > 0) Object.defineProperty(this, SECRET_FIELDS, { value: secretFields });
  }
}

/** Finds the fields of a body whose text repeats a credential or a part of one. */
export function findSecretFields(body: Record<string, unknown>, secrets: readonly string[]): string[] {
  const isSecret = (value: unknown): boolean =>
    typeof value === 'string' && cleanText(value, secrets, MAX_FIELD_LENGTH) === NOT_SHOWN;
  return Object.keys(body).filter((name) => isSecret(body[name]));
}

/**
 * Picks the numbers and texts with these names from the service's response. Texts are cleaned like its message. Undefined
 * if the response has none of them.
 */
export function pickFields(
  error: ServiceApiError & { [SECRET_FIELDS]?: readonly string[] },
  names: readonly string[],
): Record<string, string | number> | undefined {
  if (names.length === 0) return undefined;
  const data = Object(error.response?.data) as Record<string, unknown>;
  const fields: [string, string | number][] = [];
  for (const name of names) {
    const value = Object.hasOwn(data, name) ? data[name] : undefined;
    if (typeof value === 'number' && Number.isFinite(value)) fields.push([name, value]);
    if (typeof value !== 'string') continue;
    const isSecret = error[SECRET_FIELDS]?.includes(name);
    const text = isSecret ? NOT_SHOWN : cleanText(value, [], MAX_FIELD_LENGTH);
    fields.push([name, text.length > MAX_FIELD_LENGTH ? `${text.slice(0, MAX_FIELD_LENGTH - 1)}…` : text]);
  }
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}
