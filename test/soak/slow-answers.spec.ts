import { expect, it } from '@jest/globals';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startModule } from '../helpers/start-module.js';

it('an answer that takes 12 s arrives with the default options, at the first attempt', async () => {
  const simulator = await ServiceSimulator.start();
  const api = await startModule(simulator.moduleOptions());
  simulator.fail({ path: '/banks/v1', fault: { delayMs: 12_000 } });
  await api.banks.list();
  expect(simulator.apiRequests).toHaveLength(1);
  await api.module.close();
  await simulator.stop();
}, 60_000);
