// One id in the inbound request, in the calls of the service, and in the log lines, those of the module too.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Logger, LoggerErrorInterceptor } from 'nestjs-pino';
import { BanksService, ServiceExceptionFilter } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

if (process.argv[2] === 'host') {
  const { BanksController } = await import('../dist/getting-started/banks/banks.controller.js');
  const { RequestIdsModule } = await import('../dist/request-ids.module.js');
  const host = { module: class Host {}, imports: [RequestIdsModule], controllers: [BanksController] };
  const app = await NestFactory.create(host, { bufferLogs: true });
  app.useLogger(app.get(Logger));
  app.useGlobalInterceptors(new LoggerErrorInterceptor());
  app.useGlobalFilters(new ServiceExceptionFilter());
  await app.listen(0, '127.0.0.1');
  // Outside of a request.
  await app.get(BanksService, { strict: false }).list();
  process.send(await app.getUrl());
  process.once('message', () => void app.close().then(() => process.disconnect()));
} else {
  const simulator = await ServiceSimulator.start();
  const env = { ...process.env, ...simulator.env({ environment: 'production', authentication: 'oauth' }) };
  const host = fork(process.argv[1], ['host'], { env, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const printed = text(host.stdout);
  const [url] = await once(host, 'message');

  simulator.fail({ path: '/banks/v1', fault: { status: 503 } });
  const call = async (headers) => assert.equal((await fetch(`${url}/banks`, { headers })).status, 200);
  await call({ 'x-request-id': 'inbound-1', authorization: 'Bearer of-a-user' });
  await Promise.all([call({ 'x-request-id': 'inbound-2' }), call({ 'x-request-id': 'not\tusable' }), call()]);
  simulator.fail({ path: '/banks/v1', fault: { status: 403 } });
  const refused = await fetch(`${url}/banks`, { headers: { 'x-request-id': 'inbound-3' } });
  assert.equal(refused.status, 502);
  host.send('end');
  const [code] = await once(host, 'exit');
  assert.equal(code, 0);

  const [outside, ...sent] = simulator.apiRequests.map(({ headers }) => headers['x-correlation-id']);
  assert.equal(outside, undefined);
  assert.deepEqual(sent.slice(0, 2), ['inbound-1', 'inbound-1']);
  assert.equal(sent.filter((id) => id === 'inbound-2').length, 1);
  const made = sent.filter((id) => /^[\da-f]{8}-[\da-f-]{27}$/.test(id));
  assert.equal(new Set(made).size, 2);

  const output = await printed;
  const lines = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const of = (id) => lines.filter(({ req }) => req?.id === id);
  assert.ok(
    of('inbound-1').some(({ context, msg }) => context === 'ServiceModule' && /503/.test(msg)),
    output,
  );
  for (const id of ['inbound-1', 'inbound-2', ...made]) {
    assert.ok(
      of(id).some(({ msg }) => msg === 'request completed'),
      id,
    );
  }
  const { err, res } = of('inbound-3').find(({ err }) => err);
  assert.deepEqual([err.type, err.code, err.status], ['ServiceApiError', 'api_error', 403]);
  assert.equal(res.statusCode, 502);
  assert.ok(err.correlationId && /SERVICE_/.test(err.hint), output);
  assert.ok(lines.some(({ context, req }) => context === 'ServiceModule' && req === undefined));
  assert.ok(!output.includes('of-a-user'));
  await simulator.stop();
}
