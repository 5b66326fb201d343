import { NestFactory } from '@nestjs/core';
import { ServiceApiError, ServiceModule, ServiceStartupError } from 'nestjs-service';
import { type NodeRedisClient, RedisTokenStore } from 'nestjs-service/redis';
import { serviceErrors, type ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';

/** What a builder could tear apart: classes of several entries of the package, and what is loaded on demand only. */
export async function checkLazyParts(simulator: ServiceSimulator): Promise<void> {
  const imported = await import('nestjs-service');
  assert.equal(imported.ServiceModule, ServiceModule, 'import() gives another copy of the package');
  assert.ok(
    serviceErrors.api(404) instanceof ServiceApiError,
    'nestjs-service/testing has a copy of its own',
  );

  const [fault] = new RedisTokenStore({ client: {} as NodeRedisClient }).check();
  assert.match(fault ?? '', /not a client of node-redis or ioredis/);

  const options = simulator.moduleOptions({ environment: 'sandbox', authentication: 'app-token' });
  const refused = ServiceModule.forRoot({ ...options, appToken: 'wrong', startupCheck: 'fail' });
  const start = NestFactory.createApplicationContext(refused, { logger: false, abortOnError: false });
  const error: unknown = await start.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ServiceStartupError, `the start-up check rejected with ${String(error)}`);
  assert.equal(error.faults[0]?.variable, 'SERVICE_APP_TOKEN');
}
