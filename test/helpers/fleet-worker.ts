import { type INestApplicationContext, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createClient } from '@redis/client';
import { BanksService, ServiceAuthService, ServiceModule } from 'nestjs-service';
import { RedisTokenStore } from 'nestjs-service/redis';
import { type FleetOrder, type FleetReport } from './fleet.js';
import { steadyLoad, type SteadyLoad } from './steady-load.js';

/** A host with a Redis client of its own. */
interface Replica {
  app: INestApplicationContext;
  redis: { destroy(): void };
  load?: SteadyLoad;
}

/** The hosts of this process share one event loop. A real host has an event loop of its own. */
const STARTS_AT_A_TIME = 3;
const CUSTOMERS_IN_A_ROUND = 5;
/** With these, each replica gets a token of all of them at its start, and of some each second. */
const SCOPES = (process.env.FLEET_SCOPES ?? '').split(',').filter((scope) => scope !== '');

class Host {}

const lines: string[] = [];
const take = (line: unknown): void => void lines.push(String(line));
const logger: LoggerService = { log: () => undefined, error: take, warn: take };
const replicas: Replica[] = [];
let failures: unknown[] = [];
let calls = 0;
let longestMs = 0;

async function timed<T>(call: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  try {
    const answer = await call();
    calls += 1;
    return answer;
  } finally {
    longestMs = Math.max(longestMs, performance.now() - begun);
  }
}

const list = ({ app }: Replica) => timed(() => app.get(BanksService, { strict: false }).list());

async function getToken({ app }: Replica, scope: string): Promise<string> {
  const auth = app.get(ServiceAuthService, { strict: false });
  const { accessToken, expiresAt } = await timed(() => auth.getToken(scope));
  if (expiresAt.getTime() <= Date.now()) throw new Error('a token that has ended was handed out');
  return accessToken;
}

async function round(replica: Replica): Promise<void> {
  await getToken(replica, 'api');
  for (let index = 0; index < CUSTOMERS_IN_A_ROUND; index += 1) {
    await getToken(replica, SCOPES[Math.floor(Math.random() * SCOPES.length)] ?? 'api');
  }
}

async function startReplica(): Promise<void> {
  const redis = createClient({ url: process.env.FLEET_REDIS_URL, disableOfflineQueue: true });
  redis.on('error', () => undefined);
  await redis.connect();
  // A minTokenLife of 1: customer tokens are then renewed as often as the api token.
  const options = { linkSdk: { minTokenLife: 1 }, tokenStore: new RedisTokenStore({ client: redis }) };
  const host = { module: Host, imports: [ServiceModule.forRoot(options)] };
  const app = await NestFactory.createApplicationContext(host, { logger, abortOnError: false });
  const replica: Replica = { app, redis };
  for (const scope of SCOPES) await getToken(replica, scope);
  if (SCOPES.length > 0) replica.load = steadyLoad(() => round(replica), { perSecond: 1, concurrency: 1 });
  replicas.push(replica);
}

async function start(count: number): Promise<void> {
  let left = count;
  const starter = async (): Promise<void> => {
    while (left-- > 0) await startReplica();
  };
  await Promise.all(Array.from({ length: STARTS_AT_A_TIME }, starter));
}

async function stop({ app, redis, load }: Replica): Promise<void> {
  await load?.stop();
  failures.push(...(load?.failures ?? []));
  await app.close();
  redis.destroy();
}

async function obey({ order, count = 1, customer = '', perSecond = 0 }: FleetOrder): Promise<unknown> {
  const [first] = replicas;
  switch (order) {
    case 'start':
      return start(count);
    case 'restart': {
      // The hosts that have run for longest.
      const old = replicas.splice(0, count);
      await Promise.all(old.map(stop));
      return start(count);
    }
    case 'call':
      return void (await list(first));
    case 'customer':
      return getToken(first, `customer.${customer}`);
    case 'all': {
      const tokens = replicas.map((one) => getToken(one, 'api').catch((error: unknown) => String(error)));
      await Promise.all(tokens);
      return longestMs;
    }
    case 'load':
      [calls, longestMs] = [0, 0];
      first.load = steadyLoad(() => list(first), { perSecond, concurrency: 2 });
      return undefined;
    case 'report': {
      // A running load of calls ends with the process.
      if (SCOPES.length === 0) await first.load?.stop();
      const failed = [...failures, ...replicas.flatMap(({ load }) => load?.failures ?? [])];
      const report: FleetReport = { calls, failures: failed.map(String), lines, longestMs };
      [calls, longestMs, failures] = [0, 0, []];
      return report;
    }
  }
}

process.on('message', (message: FleetOrder) => {
  obey(message).then(
    (answer) => process.send?.({ id: message.id, answer }),
    (error: unknown) => process.send?.({ id: message.id, error: String(error) }),
  );
});
process.send?.({ id: 0 });
