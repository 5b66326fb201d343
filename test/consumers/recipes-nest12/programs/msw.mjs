// MSW answers for the service, as nock does in docs/recipes.md.
import { Test } from '@nestjs/testing';
import { http, HttpResponse } from 'msw';
import { setupServer } from 'msw/node';
import { BanksService, ServiceApiError, ServiceModule } from 'nestjs-service';
import assert from 'node:assert/strict';

const sandboxUrl = 'https://sandbox.service.example';
const options = { authentication: 'app-token', appToken: 'app-token-1', urls: { sandboxUrl } };
const server = setupServer(
  http.get(`${sandboxUrl}/banks/v1`, ({ request }) => {
    const isKnown = request.headers.get('service-app-token') === 'app-token-1';
    const [status, message] = isKnown ? [404, 'No such path'] : [401, 'Who are you'];
    return HttpResponse.json({ status, message }, { status });
  }),
);
server.listen({ onUnhandledRequest: 'error' });
const module = await Test.createTestingModule({ imports: [ServiceModule.forRoot(options)] }).compile();
await assert.rejects(module.get(BanksService).list(), (error) => {
  assert.ok(error instanceof ServiceApiError);
  assert.equal(error.message, 'GET /banks/v1: HTTP 404: No such path');
  return true;
});
await module.close();
server.close();
