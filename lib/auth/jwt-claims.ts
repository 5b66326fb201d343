import { isAccessTokenText } from './access-token.js';
import { isJsonObject, parseJson } from '../exchange/json.js';
import { customerIdOf } from './scope.js';

/** A token that may be handed out, or why it may not. */
export type JudgedToken =
  { accessToken: string; fault?: undefined } | { fault: string; accessToken?: undefined };

/**
 * The one check of a token for a scope, for every way in: the token endpoint's answer and the entries of a shared
 * store. The fault quotes nothing of the token.
 */
export function judgeToken(value: unknown, scope: string): JudgedToken {
  if (!isAccessTokenText(value)) return { fault: 'access_token is missing, too long or not visible ASCII' };
  return isForScope(value, scope, customerIdOf(scope))
    ? { accessToken: value }
    : { fault: 'the token itself names another scope or customer' };
}

/**
 * A look at the payload of a JSON Web Token (RFC 7519), without verifying it: that is for the service, which holds
 * the key. `undefined` where the token is none.
 */
export function jwtClaims(token: string): Record<string, unknown> | undefined {
  const parts = token.split('.');
  if (parts.length !== 3 || !parts.slice(0, 2).every((part) => /^[A-Za-z0-9_-]+$/.test(part)))
    return undefined;
  const [header, payload] = parts.slice(0, 2).map(decodeObject);
  return header && payload;
}

/**
 * Whether a token, where it says so at all, is for this scope: `scope` (a text or a list) must equal it, and
 * `customer_id` must be this customer's. What is no JWT, or says nothing, is taken at the endpoint's word.
 */
function isForScope(token: string, scope: string, customerId: string | undefined): boolean {
  const claims = jwtClaims(token);
  if (!claims) return true;
  const { scope: claimed, customer_id: customer } = claims;
  if (isPresent(claimed) && (Array.isArray(claimed) ? claimed.join(' ') : claimed) !== scope) return false;
  if (customerId === undefined || !isPresent(customer)) return true;
  return (typeof customer === 'number' ? String(customer) : customer) === customerId;
}

/** Milliseconds since the epoch at which the token itself says that it ends (RFC 7519, 4.1.4). */
export function expiryOf(token: string): number | undefined {
  const exp = jwtClaims(token)?.exp;
  return typeof exp === 'number' ? exp * 1000 : undefined;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function decodeObject(part: string): Record<string, unknown> | undefined {
  const value = parseJson(Buffer.from(part, 'base64url').toString('utf8'));
  return isJsonObject(value) ? value : undefined;
}
