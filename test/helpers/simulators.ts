import { afterAll } from '@jest/globals';
import { ServiceSimulator } from '../../lib/testing/simulator.js';
import { type SimulatorOptions } from '../../lib/testing/simulator.options.js';

/** Starts simulators for the tests of a `describe` block, at the end of which they are stopped. */
export function simulatorsOfBlock(): (options?: SimulatorOptions) => Promise<ServiceSimulator> {
  const started: ServiceSimulator[] = [];
  afterAll(() => Promise.all(started.map((simulator) => simulator.stop())));
  return async (options) => {
    const simulator = await ServiceSimulator.start(options);
    started.push(simulator);
    return simulator;
  };
}
