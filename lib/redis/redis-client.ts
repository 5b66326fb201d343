/** A client of node-redis (`redis` 4 to 6, `@redis/client`): of one server, a cluster, Sentinel, or a pool. */
export interface NodeRedisClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, options: { PX: number; NX?: true }): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client of ioredis (5 and 6): `Redis`, with Sentinel too, or `Cluster`. */
export interface IoredisClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number, nx: 'NX'): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, numkeys: number, key: string, argument: string): Promise<unknown>;
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void;
}

/** The commands of Redis that a token store needs, each of one key: a cluster has no two of them to keep together. */
export interface RedisCommands {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** Whether there was no such key. */
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<boolean>;
  delete(key: string): Promise<void>;
  deleteIf(key: string, value: string): Promise<void>;
}

/** Compares and deletes in one step. */
const DELETE_IF = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;

export function commandsOf(client: NodeRedisClient | IoredisClient): RedisCommands {
  return {
    get: async (key) => {
      // Somebody else's list or hash under this key is no entry; the next token replaces it.
      const value = await client.get(key).catch(noneOfOtherType);
      return Buffer.isBuffer(value) ? value.toString() : typeof value === 'string' ? value : undefined;
    },
    delete: async (key) => void (await client.del(key)),
    ...(isIoredis(client) ? ioredisWrites(client) : nodeRedisWrites(client)),
  };
}

/** Whether it has the methods of one of the two. */
export function isRedisClient(value: unknown): value is NodeRedisClient | IoredisClient {
  if (typeof value !== 'object' || value === null) return false;
  const client = value as Record<string, unknown>;
  return ['get', 'set', 'del', 'eval'].every((method) => typeof client[method] === 'function');
}

/** Only ioredis defines commands on a client. */
function isIoredis(client: NodeRedisClient | IoredisClient): client is IoredisClient {
  return 'defineCommand' in client;
}

type Writes = Pick<RedisCommands, 'set' | 'setIfAbsent' | 'deleteIf'>;

function nodeRedisWrites(client: NodeRedisClient): Writes {
  return {
    set: async (key, value, ttlMs) => void (await client.set(key, value, { PX: ttlMs })),
    setIfAbsent: async (key, value, ttlMs) => isDone(await client.set(key, value, { PX: ttlMs, NX: true })),
    deleteIf: async (key, value) => void (await client.eval(DELETE_IF, { keys: [key], arguments: [value] })),
  };
}

function ioredisWrites(client: IoredisClient): Writes {
  return {
    set: async (key, value, ttlMs) => void (await client.set(key, value, 'PX', ttlMs)),
    setIfAbsent: async (key, value, ttlMs) => isDone(await client.set(key, value, 'PX', ttlMs, 'NX')),
    deleteIf: async (key, value) => void (await client.eval(DELETE_IF, 1, key, value)),
  };
}

function noneOfOtherType(error: unknown): undefined {
  if (!(error instanceof Error && error.message.startsWith('WRONGTYPE'))) throw error;
}

/** OK, or null where the key was there. */
function isDone(reply: unknown): boolean {
  return reply !== null && reply !== undefined;
}
