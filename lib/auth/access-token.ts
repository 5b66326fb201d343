/**
 * A token as the host gets it (specification 2.2). A plain object, so printing it prints the token: hand it on, do not
 * log it.
 */
export interface AccessToken {
  /** The bearer token itself, an encoded JSON Web Token. */
  accessToken: string;
  /** As specification 2.2 has it. */
  tokenType: 'bearer';
  /** `api` or `customer.<customer_id>`. */
  scope: string;
  /**
   * When it ends, by `expires_in` counted from the moment the request was sent. The time of the request itself where
   * the endpoint named no lifetime: such a token is for one use.
   */
  expiresAt: Date;
}

/** What a token source answers with: checked, but not yet placed in time. */
export interface TokenGrant {
  accessToken: string;
  tokenType: 'bearer';
  scope: string;
  /** Whole seconds; `undefined` where the endpoint named none: use it once. */
  expiresIn?: number;
  /** Milliseconds it had lived already when it was handed over, where it comes from a shared store. Default 0. */
  ageMs?: number;
}

export interface TokenRequestContext {
  /** Ends the request; it rejects with `signal.reason`. */
  signal: AbortSignal;
  /** Milliseconds for all of it. */
  timeoutMs: number;
  /** Whether a token that already exists elsewhere will do; a fresh one always does. */
  accepts: (grant: TokenGrant) => boolean;
}

/** Where tokens come from: the token endpoint, or a shared store in front of it. */
export interface TokenSource {
  request(scope: string, context: TokenRequestContext): Promise<TokenGrant>;
  /** Told that a token turned out not to work. Does not throw. */
  dropped?(scope: string, accessToken: string): void;
}

/** The longest lifetime that counts, in seconds: what a timer of 2^31 - 1 ms can cover, almost 25 days. */
export const LONGEST_LIFETIME_S = 2_147_483;

/** The longest Retry-After of the token endpoint that counts, in seconds. */
export const LONGEST_RETRY_AFTER_S = 3_600;
