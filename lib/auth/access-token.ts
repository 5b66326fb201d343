import { type DescribeOption, ServiceRequestError } from '../errors/index.js';
import { type ServiceIo } from '../exchange/io.js';
import { type Secret } from '../config/secret.js';
import { type Moment } from '../time/time.js';

/** A token for the host application (docs/service.md#tokens). This is a plain object with the token in it, so do not log it. */
export interface AccessToken {
  /** The bearer token. This module does not read its claims. */
  accessToken: string;
  tokenType: 'bearer';
  /** `api` or `customer.<customer_id>`. */
  scope: string;
  /**
   * When the token expires: `expires_in`, counted from the time of the request. A token without a lifetime is cached for 1 s
   * after its arrival, and then counts as expired.
   */
  expiresAt: Date;
}

/** The times of a token, by the wall clock. */
export interface TokenStatus {
  /** When it was requested. */
  issuedAt: Date;
  /** When it expires. */
  expiresAt: Date;
}

/** Options of a caller that waits for a token. */
export interface TokenOptions {
  /** Aborts the wait of this caller, which rejects with the reason of the signal. Other callers go on waiting. */
  signal?: AbortSignal | undefined;
  /** Milliseconds, at most a day. Default: `http.timeout`, also for 0. */
  timeout?: number | undefined;
  /**
   * Make a single attempt, for example for a health check, and do not send a refused secret again for 60 s. Other callers that
   * wait for the same token may still cause retries. Default: false.
   */
  once?: boolean | undefined;
}

/** {@link TokenOptions} after they were checked. */
export interface WaitOptions extends Omit<TokenOptions, 'timeout'> {
  /** Milliseconds. Default: the time limit of the cache. */
  timeoutMs?: number | undefined;
}

/** The credentials of a token request. A refusal is about these credentials only. */
export interface TokenCredentials {
  tokenUrl: string;
  clientId: string;
  secret: Secret;
  /** The fingerprint of the client certificate, if the endpoint gets one. */
  fingerprint256?: string;
}

/** The successful response of a token source, after it was checked. */
export interface TokenGrant {
  accessToken: string;
  scope: string;
  /** The lifetime in whole seconds; 0 if the endpoint gives none. */
  expiresIn: number;
  /** The token's age in milliseconds, if it comes from a shared store. Default: 0. */
  ageMs?: number;
  /** When the token was requested. For a token from a shared store: when it had the age `ageMs`. */
  requestedAt?: Moment;
  /** The credentials with which the endpoint granted the token. Secret and certificate may have changed during the request. */
  requestedWith?: TokenCredentials;
}

export interface TokenRequestContext {
  /** Aborts the request, which then rejects with `signal.reason`. */
  signal: AbortSignal;
  /** Aborts when the cache closes and nothing may be written to a store any more. */
  closed?: AbortSignal;
  /** Milliseconds for the whole request. */
  timeoutMs: number;
  /** Whether a token from another process can be used. A new token always can. */
  accepts: (grant: TokenGrant) => boolean;
  /** Whether a caller waits for the token now. If not, the request is a renewal in the background, which has time. */
  isAwaited: () => boolean;
  /** Whether only health checks wait. They come again and again, even while the credentials are refused. */
  isProbe?: boolean;
}

/** A source of tokens: the token endpoint, or a shared store in front of it. */
export interface TokenSource {
  request(scope: string, context: TokenRequestContext): Promise<TokenGrant>;
  /** Called when the API refused a token. Does not throw. */
  drop?(scope: string, accessToken: string): void;
}

/** Clock, random numbers and log of the cache and the shared store. */
export interface TokenIo extends Pick<ServiceIo, 'clock' | 'random' | 'log'> {
  describeOption: DescribeOption;
}

/** The longest lifetime in seconds, almost 25 days: a timer takes at most 2^31 - 1 ms. */
export const MAX_LIFETIME_S = 2_147_483;

/**
 * A token without a lifetime is cached for this time after its arrival, so that fifty calls in a row do not make fifty token
 * requests.
 */
export const LIFELESS_MS = 1_000;

/**
 * Milliseconds before its expiry at which a token is no longer handed out: a tenth of the lifetime, at least 1 s, at most
 * 30 s, and never more than half of the lifetime.
 */
export function expiryMargin(lifetime: number): number {
  return Math.min(Math.max(lifetime / 10, 1_000), 30_000, lifetime / 2);
}

/** The scope of backend calls (docs/service.md#tokens). */
export const API_SCOPE = 'api';

const CUSTOMER_PREFIX = 'customer.';

/** The allowed form of a customer id, in words. */
export const CUSTOMER_ID_RULE = '1 to 128 letters, digits and . _ ~ : @ + = -, and not only dots';
/**
 * The characters of a UUID, an e-mail address, a URN or base64url. Each is allowed in a scope
 * (https://www.rfc-editor.org/rfc/rfc6749#section-3.3), and none of them separates scopes, paths, fields or header values.
 */
const CUSTOMER_ID = /^(?!\.+$)[A-Za-z0-9._~:@+=-]{1,128}$/;

/**
 * `customer.<customer_id>` (docs/service.md#tokens).
 * @throws ServiceRequestError if the id is not valid
 */
export function customerScope(customerId: string): string {
  if (!isCustomerId(customerId)) throw ServiceRequestError.of('customer_id', `must be ${CUSTOMER_ID_RULE}`);
  return CUSTOMER_PREFIX + customerId;
}

/**
 * Returns the scope if it is `api` or `customer.<customer_id>`.
 * @throws ServiceRequestError for any other scope
 */
export function checkScope(scope: string): string {
  const customerId =
    typeof scope === 'string' && scope.startsWith(CUSTOMER_PREFIX) && scope.slice(CUSTOMER_PREFIX.length);
  if (scope !== API_SCOPE && !isCustomerId(customerId)) {
    const rule = `must be api or customer.<customer_id>, with an id of ${CUSTOMER_ID_RULE}`;
    throw ServiceRequestError.of('scope', rule);
  }
  return scope;
}

/** Whether the id has the allowed form. A space would request a second scope, and a slash or dots could change a path. */
export function isCustomerId(value: unknown): boolean {
  return typeof value === 'string' && CUSTOMER_ID.test(value);
}
