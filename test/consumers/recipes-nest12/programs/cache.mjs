// The banks from a cache: one call for all who ask at once, another one after a minute, and no error is kept.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { CachedBanks, CachedBanksModule } from '../dist/cached-banks.js';

const simulator = await ServiceSimulator.start();
const service = ServiceModule.forRoot({ isGlobal: true, http: { retries: 0 }, ...simulator.moduleOptions() });
const host = { module: class Host {}, imports: [service, CachedBanksModule] };
const app = await NestFactory.createApplicationContext(host, { logger: false });
const banks = app.get(CachedBanks);
const calls = () => simulator.apiRequests.length;

simulator.fail({ path: '/banks/v1', fault: { status: 503 } });
await assert.rejects(banks.list(), { status: 503 });
assert.equal(calls(), 1);
const lists = await Promise.all(Array.from({ length: 20 }, () => banks.list()));
assert.ok(lists.every((list) => list.length === 10 && list[0].name));
assert.equal(calls(), 2);

mock.timers.enable({ apis: ['Date'], now: Date.now() + 59_000 });
await banks.list();
assert.equal(calls(), 2);
mock.timers.tick(2_000);
await banks.list();
assert.equal(calls(), 3);
mock.timers.reset();

await app.close();
await simulator.stop();
