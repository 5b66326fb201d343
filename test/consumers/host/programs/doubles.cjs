// A host's own tests with node:test, as CommonJS modules: without globals, and without anything that compiles.
const { Module } = require('@nestjs/common');
const { ConfigModule } = require('@nestjs/config');
const { Test } = require('@nestjs/testing');
const {
  BanksService,
  CustomersService,
  getServiceToken,
  ServiceApiError,
  ServiceModule,
} = require('nestjs-service');
const { serviceErrors, stubService } = require('nestjs-service/testing');
const assert = require('node:assert/strict');
const { test } = require('node:test');

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
