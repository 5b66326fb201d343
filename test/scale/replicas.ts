import { type INestApplicationContext, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createClient } from '@redis/client';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { BanksService, ServiceAuthService, ServiceError, ServiceModule } from 'nestjs-service';
import { RedisTokenStore } from 'nestjs-service/redis';
import { type SimulatorModuleOptions } from 'nestjs-service/testing';
import { steadyLoad, type SteadyLoad } from '../helpers/steady-load.js';
import { obey } from './worker.js';

export interface ReplicaSetUp {
  options: SimulatorModuleOptions;
  /** The client secret of all replicas. */
  secretFile: string;
  redisUrl: string;
  customers: string[];
}

export interface ReplicaReport {
  /** Milliseconds that callers waited for a token. */
  tokenWaits: number[];
  /** Milliseconds of whole calls of the API. */
  callTimes: number[];
  /** How often each error. */
  failures: Record<string, number>;
  /** How often each warning of the log. */
  warnings: Record<string, number>;
  /** Milliseconds that the event loop stood still, at most: nobody can wait for less. */
  standstill: number;
}

interface Replica {
  app: INestApplicationContext;
  redis: { destroy(): void };
  load: SteadyLoad;
}

/** Of one replica, in a second: a token for some customers and the API; each fifth time a call of the API. */
const ROUNDS_PER_SECOND = 1;
const CUSTOMERS_IN_A_ROUND = 5;
const CALLS_IN_A_ROUND = 0.2;
/** They share one event loop, which a host has for itself. */
const STARTS_AT_A_TIME = 3;

let setUp: ReplicaSetUp;
let replicas: Replica[] = [];
let report = emptyReport();
const loopDelay = monitorEventLoopDelay();
loopDelay.enable();

function emptyReport(): ReplicaReport {
  return { tokenWaits: [], callTimes: [], failures: {}, warnings: {}, standstill: 0 };
}

function count(counts: Record<string, number>, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}

const warn = (line: unknown): void => count(report.warnings, String(line));
const logger: LoggerService = { log: () => undefined, error: warn, warn };

async function timed(times: 'tokenWaits' | 'callTimes', work: () => Promise<unknown>): Promise<void> {
  const begun = performance.now();
  try {
    await work();
  } catch (error) {
    count(report.failures, error instanceof ServiceError ? `${error.code}: ${error.message}` : String(error));
  } finally {
    report[times].push(performance.now() - begun);
  }
}

async function getToken(auth: ServiceAuthService, scope: string): Promise<void> {
  await timed('tokenWaits', async () => {
    const { expiresAt } = await auth.getToken(scope);
    if (expiresAt.getTime() <= Date.now()) throw new Error('a token that has ended was handed out');
  });
}

class Host {}

async function startReplica(): Promise<Replica> {
  const { options, secretFile, redisUrl, customers } = setUp;
  const redis = createClient({ url: redisUrl, disableOfflineQueue: true });
  redis.on('error', () => undefined);
  await redis.connect();
  const module = ServiceModule.forRoot({
    ...options,
    oauth: { ...options.oauth, clientSecret: { file: secretFile } },
    // Customer tokens are then renewed as often as the api token.
    linkSdk: { minTokenLife: 1 },
    tokenStore: new RedisTokenStore({ client: redis }),
  });
  const host = { module: Host, imports: [module] };
  const app = await NestFactory.createApplicationContext(host, { logger, abortOnError: false });
  const auth = app.get(ServiceAuthService, { strict: false });
  const banks = app.get(BanksService, { strict: false });
  const scopes = customers.map((customer) => `customer.${customer}`);
  const listBanks = () => timed('callTimes', () => banks.list());
  for (const scope of ['api', ...scopes]) await getToken(auth, scope);
  await listBanks();
  const round = async (): Promise<void> => {
    await getToken(auth, 'api');
    for (let index = 0; index < CUSTOMERS_IN_A_ROUND; index += 1) {
      await getToken(auth, scopes[Math.floor(Math.random() * scopes.length)]);
    }
    if (Math.random() < CALLS_IN_A_ROUND) await listBanks();
  };
  return { app, redis, load: steadyLoad(round, { perSecond: ROUNDS_PER_SECOND, concurrency: 1 }) };
}

async function stopReplica({ app, redis, load }: Replica): Promise<void> {
  await load.stop();
  await app.close();
  redis.destroy();
}

const megabytes = (bytes: number): number => bytes / 1024 / 1024;

const orders = {
  setUp: (given: ReplicaSetUp) => void (setUp = given),
  async start(number: number): Promise<void> {
    let left = number;
    const starter = async (): Promise<void> => {
      while (left-- > 0) replicas.push(await startReplica());
    };
    await Promise.all(Array.from({ length: STARTS_AT_A_TIME }, starter));
  },
  /** Closes those that have run for longest, and starts as many. */
  async restart(number: number): Promise<void> {
    const old = replicas.slice(0, number);
    replicas = replicas.slice(number);
    await Promise.all(old.map(stopReplica));
    await orders.start(number);
  },
  stop: () => Promise.all(replicas.splice(0).map(stopReplica)).then(() => undefined),
  /** What was seen since the last time. */
  report(): ReplicaReport {
    const seen = { ...report, standstill: loopDelay.max / 1e6 };
    report = emptyReport();
    loopDelay.reset();
    return seen;
  },
  /** After a garbage collection. */
  memory(): { heapMb: number; rssMb: number } {
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    return { heapMb: megabytes(heapUsed), rssMb: megabytes(rss) };
  },
};
export type ReplicaOrders = typeof orders;

obey(orders);
