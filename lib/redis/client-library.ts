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

/** The packages in their order, as the host may have both. */
const PACKAGES: readonly (() => Promise<unknown>)[] = [() => import('@redis/client'), () => import('redis')];

/** @returns undefined where neither `@redis/client` nor `redis` is installed */
export async function importClientLibrary(packages = PACKAGES): Promise<ClientLibrary | undefined> {
  for (const load of packages) {
    try {
      return (await load()) as ClientLibrary;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  return undefined;
}
