import { ServiceTokenError } from '../../errors/index.js';
import { isJsonObject } from '../../exchange/decode.js';
import { MAX_LIFETIME_S, type TokenGrant } from '../access-token.js';
import { checkToken, lifetimeOf } from '../check-token.js';

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
