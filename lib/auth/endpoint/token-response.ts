import { type Secret } from '../../config/secret.js';
import { type AddressOption, hideCustomerId, ServiceTokenError } from '../../errors/index.js';
import { isJsonObject } from '../../exchange/decode.js';
import { MAX_LIFETIME_S, type TokenGrant } from '../access-token.js';
import { toShown } from './token-errors.js';

/** Common servers refuse longer headers, and 10,000 longer tokens would fill the memory. */
const MAX_TOKEN_LENGTH = 16_384;

/**
 * Checks a successful answer of the token endpoint field by field (docs/service.md#tokens; RFC 6749, 5.1). The token itself
 * is not looked into: its claims are the service's own.
 * @param json the parsed body; `undefined` if it was not JSON
 * @param scope the requested scope; the granted one must equal it
 * @param place the endpoint's address
 * @param secrets none of them may be in the error
 * @throws ServiceTokenError `invalid_token_response`, which names the field and quotes nothing of the body but its scope
 */
export function readTokenResponse(
  json: unknown,
  scope: string,
  status: number,
  { option, describeOption }: AddressOption,
  secrets: readonly Secret[],
): TokenGrant {
  const describeScope = (granted: unknown): string => {
    if (typeof granted !== 'string') return '';
    const shown = toShown(granted, secrets, scope);
    return shown === hideCustomerId(scope) ? 'that of another customer, ' : `"${shown}", `;
  };
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
  const { access_token: accessToken, token_type: tokenType, expires_in: expiresIn, scope: granted } = json;
  if (typeof tokenType !== 'string' || tokenType.toLowerCase() !== 'bearer')
    return refuse('token_type is not bearer');
  // A wider token must not reach a browser; a narrower one would fail later, with another error.
  if ((granted ?? scope) !== scope) return refuse(`scope is ${describeScope(granted)}not the one asked for`);
  // Visible ASCII (RFC 6749, A.12): anything else could not be sent in a header.
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken))
    return refuse('access_token is missing or not visible ASCII');
  if (accessToken.length > MAX_TOKEN_LENGTH) return refuse('access_token is too long');
  const seconds = secondsOf(expiresIn ?? 0);
  if (!(seconds >= 0)) return refuse('expires_in is not a number of seconds');
  // JSON's 1e400 is Infinity.
  return { accessToken, scope, expiresIn: Math.floor(Math.min(seconds, MAX_LIFETIME_S)) };
}

function secondsOf(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : NaN;
}
