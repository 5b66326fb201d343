// A circuit breaker as a row of docs/recipes.md says: open after five outages in a row, closed again after a call that went well. A refusal is no outage.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { circuitBreaker, ConsecutiveBreaker, handleWhen } from 'cockatiel';
import {
  BanksService,
  ServiceApiError,
  ServiceConnectionError,
  ServiceModule,
  ServiceTokenError,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { mock } from 'node:test';

const simulator = await ServiceSimulator.start();
const service = ServiceModule.forRoot({ isGlobal: true, http: { retries: 0 }, ...simulator.moduleOptions() });
const host = { module: class Host {}, imports: [service] };
const app = await NestFactory.createApplicationContext(host, { logger: false });
const isOutage = (error) =>
  error instanceof ServiceConnectionError ||
  (error instanceof ServiceApiError && error.status >= 500) ||
  (error instanceof ServiceTokenError && error.code === 'token_unavailable');
const breaker = circuitBreaker(handleWhen(isOutage), {
  breaker: new ConsecutiveBreaker(5),
  halfOpenAfter: 10_000,
});
const banks = { list: () => breaker.execute(() => app.get(BanksService).list()) };
const calls = () => simulator.apiRequests.length;
const failing = async (fault, times, expected) => {
  simulator.fail({ path: '/banks/v1', times, fault });
  for (let count = 0; count < times; count++) await assert.rejects(banks.list(), expected);
};

await failing({ status: 404 }, 6, { name: 'ServiceApiError' });
await failing({ status: 503 }, 3, { name: 'ServiceApiError' });
await failing('truncate', 2, { name: 'ServiceConnectionError' });
assert.equal(calls(), 11);
const unavailable = { name: 'Error', message: /breaker is open/ };
await assert.rejects(banks.list(), unavailable);
assert.equal(calls(), 11);

mock.timers.enable({ apis: ['Date'], now: Date.now() + 10_001 });
assert.equal((await banks.list()).length, 10);
assert.equal(calls(), 12);
await failing({ status: 503 }, 5, { name: 'ServiceApiError' });
await assert.rejects(banks.list(), unavailable);
mock.timers.reset();

// What does not go through the breaker is not stopped by it.
assert.equal((await app.get(BanksService).list()).length, 10);
await app.close();
await simulator.stop();
