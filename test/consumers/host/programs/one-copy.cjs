// require() and import() load the same classes, in a CommonJS host whose tests import the doubles.
const { NestFactory } = require('@nestjs/core');
const assert = require('node:assert/strict');

const SUBPATHS = ['', '/redis', '/terminus', '/testing'];

(async () => {
  const { BanksService } = require('nestjs-service');
  const { ServiceTestingModule } = await import('nestjs-service/testing');
  const app = await NestFactory.createApplicationContext(ServiceTestingModule.forRoot(), { logger: false });
  assert.equal((await app.get(BanksService).list()).length, 2);
  await app.close();
  for (const subpath of SUBPATHS) {
    const required = require(`nestjs-service${subpath}`);
    const imported = await import(`nestjs-service${subpath}`);
    assert.deepEqual(Object.keys(required).sort(), Object.keys(imported).sort());
    for (const [name, value] of Object.entries(required)) assert.equal(value, imported[name], name);
  }
})();
