import { type AddressOption, ServiceTokenError } from '../errors/index.js';
import { isJsonObject, parseJson } from '../exchange/decode.js';
import { MAX_LIFETIME_S, type TokenGrant } from './access-token.js';
import { customerIdOf } from './scope.js';

/** Common servers refuse longer headers, and 10,000 longer tokens would fill the memory. */
const MAX_TOKEN_LENGTH = 16_384;

/** A token that may be handed out, or why it may not. */
type CheckedToken =
  | {
      accessToken: string;
      /** Milliseconds since the epoch at which it expires by its own `exp`; else Infinity. */
      endsAt: number;
      /** Seconds from its own `iat` to its `exp`: a difference of the clocks does not matter. */
      lifetimeS: number;
      fault?: undefined;
    }
  | { fault: string; accessToken?: undefined };

/**
 * The one check of a token for a scope. Both answers of the token endpoint and entries of a shared store pass it. The
 * fault quotes nothing of the token.
 */
export function checkToken(value: unknown, scope: string): CheckedToken {
  if (!isAccessTokenText(value)) return { fault: 'access_token is missing, too long or not visible ASCII' };
  const claims = jwtClaims(value);
  if (claims && !isForScope(claims, scope))
    return { fault: 'the token itself names another scope or customer' };
  // RFC 7519, 4.1.4 and 4.1.6
  const [issued = -Infinity, ends = Infinity] = [claims?.iat, claims?.exp].map(secondsOf);
  return { accessToken: value, endsAt: ends * 1000, lifetimeS: ends > issued ? ends - issued : Infinity };
}

/** Visible ASCII (RFC 6749, A.12): anything else could not be sent in a header. */
function isAccessTokenText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TOKEN_LENGTH && /^[\x21-\x7e]+$/.test(value);
}

/**
 * The payload of a JSON Web Token (RFC 7519); undefined if the token is not one. Its signature is not verified: the
 * service does that. Padding, the characters of plain base64 and further parts are not allowed in a JWT, but a lenient
 * service may accept them: the claims of such a token count here too.
 */
function jwtClaims(token: string): Record<string, unknown> | undefined {
  const [header, payload] = token
    .split('.', 2)
    .map((part) => parseJson(Buffer.from(part, 'base64url').toString('utf8')));
  return isJsonObject(header) && isJsonObject(payload) ? payload : undefined;
}

/** `scope` (a text or a list), if present, must equal this one, and `customer_id` must be its customer's. */
function isForScope(
  { scope: claimed, customer_id: customer }: Record<string, unknown>,
  scope: string,
): boolean {
  if (isPresent(claimed) && !isScope(claimed, scope)) return false;
  const customerId = customerIdOf(scope);
  if (customerId === undefined || !isPresent(customer)) return true;
  // JSON.parse rounds a larger number: it may then be the id of somebody else.
  return (Number.isSafeInteger(customer) ? String(customer) : customer) === customerId;
}

/** A list in the list would be joined too: `[["api"]]` is not `api`. */
function isScope(claimed: unknown, scope: string): boolean {
  if (!Array.isArray(claimed)) return claimed === scope;
  return claimed.every((name) => typeof name === 'string') && claimed.join(' ') === scope;
}

function secondsOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof seconds === 'number' ? seconds : undefined;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Seconds from now to its `exp`, but at most its whole lifetime: it may come out of a cache. 0 without an `exp`. */
function lifeLeftS({ endsAt, lifetimeS }: { endsAt: number; lifetimeS: number }, now: number): number {
  return endsAt === Infinity ? 0 : Math.max(0, Math.min(lifetimeS, (endsAt - now) / 1000));
}

/**
 * Checks a successful answer of the token endpoint field by field (docs/service.md#tokens; RFC 6749, 5.1).
 * @param json the parsed body; `undefined` if it was not JSON
 * @param scope the requested scope; the granted one must equal it
 * @param place the endpoint's address
 * @param now the wall clock, in milliseconds
 * @throws ServiceTokenError `invalid_token_response`, which names the field and quotes nothing of the body
 */
export function readTokenResponse(
  json: unknown,
  scope: string,
  status: number,
  { option, describeOption }: AddressOption,
  now: number,
): TokenGrant {
  const refuse = (why: string): never => {
    throw new ServiceTokenError({
      code: 'invalid_token_response',
      message: `The token endpoint's answer (HTTP ${status}) is not usable: ${why}.`,
      hint: `Check ${describeOption(option)}. If it is right, tell the service's operator.`,
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
  if (isPresent(granted) && granted !== scope) return refuse('scope is not the one asked for');
  const checked = checkToken(token, scope);
  if (checked.fault !== undefined) return refuse(checked.fault);
  const { accessToken, lifetimeS } = checked;
  const seconds = isPresent(expiresIn) ? (secondsOf(expiresIn) ?? NaN) : lifeLeftS(checked, now);
  if (!(seconds >= 0)) return refuse('expires_in is not a number of seconds');
  // JSON's 1e400 is Infinity. A token whose own `exp` comes sooner is refused from then on.
  const lifetime = Math.floor(Math.min(seconds, lifetimeS, MAX_LIFETIME_S));
  return { accessToken, scope, expiresIn: lifetime };
}
