import {
  ValidationPipe,
  type INestApplication,
  type NestApplicationOptions,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ServiceApiError, ServiceExceptionFilter } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { BankingService } from './banking.service.js';
import { checkLazyParts } from './lazy-parts.js';
import { run } from './run.js';

type Create = (module: Type) => Promise<INestApplication>;
const nest = { logger: ['warn'] } satisfies NestApplicationOptions;
/** Given, as Nest looks for an adapter in node_modules, which an application in one bundle has not. */
const PLATFORMS: Create[] = [
  (module) => NestFactory.create(module, new ExpressAdapter(), nest),
  (module) => NestFactory.create(module, new FastifyAdapter(), nest),
];

/** Starts the simulator and, configured by its variables, a whole application; throws where a call goes wrong. */
async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  Object.assign(
    process.env,
    simulator.env({ environment: 'production', authentication: 'mtls', oauth: true }),
    simulator.env({ name: 'ksa', environment: 'sandbox', authentication: 'oauth', clientCertificate: false }),
  );
  // ConfigModule reads the environment when the module's file is loaded.
  const { AppModule } = await import('./app.module.js');
  try {
    for (const create of PLATFORMS) await check(await create(AppModule), simulator);
    await checkLazyParts(simulator);
  } finally {
    await simulator.stop();
  }
}

async function check(app: INestApplication, simulator: ServiceSimulator): Promise<void> {
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
  app.useGlobalFilters(
    new ServiceExceptionFilter({ passOn: ['CONSENT_EXPIRED'], fields: ['status_detail'] }),
  );
  await app.listen(0, '127.0.0.1');
  simulator.clearRequests();
  try {
    await callByInjection(app.get(BankingService), simulator);
    await callByHttp(await app.getUrl(), simulator);
  } finally {
    await app.close();
  }
}

async function callByInjection(banking: BankingService, simulator: ServiceSimulator): Promise<void> {
  const id = randomUUID();
  assert.equal((await banking.customers.create({ app_user_id: id }))?.app_user_id, id);
  assert.equal(simulator.customers.at(-1)?.app_user_id, id);

  const banks = await banking.banks.list();
  assert.ok(banks);
  const [created, listed] = simulator.apiRequests;
  for (const request of [created, listed]) {
    assert.equal(request?.face, 'base');
    assert.equal(request.certificateSubject, simulator.application.subject);
    assert.equal(request.headers['service-app-token'], simulator.appToken);
    assert.equal(request.headers['x-host'], 'consumer');
    assert.match(request.headers['user-agent'] ?? '', /^nestjs-service\/\d+\.\d+\.\d+/);
  }

  const session = await banking.sdk.connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
  const { access_token, ...rest } = session;
  assert.equal(simulator.issuedFor(access_token ?? '')?.scope, 'customer.c-1');
  assert.deepEqual(rest, { app_token: simulator.appToken, customer_id: 'c-1', permissions: ['identity'] });

  assert.equal((await banking.auth.getCustomerToken('c-1')).scope, 'customer.c-1');
  assert.ok(banking.auth.certificate);

  assert.deepEqual(await banking.ksaBanks.list(), banks);
  const last = simulator.apiRequests.at(-1);
  assert.equal(last?.face, 'sandbox');
  assert.match(last.headers.authorization ?? '', /^Bearer /);
  assert.equal((await banking.ksaAuth.getApiToken()).scope, 'api');

  simulator.fail({ times: 1, fault: { status: 409, json: { status: 409, message: 'taken' } } });
  const error: unknown = await banking.customers
    .create({ app_user_id: 'u-1' })
    .catch((reason: unknown) => reason);
  assert.ok(error instanceof ServiceApiError, 'the host sees another ServiceApiError than the one thrown');
  assert.equal(error.status, 409);
  assert.equal(error.body?.message, 'taken');
}

async function callByHttp(url: string, simulator: ServiceSimulator): Promise<void> {
  assert.equal((await fetch(`${url}/banks`)).status, 200);
  assert.equal((await post(`${url}/customers`, { app_user_id: randomUUID() })).status, 201);
  // The pipe knows the DTO's rules only where both share one class-validator.
  assert.equal((await post(`${url}/customers`, { app_user_id: '' })).status, 400);
  simulator.fail({ times: 1, fault: { status: 401, json: { status: 401, message: 'who' } } });
  assert.equal((await fetch(`${url}/banks`)).status, 502);
  const expired = { status: 'CONSENT_EXPIRED', message: 'Ask again', status_detail: 'By the bank' };
  simulator.fail({ times: 1, fault: { status: 403, json: expired } });
  assert.deepEqual(await (await fetch(`${url}/banks`)).json(), {
    statusCode: 403,
    message: 'Ask again',
    code: 'api_error',
    serviceStatus: 'CONSENT_EXPIRED',
    fields: { status_detail: 'By the bank' },
  });
}

function post(url: string, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

run(main);
