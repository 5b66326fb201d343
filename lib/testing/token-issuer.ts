import { randomBytes, randomUUID } from 'node:crypto';
import { type ServiceEnvironment } from '../config/options.js';

/** How many tokens are remembered, ended ones too. After that the oldest is refused, as if it had ended. */
const LIMIT = 50_000;
const HEADER = { alg: 'RS256', kid: 'simulator' };
const CUSTOMER_SCOPE = 'customer.';
/** What the claims say, which is not the scope of the answer. */
const SCOPES = [
  'customer.read',
  'customer.write',
  'bank.read',
  'account.read',
  'identity.read',
  'payment.read',
  'payment.write',
];

/** What a token is for. */
export interface TokenSubject {
  /** `api` or `customer.<customer_id>`. */
  scope: string;
  environment: ServiceEnvironment;
  clientId: string;
}

/** Makes the whole payload of a token; or `opaque`, for a token that is no JWT. */
export type TokenClaims = (subject: TokenSubject) => object | 'opaque';

/** The contents of a token to issue. */
interface TokenGrant extends TokenSubject {
  /** Seconds. */
  lifetime: number;
  /** Binds the token to a client certificate: the `x5t#S256` of RFC 8705, 3.1. */
  certificateThumbprint?: string;
  /** One that this service has not issued. */
  foreign?: boolean;
}

interface IssuedToken extends TokenSubject {
  certificateThumbprint?: string;
  /** Milliseconds since the epoch; 0 once it is revoked. */
  expiresAt: number;
}

/** Issues access tokens, and remembers what each is for. It reads no token: the claims are for others. */
export class TokenIssuer {
  readonly #issued = new Map<string, IssuedToken>();
  readonly #claims?: TokenClaims;

  constructor(claims?: TokenClaims) {
    this.#claims = claims;
  }

  issue(grant: TokenGrant): string {
    const { scope, environment, clientId, lifetime, certificateThumbprint } = grant;
    const subject = { scope, environment, clientId };
    const payload = this.#claims ? this.#claims(subject) : usualClaims(subject, lifetime);
    const token = payload === 'opaque' ? randomBytes(32).toString('base64url') : jwtOf(payload);
    if (grant.foreign) return token;
    const [oldest] = this.#issued.size < LIMIT ? [] : this.#issued.keys();
    if (oldest !== undefined) this.#issued.delete(oldest);
    const expiresAt = Date.now() + lifetime * 1000;
    this.#issued.set(token, { ...subject, certificateThumbprint, expiresAt });
    return token;
  }

  /** Refuses every token issued until now. */
  revokeAll(): void {
    for (const issued of this.#issued.values()) issued.expiresAt = 0;
  }

  /** The token as it was issued, though it has ended; undefined if it is none of the last 50,000. */
  find(token: string): (TokenSubject & { expiresAt: Date }) | undefined {
    const issued = this.#issued.get(token);
    if (!issued) return undefined;
    const { scope, environment, clientId, expiresAt } = issued;
    return { scope, environment, clientId, expiresAt: new Date(expiresAt) };
  }

  /** What the token is for; undefined if it is foreign, revoked, ended, or of the other environment. */
  verify(token: string, environment: ServiceEnvironment): IssuedToken | undefined {
    const issued = this.#issued.get(token);
    return issued?.environment === environment && issued.expiresAt > Date.now() ? issued : undefined;
  }
}

/** As the service was seen to make them. */
function usualClaims({ scope, environment, clientId }: TokenSubject, lifetime: number): object {
  const customerId = scope.startsWith(CUSTOMER_SCOPE) ? scope.slice(CUSTOMER_SCOPE.length) : undefined;
  const issuedAt = Math.floor(Date.now() / 1000);
  return {
    sub: clientId,
    aud: clientId,
    iss: `https://service.simulated/${environment}`,
    scope: SCOPES,
    applications: [{ id: clientId }],
    ...(customerId !== undefined && { customers: [{ id: customerId }] }),
    nbf: issuedAt,
    iat: issuedAt,
    exp: issuedAt + Math.floor(lifetime),
    jti: randomUUID(),
  };
}

/** Nobody has a key to check the signature with. */
function jwtOf(payload: object): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode(HEADER)}.${encode(payload)}.${randomBytes(256).toString('base64url')}`;
}
