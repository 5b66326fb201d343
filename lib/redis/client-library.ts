import { type NodeRedisClient } from './redis-client.js';

/** What is used of a client that this package makes itself. */
export interface OwnClient extends NodeRedisClient {
  on(event: 'error', listener: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
  /** Does not let its socket keep the process running. */
  unref(): void;
  /** From version 5 on. */
  destroy?(): void;
  /** Before. */
  disconnect?(): Promise<unknown>;
}

export interface ClientOptions {
  url: string;
  RESP: 2;
  disableOfflineQueue: true;
  socket: { connectTimeout: number; reconnectStrategy: false; rejectUnauthorized: true };
}

export interface ClientLibrary {
  createClient(options: ClientOptions): OwnClient;
}

export const NOT_INSTALLED =
  'connects to Redis with one of two optional peer dependencies, and neither is installed. Install one: npm i @redis/client ' +
  '(or redis)';

/**
 * Of the two the first, where the host has both. Each import is in a `try`, as a bundler then only warns of a package that
 * is not installed.
 * @returns undefined where neither `@redis/client` nor `redis` is installed
 */
export async function importClientLibrary(): Promise<ClientLibrary | undefined> {
  try {
    return asLibrary(await import('@redis/client'));
  } catch (error) {
    throwUnlessAbsent(error);
  }
  try {
    return asLibrary(await import('redis'));
  } catch (error) {
    throwUnlessAbsent(error);
  }
  return undefined;
}

function asLibrary(imported: unknown): ClientLibrary {
  return imported as ClientLibrary;
}

function throwUnlessAbsent(error: unknown): void {
  const { code } = error as { code?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
}
