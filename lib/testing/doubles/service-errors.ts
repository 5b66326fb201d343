import { STATUS_CODES } from 'node:http';
import { tokenRefusal } from '../../auth/endpoint/token-errors.js';
import { DEFAULTS } from '../../config/options.js';
import { variableOf } from '../../config/variables.js';
import {
  type CertificateSummary,
  type ConnectionErrorKind,
  describeLocation,
  type ServiceApiError,
  type ServiceCertificateError,
  type ServiceConnectionError,
  ServiceRequestError,
  ServiceTokenError,
  type TokenErrorCode,
} from '../../errors/index.js';
import { ExchangeFault } from '../../exchange/exchange.types.js';
import { Answer } from '../../http/answer.js';
import { answerError } from '../../http/answer-error.js';
import { Call } from '../../http/call.js';
import { type ErrorClient } from '../../http/client-context.js';
import { faultToError } from '../../http/fault-to-error.js';
import { certificateRefusedError } from '../../tls/certificate-error.js';
import { type GivenAnswer, toResponse } from './exchange-double.js';

/**
 * The call that an error is about. Left out: that of the double which throws it; before that GET /banks/v1, and of a 404
 * GET /banks/v1/1, since a collection that is missing is a wrong address.
 */
export interface FailingCall {
  method?: string | undefined;
  path?: string | undefined;
  /** Its key (`http.idempotencyHeader`): the error has it if the call may have been carried out. */
  idempotencyKey?: string | undefined;
}

export interface ApiErrorOptions extends FailingCall {
  /** `message` of the body (docs/service.md#errors). Default: the status in words. */
  message?: string | undefined;
  /** `status` of the body. Default: the status in capitals, for example `NOT_FOUND`. */
  status?: string | number | undefined;
  /** The JSON of the body, for `response.data`. Default: `timestamp`, `status`, `message` and `metadata`. */
  data?: unknown;
  correlationId?: string | undefined;
  /** Seconds. */
  retryAfter?: number | undefined;
}

export interface ConnectionErrorOptions extends FailingCall {
  /** A code of the operating system, Node or OpenSSL. */
  reason?: string | undefined;
  /** False: the request did not leave, so nothing was done. Default: whether it left, by kind. */
  sent?: boolean | undefined;
}

/** What differs from the usual answer of the token endpoint. */
export type TokenErrorOptions = {
  [Part in 'error' | 'error_description' | 'status' | 'scope' | 'retryAfter']?:
    ServiceTokenError[Part] | undefined;
};

/** The errors with which the real services reject, made as they make them; for doubles to throw. */
export const serviceErrors = {
  /**
   * The service answered with a failure (docs/service.md#errors).
   * @throws RangeError for a status that is no failure
   */
  api(status: number, options: ApiErrorOptions = {}): ServiceApiError {
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RangeError('The status of a failure is from 400 to 599');
    }
    const words = STATUS_CODES[status] ?? `Status ${status}`;
    const { status: name = words.toUpperCase().replace(/\W+/g, '_'), message = words } = options;
    const { data = { timestamp: new Date().toISOString(), status: name, message, metadata: null } } = options;
    const headers = {
      'x-correlation-id': options.correlationId,
      'retry-after': options.retryAfter?.toString(),
    };
    return errorOf({ status, data, headers }, options) as ServiceApiError;
  },

  /** The service answered 2xx with what is not JSON: code `invalid_response`. */
  invalidResponse(call: FailingCall = {}): ServiceApiError {
    return errorOf({ data: Buffer.from('<html>') }, call) as ServiceApiError;
  },

  /** There is no whole answer. `outcomeUnknown` is true for a call that may have been carried out. */
  connection(kind: ConnectionErrorKind, options: ConnectionErrorOptions = {}): ServiceConnectionError {
    const { reason = REASONS[kind], sent = kind === 'reset' || REASONS[kind] === undefined } = options;
    const limitMs = kind === 'timeout' ? 30_000 : undefined;
    const answer =
      kind === 'redirect'
        ? { status: 302, headers: { location: 'https://elsewhere.invalid/' } }
        : new ExchangeFault({ kind, phase: sent ? 'sent' : 'connecting', reason, limitMs });
    return errorOf(answer, options) as ServiceConnectionError;
  },

  /** No token could be had. */
  token(code: TokenErrorCode = 'token_refused', options: TokenErrorOptions = {}): ServiceTokenError {
    const scope = options.scope ?? 'api';
    const usual = TOKEN_FAULTS[code];
    if (typeof usual === 'string') return new ServiceTokenError({ ...options, scope, code, message: usual });
    const { status = usual.status, error = usual.error, error_description, retryAfter } = options;
    const json = { error, error_description };
    const place = { option: 'urls.sandboxAuthUrl', apiOption: BASE_OPTION, describeOption };
    return tokenRefusal({ status, json, scope, retryAfter, secrets: [], place });
  },

  /** The server refused the client certificate: code `certificate_refused`. */
  certificate(certificate?: CertificateSummary, reason?: string): ServiceCertificateError {
    return certificateRefusedError(certificate, reason, describeOption);
  },

  /** The caller's input was refused; the doubles do so themselves for input that the real services refuse. */
  request(property: string, message: string): ServiceRequestError {
    return ServiceRequestError.of(property, message);
  },
};

/** Of the mode that doubles have. */
const BASE_OPTION = 'urls.sandboxUrl';
/** The usual ones. But for a reset, they come before anything is sent. */
const REASONS: Partial<Record<ConnectionErrorKind, string>> = {
  reset: 'ECONNRESET',
  refused: 'ECONNREFUSED',
  dns: 'ENOTFOUND',
  tls: 'CERT_HAS_EXPIRED',
  proxy: 'ERR_PROXY_ECONNREFUSED',
};
/** What the token endpoint answers; a message if it is not asked, or its answer is no refusal. */
const TOKEN_FAULTS: Record<TokenErrorCode, string | { status: number; error?: string }> = {
  token_refused: { status: 401, error: 'invalid_client' },
  token_unavailable: { status: 503 },
  token_rate_limited: { status: 429 },
  invalid_token_response: 'The answer of the token endpoint is not usable',
  oauth_not_configured: 'A token needs OAuth credentials, and there are none',
  client_secret_unavailable: 'The client secret could not be read',
};

const describeOption = (option: string): string => describeLocation({ option, variable: variableOf(option) });

/** What errors tell of a client. */
const CLIENT = {
  options: {
    authentication: 'oauth',
    appTokenHeader: DEFAULTS.appTokenHeader,
    addresses: { baseUrl: 'https://service.invalid', baseOption: BASE_OPTION },
    http: { correlationIdHeader: 'x-correlation-id' },
    describeOption,
  },
  identity: {},
} as ErrorClient;

const ANSWER = Symbol('nestjs-service:answer');

/** What a double answers that throws this: the client then makes the error for its call. @throws any other error as it is */
export function answerOf(error: unknown): GivenAnswer {
  const answer = error instanceof Error && (error as { [ANSWER]?: GivenAnswer })[ANSWER];
  if (!answer) throw error;
  return answer;
}

/** The error of a call that is answered so; without a call of its own, that of the double which throws it. */
function errorOf(answer: GivenAnswer, { method, path, idempotencyKey }: FailingCall): Error {
  const isMissing = 'status' in answer && answer.status === 404;
  const url = new URL(path ?? (isMissing ? '/banks/v1/1' : '/banks/v1'), CLIENT.options.addresses.baseUrl);
  const call = new Call((method ?? 'GET').toUpperCase(), url, 0);
  call.setKey(idempotencyKey);
  const error = errorFor(answer, call);
  const isOfDouble = (method ?? path ?? idempotencyKey) === undefined;
  return isOfDouble ? Object.defineProperty(error, ANSWER, { value: answer }) : error;
}

function errorFor(answer: GivenAnswer, call: Call): Error {
  if (answer instanceof ExchangeFault) return faultToError(answer, call, CLIENT);
  const answered = new Answer(toResponse(answer), call, CLIENT);
  if (answered.response.status !== 200) return answerError(answered);
  try {
    answered.read(undefined);
  } catch (error) {
    return error as Error;
  }
  throw new TypeError('HEAD has no body');
}
