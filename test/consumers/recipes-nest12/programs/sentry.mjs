// Sentry beside the answers of ServiceExceptionFilter, as docs/recipes.md says: what Sentry would send, and what callers get.
import * as Sentry from '@sentry/nestjs';

const reported = [];
Sentry.init({
  dsn: 'https://key@sentry.invalid/1',
  transport: () => ({ send: async () => ({}), flush: async () => true }),
  beforeSend: (event) => (reported.push(event.exception.values.at(-1).type), null),
});

await import('reflect-metadata');
const { NestFactory } = await import('@nestjs/core');
const { ServiceModule } = await import('nestjs-service');
const { ServiceSimulator } = await import('nestjs-service/testing');
const { default: assert } = await import('node:assert/strict');
const { BanksController } = await import('../dist/getting-started/banks/banks.controller.js');
const { ReportingModule } = await import('../dist/reporting.module.js');

const simulator = await ServiceSimulator.start();
const service = ServiceModule.forRoot({ ...simulator.moduleOptions(), http: { retries: 0 } });
const host = { module: class Host {}, imports: [ReportingModule, service], controllers: [BanksController] };
const app = await NestFactory.create(host, { logger: false });
await app.listen(0, '127.0.0.1');
const statusWith = async (status) => {
  simulator.fail({ path: '/banks/v1', fault: { status } });
  return (await fetch(`${await app.getUrl()}/banks`, { headers: { connection: 'close' } })).status;
};

assert.deepEqual([await statusWith(503), await statusWith(409)], [502, 409]);
await Sentry.flush(1_000);
assert.deepEqual(reported, ['ServiceApiError']);
await app.close();
await simulator.stop();
await Sentry.close();
