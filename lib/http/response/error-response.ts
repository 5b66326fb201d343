import { containsSecret, type ApiErrorResponse } from '../../errors/index.js';
import { type ExchangeResponse } from '../../exchange/exchange.types.js';

const MAX_BYTES = 65_536;

/**
 * What the service answered, for its error, without credentials. Made when it is first read, as that takes long for a
 * long body.
 * @param json of the body; undefined if it is none
 */
export function errorResponse(
  { status, headers, body }: ExchangeResponse,
  json: unknown,
  secrets: readonly string[],
  appTokenHeader: string,
): () => ApiErrorResponse {
  const hidden = ['set-cookie', 'authorization', appTokenHeader.toLowerCase()];
  const make = (): ApiErrorResponse => {
    const texts = Object.entries(headers).map(([name, value = '']) => [name, String(value)]);
    const shown = texts.filter(
      (header) => !hidden.includes(header[0]) && !header.some((text) => containsSecret(text, secrets)),
    );
    const data = body.length <= MAX_BYTES && isClean(json, secrets) ? json : undefined;
    return { status, headers: Object.fromEntries(shown) as Record<string, string>, data };
  };
  let made: ApiErrorResponse | undefined;
  return () => (made ??= make());
}

function isClean(json: unknown, secrets: readonly string[]): boolean {
  try {
    return !containsSecret(JSON.stringify(json) ?? '', secrets);
  } catch {
    // Nested too deep to be written, or searched.
    return false;
  }
}
