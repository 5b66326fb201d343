import { type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createClient } from '@redis/client';
import { BanksService, ServiceAuthService, ServiceError, ServiceModule } from 'nestjs-service';
import { RedisTokenStore } from 'nestjs-service/redis';
import { type FleetOrder, type LoadReport } from './fleet.js';
import { steadyLoad, type SteadyLoad } from './steady-load.js';

/** One process of a fleet: a host whose tokens are shared over Redis, which does what its parent orders. */
const lines: string[] = [];
const take = (line: unknown): void => void lines.push(String(line));
const logger: LoggerService = { log: () => undefined, error: take, warn: take };

class Host {}

const client = createClient({ url: process.env.FLEET_REDIS_URL, disableOfflineQueue: true });
client.on('error', () => undefined);
await client.connect();
const options = { tokenStore: new RedisTokenStore({ client }) };
const host = { module: Host, imports: [ServiceModule.forRoot(options)] };
const app = await NestFactory.createApplicationContext(host, { logger, abortOnError: false });
const banks = app.get(BanksService, { strict: false });
const auth = app.get(ServiceAuthService, { strict: false });
let load: SteadyLoad | undefined;
let times: number[] = [];

async function call(): Promise<void> {
  const begun = performance.now();
  await banks.list();
  times.push(performance.now() - begun);
}

async function obey({ order, customer = '', perSecond = 0 }: FleetOrder): Promise<unknown> {
  switch (order) {
    case 'call':
      return call();
    case 'customer':
      return (await auth.getCustomerToken(customer)).accessToken;
    case 'load':
      times = [];
      load = steadyLoad(call, { perSecond, concurrency: 2 });
      return undefined;
    case 'report': {
      await load?.stop();
      const failures = (load?.failures ?? []).map((error) =>
        error instanceof ServiceError ? `${error.code}: ${error.message}` : String(error),
      );
      const sorted = times.sort((a, b) => a - b);
      const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
      const report: LoadReport = { calls: sorted.length, failures, lines, median: at(0.5), p99: at(0.99) };
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
