import { type Call } from './call.js';

/** The headers that authenticate a call. */
export interface HeaderSource {
  /** At once, where nothing has to be asked for: no promise on the fresh path. */
  peekHeaders(): Readonly<Record<string, string>> | undefined;
  headers(wait: { signal?: AbortSignal; timeoutMs: number }): Promise<Readonly<Record<string, string>>>;
}

/**
 * Attaches the app token and the bearer to a call whose address was judged; a promise only where a token has to be
 * waited for. They never stand in axios's config: interceptors, transforms and other adapters of a host get that.
 */
export function attachHeaders(
  call: Call,
  source: HeaderSource,
  wait: { signal?: AbortSignal; timeoutMs: number },
): Promise<void> | undefined {
  const fresh = source.peekHeaders();
  if (!fresh) return source.headers(wait).then((headers) => setHeaders(call, headers));
  setHeaders(call, fresh);
  return undefined;
}

/** In lower case, as those of a call are. */
export function setHeaders({ headers }: Call, more: Readonly<Record<string, string>>): void {
  for (const name in more) headers[name.toLowerCase()] = more[name];
}
