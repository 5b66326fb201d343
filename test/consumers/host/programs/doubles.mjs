// A host's own tests with node:test, as ES modules: without globals, and without anything that compiles.
import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import {
  BanksService,
  CustomersService,
  getServiceToken,
  ServiceApiError,
  ServiceModule,
} from 'nestjs-service';
import { serviceErrors, stubService } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { test } from 'node:test';

class AppModule {}
Module({
  imports: [ConfigModule.forRoot(), ServiceModule.forRoot(), ServiceModule.forRoot({ name: 'ksa' })],
})(AppModule);

test('stubService', async () => {
  const builder = Test.createTestingModule({ imports: [AppModule] });
  const service = stubService(builder, {
    banks: { list: () => ['Alpha Bank'] },
    named: { ksa: { banks: { list: () => Promise.reject(serviceErrors.api(404)) } } },
  });
  const module = await builder.compile();
  await module.init();
  const get = (type, name) => module.get(getServiceToken(type, name), { strict: false });
  assert.deepEqual(await get(BanksService).list(), ['Alpha Bank']);
  await assert.rejects(get(BanksService, 'ksa').list(), ServiceApiError);
  await assert.rejects(get(CustomersService).create({}), { code: 'invalid_request' });
  assert.deepEqual(
    service.calls.map(({ method }) => method),
    ['banks.list', 'banks.list', 'customers.create'],
  );
  await module.close();
});
