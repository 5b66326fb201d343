import { secretCutter, type ApiErrorResponse } from '../errors/index.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';

const MAX_BYTES = 65_536;
/** JSON.parse reads any depth; what a host does with it may not. */
const MAX_DEPTH = 100;

/**
 * What the service answered, for its error: each header, text and key that holds a secret is not shown. Made when it is
 * first read, as that takes long for a long body.
 * @param json of the body; undefined if it is none
 */
export function errorResponse(
  { status, headers, body }: ExchangeResponse,
  json: unknown,
  secrets: readonly string[],
  appTokenHeader: string,
): () => ApiErrorResponse {
  const kept = body.length > MAX_BYTES ? undefined : json;
  let made: ApiErrorResponse | undefined;
  const make = (): ApiErrorResponse => {
    const cut = secretCutter(secrets);
    const hidden = ['set-cookie', 'authorization', appTokenHeader.toLowerCase()];
    const shown = Object.entries(headers).filter(([name]) => !hidden.includes(name));
    const texts = shown.map(([name, value = '']) => [cut(name), cut(String(value))]);
    return {
      status,
      headers: Object.fromEntries(texts) as Record<string, string>,
      data: withoutSecrets(kept, cut),
    };
  };
  return () => (made ??= make());
}

function withoutSecrets(value: unknown, cut: (text: string) => string, depth = 0): unknown {
  if (typeof value === 'string') return cut(value);
  if (typeof value === 'number') {
    const text = String(value);
    const shown = cut(text);
    return shown === text ? value : shown;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((each) => withoutSecrets(each, cut, depth + 1));
  // Not by assignment: `__proto__` is a key like any other.
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [cut(key), withoutSecrets(each, cut, depth + 1)]),
  );
}
