import { allowManyListeners, DAY_MS } from '../time/time.js';
import { ServiceRequestError } from '../errors/index.js';
import { type ServiceCallEvent } from '../telemetry/telemetry.js';
import {
  Flag,
  FlagOrNames,
  type Given,
  IsFunction,
  IsHeaderName,
  IsHeaders,
  IsProductTokens,
  IsProxy,
  OptionsSection,
  WholeNumber,
} from './option.js';
import { RESOURCE_NAMES, type ResourceName } from './names.js';

/** The maximum size of a response's body in bytes. A string in Node cannot have 512 MiB. */
export const MAX_RESPONSE_BYTES = 500 * 1024 * 1024;

/**
 * Checks the `timeout` option of a call.
 * @returns milliseconds; undefined for no limit (0, null or undefined)
 * @throws ServiceRequestError if the value is not valid
 */
export function checkTimeout(timeout: unknown, option = 'timeout'): number | undefined {
  if (timeout === undefined || timeout === null || timeout === 0) return undefined;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= DAY_MS) return timeout;
  throw ServiceRequestError.ofMisuse(
    option,
    `must be milliseconds from 1 to ${DAY_MS}${hintIfString(timeout)}`,
  );
}

/** The end of an error message about a number that was given as a string, as the values of environment variables are. */
export function hintIfString(given: unknown): string {
  return typeof given === 'string' && /^\d+$/.test(given) ? '; it is a string: use Number()' : '';
}

/**
 * Checks the `signal` option of a call.
 * @throws ServiceRequestError if the value is not an AbortSignal
 */
export function checkSignal(given: unknown): AbortSignal | undefined {
  if (given === undefined || given === null) return undefined;
  if (!(given instanceof AbortSignal)) throw ServiceRequestError.ofMisuse('signal', 'must be an AbortSignal');
  allowManyListeners(given);
  return given;
}

/** Limits, retries, paths and the proxy of calls. Each value here is the default of its option. */
export class HttpOptions extends OptionsSection<ServiceHttpOptions> {
  /** Milliseconds for a whole call, including retries and the response body. Default 30,000. SERVICE_HTTP_TIMEOUT */
  @WholeNumber('HTTP_TIMEOUT', 1, DAY_MS, 'milliseconds')
  timeout = 30_000;

  /**
   * Milliseconds for one attempt, so that a call whose attempt hangs is retried. It applies only to attempts that may be
   * followed by another, and does not count the wait for a free connection. Default: all the time that is left.
   * SERVICE_HTTP_ATTEMPT_TIMEOUT
   */
  @WholeNumber('HTTP_ATTEMPT_TIMEOUT', 1, DAY_MS, 'milliseconds')
  attemptTimeout?: number;

  /** Milliseconds to connect, including TLS; also for the token endpoint. Default 5,000. SERVICE_HTTP_CONNECT_TIMEOUT */
  @WholeNumber('HTTP_CONNECT_TIMEOUT', 1, DAY_MS, 'milliseconds')
  connectTimeout = 5_000;

  /**
   * Milliseconds for which a connection may have been idle before it is reused:
   * - if the server sends `Keep-Alive: timeout=n`: n - 1 seconds, at most 60. This option is then not used.
   * - otherwise, a call that can safely be sent again may reuse a connection that has been idle for up to 55 s. Other calls,
   *   and the application's own requests over `auth.httpsAgent`, keep to this option.
   * - 0: no connection is reused.
   *
   * If it is left out: 4 s, or half of the longest idle time after which the same connection has answered, if that is more.
   * SERVICE_HTTP_IDLE_TIMEOUT
   */
  @WholeNumber('HTTP_IDLE_TIMEOUT', 0, DAY_MS, 'milliseconds')
  idleTimeout?: number;

  /**
   * Retries after the first attempt. A POST, PUT, PATCH or DELETE without an idempotency key, `readOnly` or `repeatable` is retried only if
   * it was certainly not executed. Default 2. SERVICE_HTTP_RETRIES
   */
  @WholeNumber('HTTP_RETRIES', 0, 10, 'attempts')
  retries = 2;

  /** The most bytes of a response body after decompression. Default 10 MiB. SERVICE_HTTP_MAX_RESPONSE_BYTES */
  @WholeNumber('HTTP_MAX_RESPONSE_BYTES', 1, MAX_RESPONSE_BYTES, 'bytes')
  maxResponseBytes = 10 * 1024 * 1024;

  /**
   * Maximum connections per origin. During a certificate rotation the old pool drains while the new one fills, so there can
   * briefly be twice as many. Token requests have one more connection. Default 50. SERVICE_HTTP_MAX_SOCKETS
   */
  @WholeNumber('HTTP_MAX_SOCKETS', 1, 65_535, 'connections')
  maxSockets = 50;

  /**
   * Whether paths of resources end in a slash, as in `/banks/v1/` (docs/service.md#calls): true, false, or the names of the
   * resources whose paths do. The variable is true, false or a comma-separated list. Default false.
   * SERVICE_HTTP_TRAILING_SLASH
   */
  @FlagOrNames('HTTP_TRAILING_SLASH', RESOURCE_NAMES)
  trailingSlash: boolean | ResourceName | readonly ResourceName[] = false;

  /**
   * The proxy for https addresses:
   * - a URL, such as `http://proxy:3128`: for all addresses.
   * - `environment`: the proxy of HTTPS_PROXY or ALL_PROXY, except for addresses in NO_PROXY.
   * - `none`: no proxy.
   * - not set: no proxy, and if one of these variables is set, the hint of a connection fault mentions it.
   *
   * SERVICE_HTTP_PROXY
   */
  @IsProxy('HTTP_PROXY')
  proxy?: string;

  /**
   * The application's product tokens (RFC 9110, 10.1.5), such as `acme-banking/2.1`. They precede
   * `nestjs-service/<version>` in the header `user-agent`, also in token requests. A call's own `user-agent` header
   * replaces both. SERVICE_HTTP_USER_AGENT
   */
  @IsProductTokens('HTTP_USER_AGENT')
  userAgent?: string;

  /**
   * Headers of every call to the API, such as the id of a partner. Token requests do not send them. A header of the call replaces one
   * of the same name. No log line shows a value. The headers that authenticate, and the idempotency header, cannot be among them.
   */
  @IsHeaders()
  headers?: Readonly<Record<string, string>>;

  /**
   * The header of the correlation id, in requests (`requestId`) and responses. Default `x-correlation-id`.
   * SERVICE_HTTP_CORRELATION_ID_HEADER
   */
  @IsHeaderName('HTTP_CORRELATION_ID_HEADER')
  correlationIdHeader = 'x-correlation-id';

  /**
   * Returns an id for a call, for example the id of the inbound request: 1 to 128 visible ASCII characters, or
   * undefined for no id. All attempts send it in `correlationIdHeader`, unless the call sets that header itself. If the
   * function throws or returns anything else, the call is sent without an id.
   */
  @IsFunction()
  requestId?: () => string | undefined;

  /** The header of a call's idempotency key. Default `idempotency-key`. SERVICE_HTTP_IDEMPOTENCY_HEADER */
  @IsHeaderName('HTTP_IDEMPOTENCY_HEADER')
  idempotencyHeader = 'idempotency-key';

  /**
   * Called once at the end of each call that was ready to be sent, before `parse` and the application's response
   * interceptors, and once at the end of each request to the token endpoint. Errors and rejections of the function are
   * ignored, and no call waits for a promise that it returns.
   */
  @IsFunction()
  onCall?: (event: ServiceCallEvent) => void;

  /**
   * Log a line at `debug` for each successful call: method, route, status, duration, attempts with their times, kinds of credentials
   * and correlation id. Failed calls are always logged. Default false. SERVICE_HTTP_LOG_CALLS
   */
  @Flag('HTTP_LOG_CALLS')
  logCalls = false;

  /** Milliseconds for calls in flight to finish at shutdown. Default 5,000. SERVICE_HTTP_SHUTDOWN_TIMEOUT */
  @WholeNumber('HTTP_SHUTDOWN_TIMEOUT', 0, DAY_MS, 'milliseconds')
  shutdownTimeout = 5_000;
}

/** Limits, retries, paths and the proxy of calls, as an application gives them. */
export interface ServiceHttpOptions extends Given<HttpOptions> {}
