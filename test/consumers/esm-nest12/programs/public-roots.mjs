// The token endpoint is verified against Node's roots (those of NODE_EXTRA_CA_CERTS included) and tls.chain; the API
// against tls.chain alone. Node reads the variable as it starts, so a child does the calls.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { BanksService, ServiceAuthService, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';

if (process.env.MODULE_OPTIONS === undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'public-roots-'));
  const file = join(folder, 'roots.pem');
  try {
    const elsewhere = await ServiceSimulator.start();
    writeFileSync(file, elsewhere.chain);
    const env = {
      ...process.env,
      NODE_EXTRA_CA_CERTS: file,
      MODULE_OPTIONS: JSON.stringify(elsewhere.moduleOptions({ authentication: 'oauth' })),
    };
    const child = spawn(process.execPath, [process.argv[1]], { env, stdio: 'inherit' });
    const code = await new Promise((resolve) => child.once('exit', resolve));
    await elsewhere.stop();
    assert.equal(code, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
} else {
  const options = JSON.parse(process.env.MODULE_OPTIONS);
  const own = await ServiceSimulator.start();
  const start = (more) =>
    NestFactory.createApplicationContext(ServiceModule.forRoot({ ...options, ...more }), { logger: false });

  const trusting = await start({ tls: { chain: own.chain } });
  assert.ok(await trusting.get(ServiceAuthService).getApiToken());
  await assert.rejects(trusting.get(BanksService).list(), { kind: 'tls' });
  await trusting.close();

  const withoutChain = await start({ tls: {} });
  assert.ok(Array.isArray(await withoutChain.get(BanksService).list()));
  await withoutChain.close();
  await own.stop();
}
