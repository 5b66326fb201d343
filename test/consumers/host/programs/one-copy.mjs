// import and require() load the same classes, in an ES host that has a feature of CommonJS.
import { Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import axios from 'axios';
import { BanksService, ServiceHttpService, ServiceModule } from 'nestjs-service';
import * as testing from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const SUBPATHS = ['', '/redis', '/terminus', '/testing'];

class CommonJsFeature {
  constructor(banks) {
    this.banks = banks;
  }
}
Inject(require('nestjs-service').BanksService)(CommonJsFeature, undefined, 0);

const options = { appToken: 'a1', urls: { sandboxUrl: 'https://sandbox.example' } };
class AppModule {}
Module({ imports: [ServiceModule.forRoot(options)], providers: [CommonJsFeature] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
assert.equal(app.get(CommonJsFeature).banks, app.get(BanksService));
// Of the host's own axios: there is no second copy.
const http = app.get(ServiceHttpService);
let { headers } = {};
http.axiosRef.interceptors.request.use((config) => {
  ({ headers } = config);
  throw new Error('seen');
});
await assert.rejects(http.get('/'), /seen/);
assert.ok(headers instanceof axios.AxiosHeaders);
await app.close();

assert.equal(require('nestjs-service/testing').ServiceStub, testing.ServiceStub);
for (const subpath of SUBPATHS) {
  const imported = await import(`nestjs-service${subpath}`);
  const required = require(`nestjs-service${subpath}`);
  assert.deepEqual(Object.keys(required).sort(), Object.keys(imported).sort());
  for (const [name, value] of Object.entries(required)) assert.equal(value, imported[name], name);
}
