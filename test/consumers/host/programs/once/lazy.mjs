// A ServiceModule that is loaded lazily starts and ends with the ServiceClients of the application, in this Nest.
import { Module } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { BanksService, ServiceClients, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';

const simulator = await ServiceSimulator.start();
const options = simulator.moduleOptions({ environment: 'sandbox' });
class HostModule {}
Module({ providers: [ServiceClients] })(HostModule);
const nest = { logger: false, abortOnError: false };
const app = await NestFactory.createApplicationContext(HostModule, nest);
const loader = app.get(LazyModuleLoader);

const refused = ServiceModule.forRoot({ ...options, appToken: 'wrong', startupCheck: 'fail' });
await assert.rejects(
  loader.load(() => refused),
  { code: 'startup_check_failed' },
);
const loaded = await loader.load(() => ServiceModule.forRoot(options));
const client = await app.get(ServiceClients).create({ ...options, name: 'acme' });
for (const banks of [loaded.get(BanksService), client.banks]) assert.equal((await banks.list()).length, 10);
await app.close();
for (const banks of [loaded.get(BanksService), client.banks]) {
  await assert.rejects(banks.list(), { code: 'connection_closed' });
}
await simulator.stop();
