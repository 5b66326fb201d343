import { type DescribeOption, ServiceRequestError } from '../errors/index.js';
import { type ServiceIo } from '../exchange/io.js';
import { type Secret } from '../config/secret.js';
import { type Moment, type Clock, elapsedMs, momentOf } from '../time/time.js';

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

/**
 * Whose tokens these are. The client certificate belongs to it, because tokens may be bound to the certificate
 * (https://www.rfc-editor.org/rfc/rfc8705#section-3).
 */
export type TokenOwner = Omit<TokenCredentials, 'secret'>;

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

const REFRESH_AT = 0.75;
const MAX_JITTER_MS = 10_000;
const JITTER = 0.02;
/** For a token from a shared store. Its own process renews it first, and this process then finds the new token in the store. */
const JITTER_FROM_STORE = 0.1;

/**
 * A token with its times. For example, a token of 3,600 s is handed out for 3,570 s, and renewed after 2,677.5 s (75 % of
 * that, minus a jitter). A token of 1 s is handed out for 0.5 s.
 */
export class CachedToken implements AccessToken {
  readonly accessToken: string;
  readonly tokenType = 'bearer';
  readonly scope: string;
  readonly expiresAt: Date;
  readonly issued: Moment;
  /** The age in milliseconds at which the token is no longer handed out. */
  readonly usableMs: number;
  /** The age in milliseconds at which the renewal is due. */
  readonly refreshAfterMs: number;
  readonly #lifetimeMs: number;
  readonly #clock: Clock;

  /**
   * @param random in [0, 1)
   * @param reserveMs milliseconds that the token must have left when it is handed out. At most half of the lifetime counts
   */
  constructor(grant: TokenGrant, clock: Clock, random: number, reserveMs: number) {
    const { accessToken, scope, ageMs, expiresIn, requestedAt = momentOf(clock) } = grant;
    const hasLife = expiresIn > 0;
    const lifetimeMs = hasLife ? expiresIn * 1000 : LIFELESS_MS;
    this.issued = momentOf(clock, hasLife ? (ageMs ?? 0) + elapsedMs(clock, requestedAt) : 0);
    const marginMs = Math.max(expiryMargin(lifetimeMs), Math.min(reserveMs, lifetimeMs / 2));
    this.usableMs = hasLife ? lifetimeMs - marginMs : lifetimeMs;
    // With a jitter, so that processes that started together do not renew together.
    const jitterMs =
      ageMs !== undefined
        ? this.usableMs * JITTER_FROM_STORE
        : -Math.min(MAX_JITTER_MS, this.usableMs * JITTER);
    this.refreshAfterMs = hasLife ? this.usableMs * REFRESH_AT + random * jitterMs : Infinity;
    this.accessToken = accessToken;
    this.scope = scope;
    this.expiresAt = new Date(this.issued.wall + lifetimeMs);
    this.#lifetimeMs = lifetimeMs;
    this.#clock = clock;
  }

  get status(): TokenStatus {
    return { issuedAt: new Date(this.issued.wall), expiresAt: new Date(this.expiresAt) };
  }

  get ageMs(): number {
    return elapsedMs(this.#clock, this.issued);
  }

  /** Whether the token has not expired. It may expire soon. */
  get isAlive(): boolean {
    return this.ageMs < this.#lifetimeMs;
  }

  /** Whether the token can be handed out, now or after so many milliseconds. */
  isUsable(inMs = 0): boolean {
    return this.ageMs + inMs < this.usableMs;
  }

  /**
   * Whether this token of a shared store may replace the current one. It must be newer, because anyone who can write to the
   * store could put old entries back. While the current token is usable, another one that is itself due for renewal may not
   * replace it. Without a usable token it may: callers then need not wait.
   */
  canReplace(current: CachedToken | undefined): boolean {
    const isNewer = this.issued.wall > (current?.issued.wall ?? -Infinity);
    const maxAgeMs = current?.isUsable() ? this.refreshAfterMs : this.usableMs;
    return isNewer && this.accessToken !== current?.accessToken && this.ageMs < maxAgeMs;
  }
}
