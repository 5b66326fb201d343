import { DAY_MS } from './clock.js';
import { FlagOrNames, IsFunction, IsHeaderName, IsProductTokens, IsProxyUrl, WholeNumber } from './rules.js';

/** A resource of the API, by the first part of its paths. */
export type ResourceName = 'banks' | 'customers';
const RESOURCE_NAMES: readonly ResourceName[] = ['banks', 'customers'];

/** Calls of the service: their limits, retries, paths and proxy. */
export class ServiceHttpOptions {
  /** Milliseconds for a whole call, retries and body included. Default 30,000. SERVICE_HTTP_TIMEOUT */
  @WholeNumber('HTTP_TIMEOUT', 1, DAY_MS, 'milliseconds')
  timeout?: number | undefined = 30_000;

  /**
   * Milliseconds for an attempt that may be followed by another, from when it has a connection or begins to make one.
   * Default: half of the time that the call has left, but at least 1,000. The last attempt, and one that cannot be
   * repeated (a POST that was sent), may take all the time that is left. SERVICE_HTTP_ATTEMPT_TIMEOUT
   */
  @WholeNumber('HTTP_ATTEMPT_TIMEOUT', 1, DAY_MS, 'milliseconds')
  attemptTimeout?: number | undefined;

  /**
   * Milliseconds to connect: name, TCP, proxy and TLS handshake. Also for the token endpoint. Nothing was sent by then,
   * so calls of all methods are tried again. Default 5,000. SERVICE_HTTP_CONNECT_TIMEOUT
   */
  @WholeNumber('HTTP_CONNECT_TIMEOUT', 1, DAY_MS, 'milliseconds')
  connectTimeout?: number | undefined = 5_000;

  /** Attempts after the first. Default 2. SERVICE_HTTP_RETRIES */
  @WholeNumber('HTTP_RETRIES', 0, 10, 'attempts')
  retries?: number | undefined = 2;

  /** Bytes, decompressed. Default 10 MiB. SERVICE_HTTP_MAX_RESPONSE_BYTES */
  @WholeNumber('HTTP_MAX_RESPONSE_BYTES', 1, 2 ** 30, 'bytes')
  maxResponseBytes?: number | undefined = 10 * 1024 * 1024;

  /** Connections to one origin. Default 50. SERVICE_HTTP_MAX_SOCKETS */
  @WholeNumber('HTTP_MAX_SOCKETS', 1, 65_535, 'connections')
  maxSockets?: number | undefined = 50;

  /**
   * Whether the paths of resources end in a slash (`/banks/v1/`): true, false, or the names of the resources whose
   * paths do: `banks`, `customers`. Specification 4 shows both spellings. The variable takes true, false or a
   * comma-separated list. Default false. SERVICE_HTTP_TRAILING_SLASH
   */
  @FlagOrNames('HTTP_TRAILING_SLASH', RESOURCE_NAMES)
  trailingSlash?: boolean | ResourceName | readonly ResourceName[] | undefined = false;

  /** URL of a proxy (`http://proxy:3128`). HTTPS_PROXY and the like are ignored. SERVICE_HTTP_PROXY */
  @IsProxyUrl('HTTP_PROXY')
  proxy?: string | undefined;

  /**
   * The User-Agent of the application, as product tokens (RFC 9110, 10.1.5): `acme-banking/2.1`. Sent before the module's
   * own, `nestjs-service/<version>`, to the API and to the token endpoint. A call's own header `user-agent` takes the
   * place of both. SERVICE_HTTP_USER_AGENT
   */
  @IsProductTokens('HTTP_USER_AGENT')
  userAgent?: string | undefined;

  /**
   * The header with the correlation id, of answers and of `requestId`. Default `x-correlation-id`.
   * SERVICE_HTTP_CORRELATION_ID_HEADER
   */
  @IsHeaderName('HTTP_CORRELATION_ID_HEADER')
  correlationIdHeader?: string | undefined = 'x-correlation-id';

  /**
   * Returns the host's id of a call, for example that of the inbound request: 1 to 128 visible ASCII characters, or
   * undefined for none. It is called once for each call, and sent in the header `correlationIdHeader` with all attempts,
   * unless the call brings that header itself. Errors without an id of the service have it as `correlationId`. Where it
   * throws or returns something else, the call is sent without an id, and a warning is logged.
   */
  @IsFunction()
  requestId?: (() => string | undefined) | undefined;

  /** Milliseconds that running calls may still take at shutdown. Default 5,000. SERVICE_HTTP_SHUTDOWN_TIMEOUT */
  @WholeNumber('HTTP_SHUTDOWN_TIMEOUT', 0, DAY_MS, 'milliseconds')
  shutdownTimeout?: number | undefined = 5_000;
}
