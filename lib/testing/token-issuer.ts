import { randomBytes, randomUUID } from 'node:crypto';
import { type ServiceEnvironment } from '../config/options.js';

/** How many tokens are remembered, including expired ones. If there are more, the oldest is forgotten and so refused. */
const MAX_TOKENS = 50_000;
const HEADER = { alg: 'RS256', kid: 'simulator' };
const CUSTOMER_SCOPE = 'customer.';
/** The `scope` claim of the service's tokens differs from the scope in the token endpoint's response. */
const SCOPES = [
  'customer.read',
  'customer.write',
  'bank.read',
  'account.read',
  'identity.read',
  'payment.read',
  'payment.write',
];

/** What a token was issued for. */
export interface TokenSubject {
  /** `api` or `customer.<customer_id>`. */
  scope: string;
  environment: ServiceEnvironment;
  clientId: string;
}

/** Returns the payload of a token, or `opaque` for a token that is not a JWT. */
export type TokenClaims = (subject: TokenSubject) => object | 'opaque';

/** The properties of a token to issue. */
interface TokenRequest extends TokenSubject {
  /** Seconds. */
  lifetime: number;
  /** Binds the token to a client certificate, by its `x5t#S256` thumbprint (RFC 8705, 3.1). */
  certificateThumbprint?: string;
  /** True: the token is not remembered, and so refused. */
  foreign?: boolean;
}

interface IssuedToken extends TokenSubject {
  certificateThumbprint?: string;
  /** Milliseconds since the epoch. 0 after the token was revoked. */
  expiresAt: number;
}

/** Issues access tokens, and remembers what each was issued for. It never reads the claims in a token. */
export class TokenIssuer {
  readonly #issued = new Map<string, IssuedToken>();
  readonly #claims?: TokenClaims;

  constructor(claims?: TokenClaims) {
    this.#claims = claims;
  }

  issue(request: TokenRequest): string {
    const { scope, environment, clientId, lifetime, certificateThumbprint } = request;
    const subject = { scope, environment, clientId };
    const payload = this.#claims ? this.#claims(subject) : usualClaims(subject, lifetime);
    const token = payload === 'opaque' ? randomBytes(32).toString('base64url') : encodeJwt(payload);
    if (request.foreign) return token;
    const [oldest] = this.#issued.size < MAX_TOKENS ? [] : this.#issued.keys();
    if (oldest !== undefined) this.#issued.delete(oldest);
    const expiresAt = Date.now() + lifetime * 1000;
    this.#issued.set(token, { ...subject, certificateThumbprint, expiresAt });
    return token;
  }

  /** Revokes every token that was issued so far. */
  revokeAll(): void {
    for (const issued of this.#issued.values()) issued.expiresAt = 0;
  }

  /** Returns what a token was issued for, even if it has expired. Undefined if it is not one of the last 50,000. */
  find(token: string): (TokenSubject & { expiresAt: Date }) | undefined {
    const issued = this.#issued.get(token);
    if (!issued) return undefined;
    const { scope, environment, clientId, expiresAt } = issued;
    return { scope, environment, clientId, expiresAt: new Date(expiresAt) };
  }

  /** Returns a token that is valid in the environment. Undefined if it is foreign, revoked, expired or of the other one. */
  verify(token: string, environment: ServiceEnvironment): IssuedToken | undefined {
    const issued = this.#issued.get(token);
    return issued?.environment === environment && issued.expiresAt > Date.now() ? issued : undefined;
  }
}

/** The claims that were observed in tokens of the service. */
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

/** The signature is random bytes, because no client verifies it. */
function encodeJwt(payload: object): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode(HEADER)}.${encode(payload)}.${randomBytes(256).toString('base64url')}`;
}
