import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createClient } from '@redis/client';
import { ServiceAuthService, ServiceModule } from 'nestjs-service';
import { RedisTokenStore } from 'nestjs-service/redis';
import { type FleetOrder } from './fleet.js';
import { steadyLoad, type SteadyLoad } from './steady-load.js';

/** Many replicas in one process, each a host with a Redis client of its own, which do what their parent orders. */
interface Replica {
  app: INestApplicationContext;
  redis: { destroy(): void };
  load: SteadyLoad;
}

/** They share one event loop, which a host has for itself. */
const STARTS_AT_A_TIME = 3;
const CUSTOMERS_IN_A_ROUND = 5;
const SCOPES = (process.env.SCALE_SCOPES ?? '').split(',');

let replicas: Replica[] = [];
let failures: string[] = [];
let longestWaitMs = 0;

class Host {}

async function startReplica(): Promise<Replica> {
  const redis = createClient({ url: process.env.FLEET_REDIS_URL, disableOfflineQueue: true });
  redis.on('error', () => undefined);
  await redis.connect();
  // A minTokenLife of 1: customer tokens are then renewed as often as the api token.
  const options = { linkSdk: { minTokenLife: 1 }, tokenStore: new RedisTokenStore({ client: redis }) };
  const host = { module: Host, imports: [ServiceModule.forRoot(options)] };
  const app = await NestFactory.createApplicationContext(host, { logger: false, abortOnError: false });
  const auth = app.get(ServiceAuthService, { strict: false });
  const getToken = async (scope: string): Promise<void> => {
    const begun = performance.now();
    const { expiresAt } = await auth.getToken(scope);
    longestWaitMs = Math.max(longestWaitMs, performance.now() - begun);
    if (expiresAt.getTime() <= Date.now()) throw new Error('a token that has ended was handed out');
  };
  const round = async (): Promise<void> => {
    await getToken('api');
    for (let index = 0; index < CUSTOMERS_IN_A_ROUND; index += 1) {
      await getToken(SCOPES[Math.floor(Math.random() * SCOPES.length)] ?? 'api');
    }
  };
  for (const scope of SCOPES) await getToken(scope);
  return { app, redis, load: steadyLoad(round, { perSecond: 1, concurrency: 1 }) };
}

async function stopReplica({ app, redis, load }: Replica): Promise<void> {
  await load.stop();
  failures.push(...load.failures.map(String));
  await app.close();
  redis.destroy();
}

async function start(count: number): Promise<void> {
  let left = count;
  const starter = async (): Promise<void> => {
    while (left-- > 0) replicas.push(await startReplica());
  };
  await Promise.all(Array.from({ length: STARTS_AT_A_TIME }, starter));
}

async function obey({ order, count = 0 }: FleetOrder): Promise<unknown> {
  if (order === 'start') return start(count);
  if (order === 'restart') {
    // Those that have run for longest.
    const old = replicas.slice(0, count);
    replicas = replicas.slice(count);
    await Promise.all(old.map(stopReplica));
    return start(count);
  }
  const seen = {
    failures: [...failures, ...replicas.flatMap(({ load }) => load.failures.map(String))],
    longestWaitMs,
  };
  longestWaitMs = 0;
  failures = [];
  return seen;
}

process.on('message', (message: FleetOrder) => {
  obey(message).then(
    (answer) => process.send?.({ id: message.id, answer }),
    (error: unknown) => process.send?.({ id: message.id, error: String(error) }),
  );
});
process.send?.({ id: 0 });
