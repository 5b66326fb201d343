import { createClient, type RedisClientType } from '@redis/client';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './loopback.js';

export interface RedisServer {
  port: number;
  /** redis://127.0.0.1:port */
  url: string;
  connect(): Promise<RedisClientType>;
  /** Suspends the server: it sends no more replies, and its connections stay open. */
  freeze(): void;
  thaw(): void;
  /** Kills the server: its connections are closed, and nothing is saved. */
  crash(): Promise<void>;
  /** Starts the server again at the same port, after a crash. */
  restart(): Promise<void>;
  /** Kills the server and removes its folder. Each test calls this at its end. */
  kill(): Promise<void>;
}

/** A redis-server of the test's own, on loopback, with no data on disk. */
export async function startRedis(program: string, ...options: string[]): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'nestjs-service-redis-'));
  // Sentinel saves its state in its configuration file, so the file must exist and be writable.
  const file = join(folder, 'redis.conf');
  await writeFile(file, '');
  const port = await freePort();
  const start = async (): Promise<ChildProcess> => {
    const common = ['--bind', '127.0.0.1', '--save', '', '--dir', folder];
    const server = spawn(program, [file, '--port', String(port), ...common, ...options], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for await (const line of server.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      if (/eady to accept connections|Sentinel ID is/.test(String(line))) break;
    }
    server.stdout.resume();
    return server;
  };
  let server = await start();
  const crash = async (): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  const url = `redis://127.0.0.1:${port}`;
  return {
    port,
    url,
    connect: async () => {
      const client: RedisClientType = createClient({ url, disableOfflineQueue: true });
      client.on('error', () => undefined);
      await client.connect();
      return client;
    },
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    crash,
    restart: async () => void (server = await start()),
    kill: async () => {
      await crash();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
