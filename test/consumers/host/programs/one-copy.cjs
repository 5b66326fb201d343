// require() and import() load the same classes, in a CommonJS host whose tests import the doubles.
const { Test } = require('@nestjs/testing');
const assert = require('node:assert/strict');

const SUBPATHS = ['', '/redis', '/terminus', '/testing'];

(async () => {
  const { BanksService, ServiceModule } = require('nestjs-service');
  const { stubService } = await import('nestjs-service/testing');
  const builder = Test.createTestingModule({ imports: [ServiceModule.forRoot()] });
  stubService(builder);
  const module = await builder.compile();
  assert.equal((await module.get(BanksService).list()).length, 2);
  await module.close();
  for (const subpath of SUBPATHS) {
    const required = require(`nestjs-service${subpath}`);
    const imported = await import(`nestjs-service${subpath}`);
    assert.deepEqual(Object.keys(required).sort(), Object.keys(imported).sort());
    for (const [name, value] of Object.entries(required)) assert.equal(value, imported[name], name);
  }
})();
