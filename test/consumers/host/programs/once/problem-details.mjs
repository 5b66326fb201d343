// The filter of docs/exception-filter.md: the adapters of NestJS 11 and 12 treat a content type of the host's own differently.
import assert from 'node:assert/strict';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { serviceErrors } from 'nestjs-service/testing';
import { ProblemFilter } from '../../dist/problem.filter.js';

class HostController {
  refuse() {
    throw serviceErrors.request('app_user_id', 'is missing');
  }
}
class HostModule {}
Controller()(HostController);
Get()(
  HostController.prototype,
  'refuse',
  Object.getOwnPropertyDescriptor(HostController.prototype, 'refuse'),
);
Module({ controllers: [HostController] })(HostModule);

for (const adapter of [new ExpressAdapter(), new FastifyAdapter()]) {
  const app = await NestFactory.create(HostModule, adapter, { logger: false });
  app.useGlobalFilters(new ProblemFilter());
  await app.listen(0, '127.0.0.1');
  const answer = await fetch(await app.getUrl());
  await app.close();
  assert.match(answer.headers.get('content-type'), /^application\/problem\+json/);
  assert.deepEqual(await answer.json(), { title: 'app_user_id is missing', status: 400 });
  assert.equal(answer.status, 400);
}
