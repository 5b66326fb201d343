import { randomUUID } from 'node:crypto';
import { type ServiceEnvironment } from '../config/options.js';
import { generateSigningKeys, readToken, signToken, type SigningKeys } from './json-web-token.js';

const SIGNED_LIMIT = 10_000;

/** The contents of a token to issue. */
export interface TokenGrant {
  environment: ServiceEnvironment;
  clientId: string;
  /** `api` or `customer.<customer_id>`. */
  scope: string;
  /** Seconds. */
  lifetime: number;
  /** Binds the token to a client certificate: the `x5t#S256` of RFC 8705, 3.1. */
  certificateThumbprint?: string;
  /** Signed with a key that the service does not know. */
  foreign?: boolean;
}

/** A token that was accepted. */
interface TokenClaims {
  scope: string;
  certificateThumbprint?: string;
}

interface SignedToken extends TokenClaims {
  environment: ServiceEnvironment;
  sequence: number;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** Issues and checks access tokens: JWTs of RFC 9068, ES256, of one environment each. */
export class TokenIssuer {
  readonly #keys: SigningKeys;
  readonly #foreignKeys: SigningKeys;
  readonly #issuer: string;
  readonly #signed = new Map<string, SignedToken>();
  readonly #revoked = new Set<string>();
  #issued = 0;
  #revokedUpTo = 0;

  private constructor(keys: SigningKeys, foreignKeys: SigningKeys, issuer: string) {
    this.#keys = keys;
    this.#foreignKeys = foreignKeys;
    this.#issuer = issuer;
  }

  static async create(issuer: string): Promise<TokenIssuer> {
    const [keys, foreign] = await Promise.all([generateSigningKeys(), generateSigningKeys()]);
    return new TokenIssuer(keys, foreign, issuer);
  }

  /** Returns the encoded token. */
  issue(grant: TokenGrant): string {
    this.#issued += 1;
    const issuedAt = Math.floor(Date.now() / 1000);
    const customerId = grant.scope.startsWith('customer.')
      ? grant.scope.slice('customer.'.length)
      : undefined;
    const claims = {
      client_id: grant.clientId,
      scope: grant.scope,
      ...(customerId === undefined ? {} : { customer_id: customerId }),
      ...(grant.certificateThumbprint === undefined
        ? {}
        : { cnf: { 'x5t#S256': grant.certificateThumbprint } }),
      iss: this.#issuerOf(grant.environment),
      sub: customerId ?? grant.clientId,
      aud: this.#issuer,
      iat: issuedAt,
      exp: issuedAt + Math.floor(grant.lifetime),
      jti: `${this.#issued}.${randomUUID()}`,
    };
    return signToken(claims, (grant.foreign ? this.#foreignKeys : this.#keys).privateKey);
  }

  /** Refuses every token issued until now. */
  revokeAll(): void {
    this.#revokedUpTo = this.#issued;
  }

  /** Refuses this token from now on. */
  revoke(token: string): void {
    this.#revoked.add(token);
  }

  /** The token's claims, or why it is refused; `invalid`: foreign, revoked or of the other environment. */
  verify(token: string, environment: ServiceEnvironment): TokenClaims | 'invalid' | 'expired' {
    const signed = this.#signed.get(token) ?? this.#checkSignature(token);
    if (signed === undefined || signed.environment !== environment) return 'invalid';
    if (signed.sequence <= this.#revokedUpTo || this.#revoked.has(token)) return 'invalid';
    return signed.expiresAt <= Date.now() ? 'expired' : signed;
  }

  #checkSignature(token: string): SignedToken | undefined {
    const claims = readToken(token, this.#keys.publicKey);
    if (claims === undefined) return undefined;
    const confirmation = claims.cnf as { 'x5t#S256'?: string } | undefined;
    const signed: SignedToken = {
      scope: String(claims.scope),
      environment: claims.iss === this.#issuerOf('production') ? 'production' : 'sandbox',
      sequence: Number.parseInt(String(claims.jti), 10),
      expiresAt: Number(claims.exp) * 1000,
      certificateThumbprint: confirmation?.['x5t#S256'],
    };
    // A signature is checked once. Dates and revocation are checked at each call.
    if (this.#signed.size >= SIGNED_LIMIT) this.#signed.clear();
    this.#signed.set(token, signed);
    return signed;
  }

  #issuerOf(environment: ServiceEnvironment): string {
    return `${this.#issuer}/${environment}`;
  }
}
