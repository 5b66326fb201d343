import { STATUS_CODES } from 'node:http';
import { tokenRefusal } from '../../auth/endpoint/token-errors.js';
import { Options } from '../../config/options.js';
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
import { isJsonObject } from '../../exchange/response.js';
import { ExchangeFault } from '../../exchange/fault.js';
import { CallResponse } from '../../http/call-response.js';
import { toResponseError, faultToError } from '../../http/call-error.js';
import { Call, type ErrorClient } from '../../http/call.js';
import { certificateRefusedError } from '../../tls/certificate-summary.js';
import { type GivenAnswer, toExchangeResponse } from './exchange-double.js';

/**
 * The call that the error names. By default an error that a double throws names the call of that double. An error that is
 * not thrown by a double names GET /banks/v1, or GET /banks/v1/1 for a 404: a 404 of the collection itself would be
 * explained as a wrong address.
 */
export interface FailingCall {
  method?: string | undefined;
  path?: string | undefined;
  /** The idempotency key of the call. The error contains it if the call may have been executed. */
  idempotencyKey?: string | undefined;
}

export interface ApiErrorOptions extends FailingCall {
  /** `message` of the body (docs/service.md#errors). Default: the reason phrase, for example `Not Found`. */
  message?: string | undefined;
  /** `status` of the body. Default: the reason phrase as a code, for example `NOT_FOUND`. */
  status?: string | number | undefined;
  /**
   * The JSON of the body, for `response.data`. Default: `timestamp`, `status`, `message` and `metadata`. If `status` or
   * `message` is given too, an object gets it as well.
   */
  data?: unknown;
  correlationId?: string | undefined;
  /** Seconds. */
  retryAfter?: number | undefined;
}

export interface ConnectionErrorOptions extends FailingCall {
  /** A code of the operating system, Node or OpenSSL. */
  reason?: string | undefined;
  /** Whether the request was sent. If false, it was certainly not executed. The default depends on the kind. */
  sent?: boolean | undefined;
}

/** The fields of a token error that differ from the defaults of its code. */
export type TokenErrorOptions = {
  [Part in 'error' | 'error_description' | 'status' | 'scope' | 'retryAfter']?:
    ServiceTokenError[Part] | undefined;
};

/** Makes the errors with which the real services reject, by the same code. A double can throw them. */
export const serviceErrors = {
  /**
   * The service responded with an error status (docs/service.md#errors).
   *
   * @throws RangeError for a status outside 400 to 599
   */
  api(status: number, options: ApiErrorOptions = {}): ServiceApiError {
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RangeError('The status of an error must be from 400 to 599');
    }
    const words = STATUS_CODES[status] ?? `Status ${status}`;
    const { status: name = words.toUpperCase().replace(/\W+/g, '_'), message = words } = options;
    const said = Object.entries({ status: options.status, message: options.message });
    const given = Object.fromEntries(said.filter(([, value]) => value !== undefined));
    const body = { timestamp: new Date().toISOString(), status: name, message, metadata: null };
    const { data = body } = options;
    const headers = {
      'x-correlation-id': options.correlationId,
      'retry-after': options.retryAfter?.toString(),
    };
    const isMixed = isJsonObject(data) && Object.keys(given).length > 0;
    const whole = isMixed ? { ...body, ...data, ...given } : data;
    return makeError({ status, data: whole, headers }, options) as ServiceApiError;
  },

  /** The service responded with 2xx and something other than JSON: code `invalid_response`. */
  invalidResponse(call: FailingCall = {}): ServiceApiError {
    return makeError({ data: Buffer.from('<html>') }, call) as ServiceApiError;
  },

  /** No complete response arrived. `outcomeUnknown` is true for a call that may have been executed. */
  connection(kind: ConnectionErrorKind, options: ConnectionErrorOptions = {}): ServiceConnectionError {
    const { reason = REASONS[kind], sent = kind === 'reset' || REASONS[kind] === undefined } = options;
    const limitMs = kind === 'timeout' ? 30_000 : undefined;
    const answer =
      kind === 'redirect'
        ? { status: 302, headers: { location: 'https://elsewhere.invalid/' } }
        : new ExchangeFault({ kind, phase: sent ? 'sent' : 'connecting', reason, limitMs });
    return makeError(answer, options) as ServiceConnectionError;
  },

  /** No token could be obtained. */
  token(code: TokenErrorCode = 'token_refused', options: TokenErrorOptions = {}): ServiceTokenError {
    const scope = options.scope ?? 'api';
    const usual = TOKEN_FAULTS[code];
    if (typeof usual === 'string') return new ServiceTokenError({ ...options, scope, code, message: usual });
    const { status = usual.status, error = usual.error, error_description, retryAfter } = options;
    const response = toExchangeResponse({ status, data: { error, error_description } });
    const url = new URL('https://auth.invalid/oauth2/token');
    const place = { url, option: 'urls.sandboxAuthUrl', apiOption: BASE_OPTION, describeOption };
    return tokenRefusal(response, { scope, retryAfter, secrets: [], place });
  },

  /** The server refused the client certificate: code `certificate_refused`. */
  certificate(certificate?: CertificateSummary, reason?: string): ServiceCertificateError {
    const isSent = certificate && !reason?.endsWith('_CERTIFICATE_REQUIRED');
    const words = [
      'api fault tls sent',
      reason,
      isSent ? 'certificate-refused' : 'certificate-not-sent',
      !certificate && 'no-certificate',
    ];
    return certificateRefusedError(words, { certificate, reason }, describeOption);
  },

  /** The input of a call was refused. Doubles already check their input like the real services. */
  request(property: string, message: string): ServiceRequestError {
    return ServiceRequestError.of(property, message);
  },
};

/** The option with the API's address in the mode of the doubles: sandbox, OAuth. */
const BASE_OPTION = 'urls.sandboxUrl';
/** The usual reason of each kind. All except a reset happen before the request is sent. */
const REASONS: Partial<Record<ConnectionErrorKind, string>> = {
  reset: 'ECONNRESET',
  refused: 'ECONNREFUSED',
  dns: 'ENOTFOUND',
  tls: 'CERT_HAS_EXPIRED',
  proxy: 'ERR_PROXY_ECONNREFUSED',
};
/** For each code, the response of the token endpoint that leads to it, or a text: the message of an error that has no response. */
const TOKEN_FAULTS: Record<TokenErrorCode, string | { status: number; error?: string }> = {
  token_refused: { status: 401, error: 'invalid_client' },
  token_unavailable: { status: 503 },
  token_rate_limited: { status: 429 },
  invalid_token_response: 'The response of the token endpoint is not usable',
  oauth_not_configured: 'A token needs OAuth credentials, and there are none',
  client_secret_unavailable: 'The client secret could not be read',
};

const describeOption = (option: string): string => describeLocation({ option, variable: variableOf(option) });

/** The facts about a client that its errors mention. */
const CLIENT = {
  options: {
    authentication: 'oauth',
    appTokenHeader: new Options().appTokenHeader,
    addresses: { baseUrl: 'https://service.invalid', baseOption: BASE_OPTION },
    http: { correlationIdHeader: 'x-correlation-id' },
    describeOption,
  },
  identity: {},
} as ErrorClient;

const ANSWER = Symbol('nestjs-service:answer');

/**
 * If a double throws an error of `serviceErrors`, this returns the response behind it, so that the client makes the error
 * again for the call of the double: with its method and path. Rethrows any other error.
 */
export function answerForThrown(error: unknown): GivenAnswer {
  const answer = error instanceof Error && (error as { [ANSWER]?: GivenAnswer })[ANSWER];
  if (!answer) throw error;
  return answer;
}

/** Makes the error of a call with this response. If the test names no call, it remembers the response for {@link answerForThrown}. */
function makeError(answer: GivenAnswer, { method, path, idempotencyKey }: FailingCall): Error {
  const isMissing = 'status' in answer && answer.status === 404;
  const url = new URL(path ?? (isMissing ? '/banks/v1/1' : '/banks/v1'), CLIENT.options.addresses.baseUrl);
  const details = { idempotencyKey, hasCallerKey: idempotencyKey !== undefined };
  const call = new Call((method ?? 'GET').toUpperCase(), url, 0, details);
  const error = readErrorFrom(answer, call);
  const isOfDouble = (method ?? path ?? idempotencyKey) === undefined;
  return isOfDouble ? Object.defineProperty(error, ANSWER, { value: answer }) : error;
}

/** Lets the client's own code make the error. */
function readErrorFrom(answer: GivenAnswer, call: Call): Error {
  if (answer instanceof ExchangeFault) return faultToError(answer, call, CLIENT);
  const answered = new CallResponse(toExchangeResponse(answer), call, CLIENT);
  if (answered.received.status !== 200) return toResponseError(answered);
  try {
    answered.readBody(undefined);
  } catch (error) {
    return error as Error;
  }
  throw new TypeError('HEAD has no body');
}
