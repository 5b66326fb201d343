import { MAX_ENTRY_LENGTH } from '../config/token-cache.options.js';

/** A client of node-redis (`redis` 4 to 6, `@redis/client`): of one server, a cluster, Sentinel, or a pool. */
export interface NodeRedisClient {
  getRange(key: string, start: number, end: number): Promise<unknown>;
  set(key: string, value: string, options: { PX: number; NX?: true }): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client of ioredis (5 and 6): `Redis`, with Sentinel too, or `Cluster`. */
export interface IoredisClient {
  getrange(key: string, start: number, end: number): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number, nx: 'NX'): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, numkeys: number, key: string, argument: string): Promise<unknown>;
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void;
}

/** Compares and deletes in one step. */
const DELETE_IF = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;

/** The commands of Redis that a token store needs, each of one key: a cluster has no two of them to keep together. */
export type RedisCommands = ReturnType<typeof commandsOf>;

export function commandsOf(client: NodeRedisClient | IoredisClient) {
  // One character more than an entry has: somebody may have put 100 MB there.
  const range = [0, MAX_ENTRY_LENGTH] as const;
  if (isIoredis(client)) {
    return {
      get: (key: string) => entryOf(client.getrange(key, ...range)),
      set: (key: string, value: string, ttlMs: number) => client.set(key, value, 'PX', ttlMs),
      /** Null if the key was there. */
      setIfAbsent: (key: string, value: string, ttlMs: number) => client.set(key, value, 'PX', ttlMs, 'NX'),
      delete: (key: string) => client.del(key),
      deleteIf: (key: string, value: string) => client.eval(DELETE_IF, 1, key, value),
    };
  }
  return {
    get: (key: string) => entryOf(client.getRange(key, ...range)),
    set: (key: string, value: string, ttlMs: number) => client.set(key, value, { PX: ttlMs }),
    setIfAbsent: (key: string, value: string, ttlMs: number) =>
      client.set(key, value, { PX: ttlMs, NX: true }),
    delete: (key: string) => client.del(key),
    deleteIf: (key: string, value: string) => client.eval(DELETE_IF, { keys: [key], arguments: [value] }),
  };
}

/** Whether it has the methods of one of the two. */
export function isRedisClient(value: unknown): value is NodeRedisClient | IoredisClient {
  if (typeof value !== 'object' || value === null) return false;
  const client = value as Record<string, unknown>;
  const methods = [isIoredis(value as IoredisClient) ? 'getrange' : 'getRange', 'set', 'del', 'eval'];
  return methods.every((method) => typeof client[method] === 'function');
}

/** Only ioredis defines commands on a client. */
function isIoredis(client: NodeRedisClient | IoredisClient): client is IoredisClient {
  return 'defineCommand' in Object(client);
}

/** Somebody else's list or hash under this key is no entry; the next token replaces it. A range of nothing is empty. */
async function entryOf(reply: Promise<unknown>): Promise<string | undefined> {
  const value = await reply.catch((error: unknown) => {
    if (!(error instanceof Error && error.message.startsWith('WRONGTYPE'))) throw error;
  });
  const text = Buffer.isBuffer(value) ? value.toString() : value;
  return typeof text === 'string' && text !== '' && text.length <= MAX_ENTRY_LENGTH ? text : undefined;
}
