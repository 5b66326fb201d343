// Errors of another copy of the package, as a monorepo may bring one: the filter of this one answers them.
import { Controller, Get, Module } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import * as ours from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { cp, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const dist = new URL('.', import.meta.resolve('nestjs-service/package.json'));
const other = new URL('../nestjs-service-other/', dist);
await cp(fileURLToPath(dist), fileURLToPath(other), { recursive: true, dereference: true });
const theirs = await import(import.meta.resolve('nestjs-service').replace(dist.href, other.href));
assert.notEqual(theirs.ServiceApiError, ours.ServiceApiError);

class HostController {
  constructor(banks) {
    this.service = banks;
  }
  banks() {
    return this.service.list();
  }
}
class HostModule {}
const simulator = await ServiceSimulator.start();
const banks = theirs.BanksService;
Reflect.defineMetadata('design:paramtypes', [banks], HostController);
Get()(HostController.prototype, 'banks', Object.getOwnPropertyDescriptor(HostController.prototype, 'banks'));
Controller()(HostController);
Module({
  imports: [theirs.ServiceModule.forRoot(simulator.moduleOptions())],
  controllers: [HostController],
  providers: [{ provide: APP_FILTER, useClass: ours.ServiceExceptionFilter }],
})(HostModule);
const app = await NestFactory.create(HostModule, { logger: false });
await app.listen(0, '127.0.0.1');

simulator.fail({ path: '/banks/v1', times: 2, fault: { status: 422, json: { message: 'of the service' } } });
const answer = await fetch(await app.getUrl());
assert.deepEqual(
  [answer.status, await answer.json()],
  [422, { statusCode: 422, message: 'of the service', code: 'api_error' }],
);
await assert.rejects(app.get(banks).list(), (error) => {
  assert.equal(Object.getPrototypeOf(error), theirs.ServiceApiError.prototype);
  assert.ok(error instanceof ours.ServiceApiError && ours.isServiceError(error));
  assert.ok(!(error instanceof ours.ServiceConnectionError));
  return true;
});
await app.close();
await simulator.stop();
await rm(other, { recursive: true });
