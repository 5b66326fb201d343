import { type DescribeOption } from '../errors/index.js';
import { type ServiceIo } from '../exchange/io.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type TokenCredentials } from './endpoint/refused-secrets.js';

/** A token as the host gets it (docs/service.md#tokens). Printing this plain object prints the token: do not log it. */
export interface AccessToken {
  /** The bearer token itself, an encoded JSON Web Token. */
  accessToken: string;
  tokenType: 'bearer';
  /** `api` or `customer.<customer_id>`. */
  scope: string;
  /**
   * When it ends: `expires_in`, counted from the time of the request. A token without a lifetime is shared for 1 s from its
   * arrival: it is the end of that second.
   */
  expiresAt: Date;
}

/** The times of a token, by the wall clock. */
export interface TokenStatus {
  /** When it was requested. */
  issuedAt: Date;
  /** When it ends. */
  expiresAt: Date;
}

/** The answer of a token source, checked. */
export interface TokenGrant {
  accessToken: string;
  scope: string;
  /** Whole seconds; 0 where neither the endpoint nor the token itself names any. */
  expiresIn: number;
  /** Milliseconds that it had lived already, where it comes from a shared store. Default 0. */
  ageMs?: number;
  /** Monotonic milliseconds at which the request for it left, or at which it had the age `ageMs`. */
  requestedAt?: number;
  /** Of one from the endpoint. Secret and certificate may have changed within the request. */
  requestedWith?: TokenCredentials;
}

export interface TokenRequestContext {
  /** Ends the request; it rejects with `signal.reason`. */
  signal: AbortSignal;
  /** Milliseconds for the whole request. */
  timeoutMs: number;
  /** Whether a token that exists already elsewhere can be used; a new one always can. */
  accepts: (grant: TokenGrant) => boolean;
  /** Whether a caller waits for it now; a renewal in the background has time. */
  isAwaited: () => boolean;
  /** For health checks alone, which come as long as the credentials are refused. */
  isProbe?: boolean;
}

/** Where tokens come from: the token endpoint, or a shared store in front of it. */
export interface TokenSource {
  request(scope: string, context: TokenRequestContext): Promise<TokenGrant>;
  /** A token that exists already elsewhere, where there is one that is accepted. Asks nobody for a new one. */
  look?(
    scope: string,
    context: Pick<TokenRequestContext, 'signal' | 'accepts'>,
  ): Promise<TokenGrant | undefined>;
  /** Called when a token does not work. Does not throw. */
  dropped?(scope: string, accessToken: string): void;
  /** Called when the application has started. Does not throw. */
  open?(): void;
  /** Called once, when no request begins any more. Does not reject. */
  close?(): Promise<void>;
}

/** What the cache and the shared store use of the world around them. */
export interface TokenIo extends Pick<ServiceIo, 'clock' | 'random' | 'log'> {
  telemetry: Telemetry;
  describeOption: DescribeOption;
}

/** The longest lifetime that counts, in seconds: what a timer of 2^31 - 1 ms can cover, almost 25 days. */
export const MAX_LIFETIME_S = 2_147_483;

/** A token without a life is shared for so long from its arrival: fifty calls in a row are not fifty requests. */
export const LIFELESS_MS = 1_000;

/**
 * How long before its end a token counts as expired: a tenth of the lifetime, at least 1 s (an `exp` of whole seconds
 * ends up to a second early), at most 30 s, and never over half the lifetime. Milliseconds.
 */
export function expiryMargin(lifetime: number): number {
  return Math.min(Math.max(lifetime / 10, 1_000), 30_000, lifetime / 2);
}
