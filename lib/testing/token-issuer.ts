import { generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from 'node:crypto';
import { type ServiceEnvironment } from '../config/options.js';

const SIGNED_LIMIT = 10_000;
const ISSUER = 'https://service.simulated';
const HEADER = { alg: 'ES256', typ: 'at+jwt' };

/** The contents of a token to issue. */
interface TokenGrant {
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
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly #foreignKeys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  /** Those whose signature was checked. */
  readonly #signed = new Map<string, SignedToken>();
  readonly #revoked = new Set<string>();
  #issued = 0;
  #revokedUpTo = 0;

  issue(grant: TokenGrant): string {
    this.#issued += 1;
    const issuedAt = Math.floor(Date.now() / 1000);
    const customerId = /^customer\.(.*)$/.exec(grant.scope)?.[1];
    const thumbprint = grant.certificateThumbprint;
    const claims = {
      client_id: grant.clientId,
      scope: grant.scope,
      customer_id: customerId,
      cnf: thumbprint && { 'x5t#S256': thumbprint },
      iss: issuerOf(grant.environment),
      sub: customerId ?? grant.clientId,
      aud: ISSUER,
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
      environment: claims.iss === issuerOf('production') ? 'production' : 'sandbox',
      sequence: Number.parseInt(String(claims.jti), 10),
      expiresAt: Number(claims.exp) * 1000,
      certificateThumbprint: confirmation?.['x5t#S256'],
    };
    if (this.#signed.size >= SIGNED_LIMIT) this.#signed.clear();
    this.#signed.set(token, signed);
    return signed;
  }
}

function issuerOf(environment: ServiceEnvironment): string {
  return `${ISSUER}/${environment}`;
}

/** An access token of RFC 9068, signed with ES256 (RFC 7518, 3.4). */
function signToken(claims: object, key: KeyObject): string {
  const signed = `${encode(HEADER)}.${encode(claims)}`;
  return `${signed}.${sign('sha256', Buffer.from(signed), ieee(key)).toString('base64url')}`;
}

/** The claims; undefined if the token is none of those that `signToken` makes with this pair. Dates are not checked. */
function readToken(token: string, key: KeyObject): Record<string, unknown> | undefined {
  const [header, payload, signature, ...rest] = token.split('.');
  if (header !== encode(HEADER) || !payload || !signature || rest.length > 0) return undefined;
  const signed = Buffer.from(`${header}.${payload}`);
  if (!verify('sha256', signed, ieee(key), Buffer.from(signature, 'base64url'))) return undefined;
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
}

/** JSON Web Tokens have the two numbers of the signature one after the other, not in DER. */
function ieee(key: KeyObject) {
  return { key, dsaEncoding: 'ieee-p1363' } as const;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
