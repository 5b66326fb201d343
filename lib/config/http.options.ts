import { MAX_RESPONSE_BYTES } from '../exchange/call-limits.js';
import { type ServiceCallEvent } from '../telemetry/call-event.js';
import { DAY_MS } from '../time/clock.js';
import {
  Flag,
  FlagOrNames,
  IsFunction,
  IsHeaderName,
  IsProductTokens,
  IsProxy,
  WholeNumber,
} from './rules.js';
import { RESOURCE_NAMES, type ResourceName } from './resources.js';

/** Calls of the service: their limits, retries, paths and proxy. */
export class ServiceHttpOptions {
  /** Milliseconds for a whole call, retries and body included. Default 30,000. SERVICE_HTTP_TIMEOUT */
  @WholeNumber('HTTP_TIMEOUT', 1, DAY_MS, 'milliseconds')
  timeout?: number | undefined;

  /**
   * Milliseconds for an attempt that may be followed by another, without the wait for a free connection: a call that hangs
   * is then tried again. Default: all the time that is left. SERVICE_HTTP_ATTEMPT_TIMEOUT
   */
  @WholeNumber('HTTP_ATTEMPT_TIMEOUT', 1, DAY_MS, 'milliseconds')
  attemptTimeout?: number | undefined;

  /** Milliseconds to connect, TLS included; also to the token endpoint. Default 5,000. SERVICE_HTTP_CONNECT_TIMEOUT */
  @WholeNumber('HTTP_CONNECT_TIMEOUT', 1, DAY_MS, 'milliseconds')
  connectTimeout?: number | undefined;

  /**
   * Milliseconds for which an idle connection is used again if the server does not say for how long it keeps it. If it
   * does (`Keep-Alive: timeout=n`), n - 1 seconds, at most 60. 0: no connection is used again. Also for calls of the
   * application's own over `auth.httpsAgent`. Default 4,000. SERVICE_HTTP_IDLE_TIMEOUT
   */
  @WholeNumber('HTTP_IDLE_TIMEOUT', 0, DAY_MS, 'milliseconds')
  idleTimeout?: number | undefined;

  /**
   * Attempts after the first. A POST, PUT, PATCH or DELETE without a key or `readOnly` is sent again only if nothing was
   * done. Default 2. SERVICE_HTTP_RETRIES
   */
  @WholeNumber('HTTP_RETRIES', 0, 10, 'attempts')
  retries?: number | undefined;

  /** Bytes, decompressed. Default 10 MiB. SERVICE_HTTP_MAX_RESPONSE_BYTES */
  @WholeNumber('HTTP_MAX_RESPONSE_BYTES', 1, MAX_RESPONSE_BYTES, 'bytes')
  maxResponseBytes?: number | undefined;

  /**
   * Connections to one origin. The calls that wait when the client certificate rotates may have as many of their own, and
   * token requests have one more. Default 50. SERVICE_HTTP_MAX_SOCKETS
   */
  @WholeNumber('HTTP_MAX_SOCKETS', 1, 65_535, 'connections')
  maxSockets?: number | undefined;

  /**
   * Whether the paths of resources end in a slash (`/banks/v1/`; docs/service.md#calls): true, false, or the names of
   * those that do. The variable takes true, false or a comma-separated list. Default false. SERVICE_HTTP_TRAILING_SLASH
   */
  @FlagOrNames('HTTP_TRAILING_SLASH', RESOURCE_NAMES)
  trailingSlash?: boolean | ResourceName | readonly ResourceName[] | undefined;

  /**
   * URL of a proxy (`http://proxy:3128`) for all https addresses; or `environment`, for that of HTTPS_PROXY or ALL_PROXY,
   * which NO_PROXY keeps from some; or `none`. Left out, those variables are ignored too, and the hint of a connection that
   * fails says so. SERVICE_HTTP_PROXY
   */
  @IsProxy('HTTP_PROXY')
  proxy?: string | undefined;

  /**
   * The application's product tokens (RFC 9110, 10.1.5): `acme-banking/2.1`. Sent before `nestjs-service/<version>`, also
   * to the token endpoint. A call's own header `user-agent` takes the place of both. SERVICE_HTTP_USER_AGENT
   */
  @IsProductTokens('HTTP_USER_AGENT')
  userAgent?: string | undefined;

  /** The header of answers and of `requestId`. Default `x-correlation-id`. SERVICE_HTTP_CORRELATION_ID_HEADER */
  @IsHeaderName('HTTP_CORRELATION_ID_HEADER')
  correlationIdHeader?: string | undefined;

  /**
   * Returns the host's id of a call, for example that of the inbound request: 1 to 128 visible ASCII characters, or
   * undefined for none. All attempts carry it in `correlationIdHeader`, unless the call brings that header itself. If it
   * throws or returns something else, the call is sent without an id.
   */
  @IsFunction()
  requestId?: (() => string | undefined) | undefined;

  /** The header of the key of a call that has one. Default `idempotency-key`. SERVICE_HTTP_IDEMPOTENCY_HEADER */
  @IsHeaderName('HTTP_IDEMPOTENCY_HEADER')
  idempotencyHeader?: string | undefined;

  /**
   * Told once of each call that was ready to be sent, when it has ended (before `parse` and the host's response
   * interceptors), and of each request to the token endpoint. What it throws or rejects with is dropped, and no call waits
   * for a promise that it returns.
   */
  @IsFunction()
  onCall?: ((event: ServiceCallEvent) => void) | undefined;

  /**
   * A log line at `debug` for each call that succeeds, as each that fails has one: method, route, status, attempts,
   * duration, kinds of credentials, correlation id. Default false. SERVICE_HTTP_LOG_CALLS
   */
  @Flag('HTTP_LOG_CALLS')
  logCalls?: boolean | undefined;

  /** Milliseconds that running calls may still take at shutdown. Default 5,000. SERVICE_HTTP_SHUTDOWN_TIMEOUT */
  @WholeNumber('HTTP_SHUTDOWN_TIMEOUT', 0, DAY_MS, 'milliseconds')
  shutdownTimeout?: number | undefined;
}
