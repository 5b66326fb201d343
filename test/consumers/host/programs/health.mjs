// The health of two modules, with the @nestjs/terminus of this Nest.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { getServiceToken, ServiceModule } from 'nestjs-service';
import { ServiceHealthIndicator } from 'nestjs-service/terminus';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';

const simulator = await ServiceSimulator.start();
class HealthModule {}
Module({
  imports: [
    TerminusModule.forRoot({ logger: false }),
    ServiceModule.forRoot(simulator.moduleOptions({ environment: 'production', authentication: 'mtls' })),
    ServiceModule.forRoot({
      name: 'ksa',
      http: { retries: 0 },
      ...simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' }),
    }),
  ],
  providers: [ServiceHealthIndicator, ServiceHealthIndicator.forModule('ksa')],
})(HealthModule);
const app = await NestFactory.createApplicationContext(HealthModule, { logger: false, abortOnError: false });
const health = app.get(HealthCheckService, { strict: false });
const service = app.get(ServiceHealthIndicator);
const ksa = app.get(getServiceToken(ServiceHealthIndicator, 'ksa'));

const { status, details } = await health.check([
  () => service.isHealthy('service'),
  () => ksa.isHealthy('ksa'),
]);
assert.equal(status, 'ok');
assert.ok(details.service.certificate.daysLeft > 300);
assert.equal(details.ksa.token.ok, true);

simulator.fail({ face: 'sandbox', fault: { status: 500 } });
await assert.rejects(health.check([() => ksa.isHealthy('ksa', { ping: true })]), (error) => {
  assert.equal(error.getStatus(), 503);
  assert.equal(error.getResponse().error.ksa.ping.code, 'api_error 500');
  return true;
});
await app.close();
assert.equal((await service.isHealthy('service')).service.status, 'down');
await simulator.stop();
