// A host's tests with nock: it answers for the service, through the module's own transport and agent.
import assert from 'node:assert/strict';
import { NestFactory } from '@nestjs/core';
import nock from 'nock';
import { BanksService, ServiceModule } from 'nestjs-service';

const sandboxUrl = 'https://sandbox.service.example';
nock.disableNetConnect();
const app = await NestFactory.createApplicationContext(
  ServiceModule.forRoot({ authentication: 'app-token', appToken: 'app-token-1', urls: { sandboxUrl } }),
  { logger: false },
);
const banks = app.get(BanksService);

const answered = nock(sandboxUrl, { reqheaders: { 'service-app-token': 'app-token-1' } })
  .get('/banks/v1')
  .reply(200, [{ id: 'bank-1' }]);
assert.deepEqual(await banks.list(), [{ id: 'bank-1' }]);
assert.ok(answered.isDone());

const refused = nock(sandboxUrl)
  .get('/banks/v1')
  .reply(404, { status: 'NOT_FOUND', message: 'No such path' });
await assert.rejects(banks.list(), { name: 'ServiceApiError', status: 404, message: 'No such path' });
assert.ok(refused.isDone());

const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
const failing = nock(sandboxUrl).get('/banks/v1').once().replyWithError(reset);
const afterwards = nock(sandboxUrl).get('/banks/v1').reply(200, []);
assert.deepEqual(await banks.list(), []);
assert.ok(failing.isDone() && afterwards.isDone());

await app.close();
