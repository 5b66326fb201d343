// telemetry.mjs of docs/operation.md: the SDK, started with --import, sends the module's spans and metrics over OTLP.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

if (process.env.MODULE_OPTIONS === undefined) {
  const { ServiceSimulator } = await import('nestjs-service/testing');
  const guide = readFileSync('docs/operation.md', 'utf8');
  const [, snippet] = /^```js\n(\/\/ telemetry\.mjs\n[^]*?)^```$/m.exec(guide);
  const file = join(import.meta.dirname, '..', 'telemetry.tmp.mjs');
  writeFileSync(file, snippet);
  const sent = {};
  const collector = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    (sent[request.url] ??= []).push(body);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const simulator = await ServiceSimulator.start();
  try {
    const env = {
      ...process.env,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.address().port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_METRICS_EXPORTER: 'otlp',
      MODULE_OPTIONS: JSON.stringify(simulator.moduleOptions({ authentication: 'oauth' })),
    };
    const child = spawn(process.execPath, ['--import', file, process.argv[1]], { env, stdio: 'inherit' });
    assert.equal(await new Promise((resolve) => child.once('exit', resolve)), 0);
    const spans = String(sent['/v1/traces']);
    assert.match(spans, /"name":"GET \/banks\/v1"/);
    assert.match(spans, /"scope":\{"name":"nestjs-service","version":"\d+\.\d+\.\d+/);
    const metrics = String(sent['/v1/metrics']);
    for (const name of ['call.duration', 'connection.queue_time', 'token.requests']) {
      assert.ok(metrics.includes(`"name":"nestjs_service.${name}"`), `${name} in ${metrics}`);
    }
    const [{ headers }] = simulator.apiRequests;
    assert.match(headers.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  } finally {
    await simulator.stop();
    collector.close();
    rmSync(file);
  }
} else {
  const { NestFactory } = await import('@nestjs/core');
  const { BanksService, ServiceModule } = await import('nestjs-service');
  const module = ServiceModule.forRoot(JSON.parse(process.env.MODULE_OPTIONS));
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  await app.get(BanksService).list();
  await app.close();
}
