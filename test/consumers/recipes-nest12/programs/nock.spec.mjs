// nock answers for the service, as a row of docs/recipes.md says.
import { Test } from '@nestjs/testing';
import nock from 'nock';
import { BanksService, ServiceModule } from 'nestjs-service';
import assert from 'node:assert/strict';
import { test } from 'node:test';

const sandboxUrl = 'https://sandbox.service.example';
const options = { authentication: 'app-token', appToken: 'app-token-1', urls: { sandboxUrl } };

test('the banks are listed', async () => {
  const module = await Test.createTestingModule({ imports: [ServiceModule.forRoot(options)] }).compile();
  nock(sandboxUrl, { reqheaders: { 'service-app-token': 'app-token-1' } })
    .get('/banks/v1')
    .reply(200, []);
  assert.deepEqual(await module.get(BanksService).list(), []);
  await module.close();
  nock.restore();
});
