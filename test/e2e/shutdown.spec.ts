import { afterEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  BanksService,
  CustomersService,
  ServiceAuthService,
  ServiceConnectionError,
  ServiceModule,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { rejection } from '../helpers/start-module.js';

describe('shutdown', () => {
  let simulator: ServiceSimulator;

  afterEach(() => simulator.stop());

  async function start(shutdownTimeout: number) {
    simulator = await ServiceSimulator.start();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options, http: { shutdownTimeout } })],
    }).compile();
    module.useLogger(false);
    await module.init();
    return module;
  }

  it('lets a call in flight end, refuses new ones, and closes every connection', async () => {
    const module = await start(5_000);
    const banks = module.get(BanksService);
    await banks.list();
    simulator.fail({ path: '/banks/v1', fault: { delayMs: 400 } });
    let isUnderWay = true;
    const inFlight = banks.list().finally(() => (isUnderWay = false));
    await simulator.waitForRequest(({ face, status }) => face !== 'token' && status === undefined);
    const closed = module.close();
    // Nest calls other hooks before ours: until then calls are taken.
    let late: unknown;
    while (!(late instanceof Error)) late = await banks.list().catch((error: unknown) => error);
    expect(late).toMatchObject({ kind: 'closed' });
    expect(isUnderWay).toBe(true);
    expect(await inFlight).toBeDefined();
    await closed;
    await expect(banks.list()).rejects.toMatchObject({ kind: 'closed' });
    await expect(module.get(ServiceAuthService).getApiToken()).rejects.toBeInstanceOf(Error);
  });

  it('ends a call that outlasts http.shutdownTimeout', async () => {
    const module = await start(50);
    const banks = module.get(BanksService);
    simulator.fail({ path: '/banks/v1', fault: 'hang' });
    const outcome = banks.list().catch((error: unknown) => error);
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    await module.close();
    expect(await outcome).toBeInstanceOf(ServiceConnectionError);
    expect(await outcome).toMatchObject({ kind: 'closed' });
  });

  it('says of a POST that it ends that it may have been carried out', async () => {
    const module = await start(50);
    simulator.fail({ path: '/customers/v1', fault: { delayMs: 2_000 } });
    const outcome = rejection(module.get(CustomersService).create({ app_user_id: 'u-1' }));
    await simulator.waitForRequest(({ path }) => path === '/customers/v1');
    await module.close();
    expect(await outcome).toMatchObject({
      kind: 'closed',
      outcomeUnknown: true,
      method: 'POST',
      path: '/customers/v1',
    });
  });

  it('gives a call that waits for its token the same time', async () => {
    const module = await start(5_000);
    simulator.fail({ face: 'token', fault: { delayMs: 150 } });
    const waiting = module.get(BanksService).list();
    await simulator.waitForRequest(({ face }) => face === 'token');
    await module.close();
    expect(await waiting).toBeDefined();
  });

  it('ends a token request under way', async () => {
    const module = await start(50);
    simulator.fail({ face: 'token', fault: 'hang' });
    const outcome = module
      .get(BanksService)
      .list()
      .catch((error: unknown) => error);
    await simulator.waitForRequest(({ face }) => face === 'token');
    const startedAt = performance.now();
    await module.close();
    expect(await outcome).toBeInstanceOf(Error);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});
