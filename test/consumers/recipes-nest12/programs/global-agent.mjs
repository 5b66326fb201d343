// global-agent in the host: without the client certificate and the module's verification, nothing is sent.
import assert from 'node:assert/strict';
import { bootstrap } from 'global-agent';
import { createServiceClient } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';

bootstrap();
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
const simulator = await ServiceSimulator.start();
for (const authentication of ['mtls', 'oauth']) {
  const client = await createServiceClient(
    simulator.moduleOptions({ environment: 'production', authentication }),
  );
  await assert.rejects(client.banks.list(), { kind: 'tls', reason: 'ERR_FOREIGN_CONNECTION' });
  await client.close();
}
assert.deepEqual(simulator.requests, []);
await simulator.stop();
