import { type DescribeOption } from '../errors/index.js';
import { type ServiceIo } from '../exchange/io.js';
import { type Secret } from '../config/secret.js';
import { type Moment } from '../time/clock.js';

/** A token for the host (docs/service.md#tokens). Printing this plain object prints the token: do not log it. */
export interface AccessToken {
  /** The bearer token itself. Its claims, if it has any, are the service's own. */
  accessToken: string;
  tokenType: 'bearer';
  /** `api` or `customer.<customer_id>`. */
  scope: string;
  /**
   * When it expires: `expires_in`, counted from the time of the request. A token without a lifetime is shared for 1 s from
   * its arrival, and expires then.
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

/** How long a caller waits for a token. */
export interface TokenOptions {
  /** Only the caller that aborts is rejected, with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds, at most a day. Default (also for 0): `http.timeout`. */
  timeout?: number | undefined;
  /**
   * One attempt is enough for this caller, as for a health check, and a secret that was refused is not sent again for 60 s;
   * more are made if others wait too. Default false.
   */
  once?: boolean | undefined;
}

/** {@link TokenOptions}, checked. With `once`, the request is a probe. */
export interface WaitOptions extends Omit<TokenOptions, 'timeout'> {
  /** Milliseconds. Default: that of the cache. */
  timeoutMs?: number | undefined;
}

/** The credentials of a token request. A refusal says nothing about others. */
export interface TokenCredentials {
  tokenUrl: string;
  clientId: string;
  secret: Secret;
  /** Of the client certificate, if the endpoint gets one. */
  fingerprint256?: string;
}

/** The answer of a token source, checked. */
export interface TokenGrant {
  accessToken: string;
  scope: string;
  /** Whole seconds; 0 if the endpoint gives no lifetime. */
  expiresIn: number;
  /** Its age in milliseconds, if it comes from a shared store. Default 0. */
  ageMs?: number;
  /** When it was requested, or had the age `ageMs`. */
  requestedAt?: Moment;
  /** Set by the endpoint. Secret and certificate may have changed during the request. */
  requestedWith?: TokenCredentials;
}

export interface TokenRequestContext {
  /** Ends the request; it rejects with `signal.reason`. */
  signal: AbortSignal;
  /** Aborted when nothing may be written any more. */
  closed?: AbortSignal;
  /** Milliseconds for the whole request. */
  timeoutMs: number;
  /** Whether a token that another process has can be used; a new one always can. */
  accepts: (grant: TokenGrant) => boolean;
  /** Whether a caller waits for it now; a background renewal has time. */
  isAwaited: () => boolean;
  /** For health checks alone, which come as long as the credentials are refused. */
  isProbe?: boolean;
}

/** A source of tokens: the token endpoint, or a shared store in front of it. */
export interface TokenSource {
  request(scope: string, context: TokenRequestContext): Promise<TokenGrant>;
  /** Called when a token does not work. Does not throw. */
  dropped?(scope: string, accessToken: string): void;
}

/** The outside world, for the cache and the shared store. */
export interface TokenIo extends Pick<ServiceIo, 'clock' | 'random' | 'log'> {
  describeOption: DescribeOption;
}

/** The longest lifetime in seconds, almost 25 days: a timer takes at most 2^31 - 1 ms. */
export const MAX_LIFETIME_S = 2_147_483;

/** How long a token without a lifetime is shared from its arrival, so that fifty calls in a row are not fifty requests. */
export const LIFELESS_MS = 1_000;

/**
 * How long before its end a token counts as expired: a tenth of the lifetime, at least 1 s, at
 * most 30 s, and never over half the lifetime. Milliseconds.
 */
export function expiryMargin(lifetime: number): number {
  return Math.min(Math.max(lifetime / 10, 1_000), 30_000, lifetime / 2);
}
