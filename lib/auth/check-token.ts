import { ServiceTokenError } from '../errors/index.js';
import { isJsonObject, parseJson } from '../exchange/decode.js';
import { MAX_LIFETIME_S, type TokenGrant } from './access-token.js';
import { customerIdOf } from './scope.js';

/** Common servers refuse longer headers, and 10,000 longer tokens would fill the memory. */
const MAX_TOKEN_LENGTH = 16_384;

/** A token that may be handed out, or why it may not. */
type CheckedToken = { accessToken: string; fault?: undefined } | { fault: string; accessToken?: undefined };

/**
 * The one check of a token for a scope. Both answers of the token endpoint and entries of a shared store pass it. The
 * fault quotes nothing of the token.
 */
export function checkToken(value: unknown, scope: string): CheckedToken {
  if (!isAccessTokenText(value)) return { fault: 'access_token is missing, too long or not visible ASCII' };
  return isForScope(value, scope, customerIdOf(scope))
    ? { accessToken: value }
    : { fault: 'the token itself names another scope or customer' };
}

/**
 * The payload of a JSON Web Token (RFC 7519). Its signature is not verified: the service does that. `undefined` where
 * the token is not a JSON Web Token. Padding, the characters of plain base64 and further parts are not allowed in one. A
 * lenient service may take such a token all the same, so its claims count here too.
 */
function jwtClaims(token: string): Record<string, unknown> | undefined {
  const [header, payload] = token.split('.', 2).map(decodeObject);
  return header && payload;
}

/**
 * Whether the claims of a token allow this scope: `scope` (a text or a list) must equal it, and `customer_id` must be
 * this customer's. A token without these claims, or one that is not a JWT, is accepted.
 */
function isForScope(token: string, scope: string, customerId: string | undefined): boolean {
  const claims = jwtClaims(token);
  if (!claims) return true;
  const { scope: claimed, customer_id: customer } = claims;
  if (isPresent(claimed) && !isScope(claimed, scope)) return false;
  if (customerId === undefined || !isPresent(customer)) return true;
  // JSON.parse rounds a larger number: it may then be the id of somebody else.
  return (Number.isSafeInteger(customer) ? String(customer) : customer) === customerId;
}

/** A list in the list would be joined too: `[["api"]]` is not `api`. */
function isScope(claimed: unknown, scope: string): boolean {
  if (!Array.isArray(claimed)) return claimed === scope;
  return claimed.every((name) => typeof name === 'string') && claimed.join(' ') === scope;
}

/** Milliseconds since the epoch at which the token itself says that it ends (RFC 7519, 4.1.4). */
export function expiryOf(token: string): number | undefined {
  const seconds = secondsOf(jwtClaims(token)?.exp);
  return seconds === undefined ? undefined : seconds * 1000;
}

/**
 * Seconds from the issue of a token to its end, as it says itself (RFC 7519, 4.1.4 and 4.1.6): both by the clock of the
 * endpoint, so that a difference to ours does not matter. `undefined` where it does not say both.
 */
function lifetimeOf(token: string): number | undefined {
  const claims = jwtClaims(token);
  const [issued, ends] = [secondsOf(claims?.iat), secondsOf(claims?.exp)];
  return issued !== undefined && ends !== undefined && ends > issued ? ends - issued : undefined;
}

function secondsOf(claim: unknown): number | undefined {
  const seconds = typeof claim === 'string' && /^\d+$/.test(claim) ? Number(claim) : claim;
  return typeof seconds === 'number' ? seconds : undefined;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function decodeObject(part: string): Record<string, unknown> | undefined {
  const value = parseJson(Buffer.from(part, 'base64url').toString('utf8'));
  return isJsonObject(value) ? value : undefined;
}

/** Visible ASCII (RFC 6749, A.12): anything else could not be sent in a header. */
function isAccessTokenText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TOKEN_LENGTH && /^[\x21-\x7e]+$/.test(value);
}

/**
 * Checks a successful answer of the token endpoint field by field (specification 2.2; RFC 6749, 5.1).
 * @param json the parsed body; `undefined` where it was no JSON
 * @param scope what was asked for; the granted one must equal it
 * @param option the one with the endpoint's address
 * @throws ServiceTokenError `invalid_token_response`, which names the field and quotes nothing of the body
 */
export function readTokenResponse(json: unknown, scope: string, status: number, option: string): TokenGrant {
  const refuse = (why: string): never => {
    throw new ServiceTokenError({
      code: 'invalid_token_response',
      message: `The token endpoint's answer (HTTP ${status}) is not usable: ${why}.`,
      hint: `Check ${option}. If it is right, tell the service's operator.`,
      options: [option],
      status,
      scope,
    });
  };
  if (!isJsonObject(json)) return refuse('the body is not a JSON object');
  const { access_token: token, token_type: tokenType, expires_in: expiresIn, scope: granted } = json;

  if (typeof tokenType !== 'string' || tokenType.toLowerCase() !== 'bearer')
    return refuse('token_type is not bearer');
  // A wider token must not reach a browser; a narrower one would fail later, with another error.
  if (granted !== undefined && granted !== null && granted !== scope)
    return refuse('scope is not the one asked for');
  const { accessToken, fault } = checkToken(token, scope);
  if (fault !== undefined) return refuse(fault);

  const seconds = readLifetime(expiresIn);
  if (seconds === 'invalid') return refuse('expires_in is not a number of seconds');
  // A token that says itself that it ends sooner is refused from then on.
  const longest = Math.floor(lifetimeOf(accessToken) ?? Infinity);
  const lifetime = seconds === undefined ? undefined : Math.min(seconds, longest);
  return { accessToken, tokenType: 'bearer', scope, expiresIn: lifetime };
}

function readLifetime(value: unknown): number | undefined | 'invalid' {
  if (value === undefined || value === null) return undefined;
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof seconds !== 'number' || Number.isNaN(seconds) || seconds < 0) return 'invalid';
  // JSON's 1e400 is Infinity; a string of 400 digits too.
  return Math.min(Math.floor(seconds), MAX_LIFETIME_S);
}
