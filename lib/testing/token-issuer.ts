import type * as Jose from 'jose';
import { randomUUID } from 'node:crypto';
import { type ServiceEnvironment } from '../config/options.js';
import { importJose } from './optional-peers.js';

const ALGORITHM = 'ES256';
const TOKEN_TYPE = 'at+jwt';
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
export interface TokenClaims {
  scope: string;
  certificateThumbprint?: string;
}

interface SignedToken extends TokenClaims {
  environment: ServiceEnvironment;
  sequence: number;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

type SigningKeys = Jose.GenerateKeyPairResult;

/** Issues and checks access tokens: JWTs of RFC 9068, ES256, of one environment each. */
export class TokenIssuer {
  readonly #jose: typeof Jose;
  readonly #keys: SigningKeys;
  readonly #foreignKeys: SigningKeys;
  readonly #issuer: string;
  readonly #signed = new Map<string, SignedToken>();
  readonly #revoked = new Set<string>();
  #issued = 0;
  #revokedUpTo = 0;

  private constructor(jose: typeof Jose, keys: SigningKeys, foreignKeys: SigningKeys, issuer: string) {
    this.#jose = jose;
    this.#keys = keys;
    this.#foreignKeys = foreignKeys;
    this.#issuer = issuer;
  }

  /** Rejects where jose is not installed. */
  static async create(issuer: string): Promise<TokenIssuer> {
    const jose = await importJose();
    const [keys, foreign] = await Promise.all([
      jose.generateKeyPair(ALGORITHM),
      jose.generateKeyPair(ALGORITHM),
    ]);
    return new TokenIssuer(jose, keys, foreign, issuer);
  }

  /** Resolves to the encoded token. */
  issue(grant: TokenGrant): Promise<string> {
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
    };
    return new this.#jose.SignJWT(claims)
      .setProtectedHeader({ alg: ALGORITHM, typ: TOKEN_TYPE })
      .setIssuer(this.#issuerOf(grant.environment))
      .setSubject(customerId ?? grant.clientId)
      .setAudience(this.#issuer)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + Math.floor(grant.lifetime))
      .setJti(`${this.#issued}.${randomUUID()}`)
      .sign((grant.foreign ? this.#foreignKeys : this.#keys).privateKey);
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
  async verify(token: string, environment: ServiceEnvironment): Promise<TokenClaims | 'invalid' | 'expired'> {
    const signed = this.#signed.get(token) ?? (await this.#checkSignature(token));
    if (signed === undefined || signed.environment !== environment) return 'invalid';
    if (signed.sequence <= this.#revokedUpTo || this.#revoked.has(token)) return 'invalid';
    return signed.expiresAt <= Date.now() ? 'expired' : signed;
  }

  async #checkSignature(token: string): Promise<SignedToken | undefined> {
    try {
      const { payload } = await this.#jose.jwtVerify(token, this.#keys.publicKey, {
        algorithms: [ALGORITHM],
        typ: TOKEN_TYPE,
        audience: this.#issuer,
        requiredClaims: ['exp', 'jti', 'scope'],
        // The caller checks the dates, to tell an expired token from a foreign one.
        currentDate: new Date(0),
      });
      const confirmation = payload.cnf as { 'x5t#S256'?: string } | undefined;
      const signed: SignedToken = {
        scope: String(payload.scope),
        environment: payload.iss === this.#issuerOf('production') ? 'production' : 'sandbox',
        sequence: Number.parseInt(payload.jti ?? '0', 10),
        expiresAt: (payload.exp ?? 0) * 1000,
        certificateThumbprint: confirmation?.['x5t#S256'],
      };
      // A signature is checked once. Dates and revocation are checked at each call.
      if (this.#signed.size >= SIGNED_LIMIT) this.#signed.clear();
      this.#signed.set(token, signed);
      return signed;
    } catch {
      return undefined;
    }
  }

  #issuerOf(environment: ServiceEnvironment): string {
    return `${this.#issuer}/${environment}`;
  }
}
