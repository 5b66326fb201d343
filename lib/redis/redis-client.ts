import { MAX_ENTRY_LENGTH } from '../config/options.js';

/** A client of node-redis (`redis` 4 to 6, or `@redis/client`), for one server, a cluster, Sentinel or a pool. */
export interface NodeRedisClient {
  getRange(key: string, start: number, end: number): Promise<unknown>;
  set(key: string, value: string, options: { PX: number; NX?: true }): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client of ioredis 5 or 6: `Redis` (also with Sentinel) or `Cluster`. */
export interface IoredisClient {
  getrange(key: string, start: number, end: number): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number, nx: 'NX'): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, numkeys: number, key: string, argument: string): Promise<unknown>;
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void;
}

/** Compares and deletes atomically, so that nobody deletes a lock or token that another process has replaced meanwhile. */
const DELETE_IF = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;

/** The Redis commands of a token store. Each uses a single key, because a cluster may keep two keys on two nodes. */
export type RedisCommands = ReturnType<typeof adaptClient>;

/** Gives both client libraries the same methods. */
export function adaptClient(client: NodeRedisClient | IoredisClient) {
  // The key may hold something else, for example a value of 100 MB. So at most one character more than the longest valid
  // entry is read, which is enough to recognise a value that is too long.
  const range = [0, MAX_ENTRY_LENGTH] as const;
  if (isIoredis(client)) {
    return {
      get: (key: string) => readEntry(client.getrange(key, ...range)),
      set: (key: string, value: string, ttlMs: number) => client.set(key, value, 'PX', ttlMs),
      /** Resolves to null if the key exists. */
      setIfAbsent: (key: string, value: string, ttlMs: number) => client.set(key, value, 'PX', ttlMs, 'NX'),
      delete: (key: string) => client.del(key),
      deleteIf: (key: string, value: string) => client.eval(DELETE_IF, 1, key, value),
    };
  }
  return {
    get: (key: string) => readEntry(client.getRange(key, ...range)),
    set: (key: string, value: string, ttlMs: number) => client.set(key, value, { PX: ttlMs }),
    setIfAbsent: (key: string, value: string, ttlMs: number) =>
      client.set(key, value, { PX: ttlMs, NX: true }),
    delete: (key: string) => client.del(key),
    deleteIf: (key: string, value: string) => client.eval(DELETE_IF, { keys: [key], arguments: [value] }),
  };
}

/** Whether the value has the methods of one of the two client libraries. */
export function isRedisClient(value: unknown): value is NodeRedisClient | IoredisClient {
  if (typeof value !== 'object' || value === null) return false;
  const client = value as Record<string, unknown>;
  const methods = [isIoredis(value as IoredisClient) ? 'getrange' : 'getRange', 'set', 'del', 'eval'];
  return methods.every((method) => typeof client[method] === 'function');
}

/** Only clients of ioredis have `defineCommand`. */
function isIoredis(client: NodeRedisClient | IoredisClient): client is IoredisClient {
  return 'defineCommand' in Object(client);
}

/**
 * Resolves to undefined if there is no usable entry: GETRANGE of a missing key replies with an empty string, and another
 * application may have a list or hash under this key, which the next token then replaces.
 */
async function readEntry(reply: Promise<unknown>): Promise<string | undefined> {
  const value = await reply.catch((error: unknown) => {
    if (!(error instanceof Error && error.message.startsWith('WRONGTYPE'))) throw error;
  });
  const text = Buffer.isBuffer(value) ? value.toString() : value;
  return typeof text === 'string' && text !== '' && text.length <= MAX_ENTRY_LENGTH ? text : undefined;
}
