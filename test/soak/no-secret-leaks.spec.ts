import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ServiceSimulator, type SimulatorModeOptions } from 'nestjs-service/testing';
import { EVERYTHING, scanForLeaks } from '../helpers/leak-scan.js';

const MODES: [string, SimulatorModeOptions][] = [
  ['sandbox/app-token', { environment: 'sandbox', authentication: 'app-token' }],
  ['sandbox/mtls', { environment: 'sandbox', authentication: 'mtls', oauth: true }],
  ['sandbox/oauth', { environment: 'sandbox', authentication: 'oauth' }],
  ['production/mtls', { environment: 'production', authentication: 'mtls', oauth: true }],
  [
    'production/oauth',
    { environment: 'production', authentication: 'oauth', clientCertificate: true, oauthMtls: true },
  ],
];

describe('no error and no log line holds a secret', () => {
  let simulator: ServiceSimulator;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
  });
  afterAll(() => simulator.stop());

  it.each(MODES)(
    'of any fault at %s',
    async (_, mode) => {
      expect(await scanForLeaks(simulator, mode, EVERYTHING)).toBeGreaterThanOrEqual(100);
    },
    600_000,
  );
});
