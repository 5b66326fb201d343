import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { BanksService, ServiceApiError, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';

/** A host's own test, run by its own jest. */
describe('a host', () => {
  let simulator: ServiceSimulator;
  let module: TestingModule;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
    module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ environment: 'production' }))],
    }).compile();
  });
  afterAll(async () => {
    await module?.close();
    await simulator?.stop();
  });

  it('lists banks over mutual TLS', async () => {
    expect(await module.get(BanksService).list()).toBeDefined();
    expect(simulator.apiRequests[0]?.certificateSubject).toBe(simulator.application.subject);
  });

  it('recognises the error of a failing call', async () => {
    simulator.fail({ fault: { status: 404, json: { status: 404, message: 'none' } } });
    await expect(module.get(BanksService).list()).rejects.toBeInstanceOf(ServiceApiError);
  });
});
