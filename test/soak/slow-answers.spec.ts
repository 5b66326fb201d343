import { expect, it } from '@jest/globals';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startModule } from '../helpers/start-module.js';

it('an answer that takes 50 s arrives with a time limit of 60 s, at the first attempt', async () => {
  const simulator = await ServiceSimulator.start();
  const api = await startModule(simulator.moduleOptions());
  simulator.fail({ path: '/banks/v1', fault: { delayMs: 50_000 } });
  await api.banks.list({ timeout: 60_000 });
  expect(simulator.apiRequests).toHaveLength(1);
  await api.module.close();
  await simulator.stop();
}, 90_000);
