import { expect, it, jest } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  isServiceError,
  ServiceApiError,
  ServiceConnectionError,
  ServiceExceptionFilter,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { rejection } from '../helpers/start-module.js';

it('answers the errors of another copy of the package, which are of the same classes', async () => {
  const simulator = await ServiceSimulator.start();
  jest.resetModules();
  const theirs = await import('../helpers/start-module.js');
  const { banks, module } = await theirs.startModule(simulator.moduleOptions());

  @Controller()
  class HostController {
    @Get()
    list() {
      return banks.list();
    }
  }
  const testing = await Test.createTestingModule({ controllers: [HostController] }).compile();
  const app = testing.createNestApplication({ logger: false }).useGlobalFilters(new ServiceExceptionFilter());
  await app.listen(0, '127.0.0.1');
  const json = { message: 'of the service' };
  simulator.fail({ path: '/banks/v1', times: 2, fault: { status: 422, json } });
  const answer = await fetch(await app.getUrl());
  const body: unknown = await answer.json();

  const error = await rejection(banks.list());
  await app.close();
  await module.close();
  await simulator.stop();
  expect([answer.status, body]).toEqual([422, { statusCode: 422, code: 'api_error', ...json }]);
  expect(Object.getPrototypeOf(error)).not.toBe(ServiceApiError.prototype);
  expect(error).toBeInstanceOf(ServiceApiError);
  expect(isServiceError(error)).toBe(true);
  expect(error).not.toBeInstanceOf(ServiceConnectionError);
});
