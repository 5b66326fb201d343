import { createClient, type RedisClientType } from '@redis/client';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TokenStore } from 'nestjs-service';

export interface RedisServer {
  connect(): Promise<RedisClientType>;
  /** Answers nothing from now on; connections stay open. */
  freeze(): void;
  thaw(): void;
  /** As a crash: connections are closed, nothing is saved. */
  kill(): Promise<void>;
}

/** A redis-server of the test's own, on a Unix socket, with nothing on disk. */
export async function startRedis(program: string): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'nestjs-service-redis-'));
  const path = join(folder, 'redis.sock');
  const server = spawn(program, ['--port', '0', '--unixsocket', path, '--save', '', '--dir', folder], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(server, 'exit');
  for await (const line of server.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    if (String(line).includes('eady to accept connections')) break;
  }
  server.stdout.resume();
  return {
    connect: async () => {
      const client: RedisClientType = createClient({
        socket: { path, tls: false },
        disableOfflineQueue: true,
      });
      client.on('error', () => undefined);
      await client.connect();
      return client;
    },
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    kill: async () => {
      server.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const DELETE_IF = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end`;

/** A TokenStore as a host would write it. */
export function redisTokenStore(client: RedisClientType): TokenStore {
  const deleteIf = async (key: string, value: string): Promise<void> => {
    await client.eval(DELETE_IF, { keys: [key], arguments: [value] });
  };
  return {
    get: async (key) => (await client.get(key)) ?? undefined,
    set: async (key, value, ttlMs) => void (await client.set(key, value, { PX: Math.ceil(ttlMs) })),
    delete: async (key, ifValue) =>
      ifValue === undefined ? void (await client.del(key)) : deleteIf(key, ifValue),
    lock: async (key, ttlMs) => {
      const holder = crypto.randomUUID();
      const taken = await client.set(key, holder, { PX: ttlMs, NX: true });
      return taken === null ? undefined : () => deleteIf(key, holder);
    },
  };
}
