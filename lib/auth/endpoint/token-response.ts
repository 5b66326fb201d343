import { type Secret } from '../../config/secret.js';
import { hideCustomerId } from '../../errors/index.js';
import { skippedCodings } from '../../exchange/body.js';
import { type ExchangeResponse } from '../../exchange/io.js';
import { bodyKind, isJsonObject, isSuccess, parseBody, parseRetryAfter } from '../../exchange/response.js';
import { MAX_LIFETIME_S, type TokenGrant } from '../access-token.js';
import {
  cleanEndpointText,
  type TokenPlace,
  tokenRedirect,
  tokenRefusal,
  unusableResponse,
} from './token-errors.js';

/** Common servers refuse longer headers, and 10,000 longer tokens would need too much memory. */
const MAX_TOKEN_LENGTH = 16_384;

/** A longer Retry-After counts as this. */
const MAX_RETRY_AFTER_S = 3_600;

/** What was asked for, and where. Errors must not show any of the secrets. */
interface TokenQuestion {
  scope: string;
  secrets: readonly Secret[];
  place: TokenPlace;
}

/**
 * Reads the response of the token endpoint.
 * @param now milliseconds since the epoch
 * @throws ServiceTokenError, or ServiceConnectionError for a redirect, if it grants no token
 */
export function readTokenResponse(
  response: ExchangeResponse,
  question: TokenQuestion,
  now: number,
): TokenGrant {
  const { status, headers } = response;
  const json = parseBody(response);
  const isError = isJsonObject(json) && typeof json.error === 'string';
  if (isSuccess(status) && !isError && bodyKind(response) !== 'page')
    return readGrant(json, response, question);
  const { place, secrets } = question;
  if (status >= 300 && status < 400) throw tokenRedirect(place, status, headers.location, secrets);
  const seconds = parseRetryAfter(headers, now);
  const retryAfter = seconds === undefined ? undefined : Math.min(seconds, MAX_RETRY_AFTER_S);
  throw tokenRefusal(response, { ...question, retryAfter });
}

/**
 * Checks a successful response of the token endpoint field by field (docs/service.md#tokens,
 * https://www.rfc-editor.org/rfc/rfc6749#section-5.1). Does not read the claims of the token.
 * @param json the parsed body; `undefined` if it is not JSON
 * @throws ServiceTokenError `invalid_token_response`. It names the field, and quotes nothing of the body but the scope
 */
function readGrant(
  json: unknown,
  { status, headers }: ExchangeResponse,
  { scope, secrets, place }: TokenQuestion,
): TokenGrant {
  const describeScope = (granted: unknown): string => {
    if (typeof granted !== 'string') return '';
    const shown = cleanEndpointText(granted, secrets, scope);
    return shown === hideCustomerId(scope) ? 'that of another customer, ' : `"${shown}", `;
  };
  const refuse = (why: string): never => {
    throw unusableResponse(why, status, scope, place);
  };
  if (!isJsonObject(json)) {
    const coding = json === undefined ? skippedCodings(headers) : undefined;
    const why = coding && `, and has the unknown Content-Encoding "${cleanEndpointText(coding, secrets)}"`;
    return refuse(`the body is not a JSON object${why ?? ''}`);
  }
  const { access_token: accessToken, token_type: tokenType, expires_in: expiresIn, scope: granted } = json;
  if (typeof tokenType !== 'string' || tokenType.toLowerCase() !== 'bearer')
    return refuse('token_type is not bearer');
  // A token with a wider scope must not reach a browser. One with a narrower scope would fail later, with another error.
  if ((granted ?? scope) !== scope) return refuse(`scope is ${describeScope(granted)}not the requested one`);
  // Visible ASCII (https://www.rfc-editor.org/rfc/rfc6749#appendix-A.12). Anything else could not be sent in a header.
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken))
    return refuse('access_token is missing or not visible ASCII');
  if (accessToken.length > MAX_TOKEN_LENGTH) return refuse('access_token is too long');
  const seconds = toSeconds(expiresIn ?? 0);
  if (!(seconds >= 0)) return refuse('expires_in is not a number of seconds');
  // In JSON, 1e400 is parsed as Infinity.
  return { accessToken, scope, expiresIn: Math.floor(Math.min(seconds, MAX_LIFETIME_S)) };
}

function toSeconds(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : NaN;
}
