import { describe, expect, it } from '@jest/globals';
import axios from 'axios';
import { Agent } from 'node:https';
import { SAMPLE, scanForLeaks } from '../helpers/leak-scan.js';
import { everyForm, secretsIn } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';

describe('no error and no log line contains a secret', () => {
  // Together the two modes have every kind of secret. test/soak has all modes and all faults.
  it.each(['sandbox/mtls', 'production/oauth'] as const)('of each kind of fault at %s', async (mode) => {
    expect(await scanForLeaks(mode, SAMPLE)).toBeGreaterThanOrEqual(50);
  });

  it('is checked by a scan that finds the secrets of an AxiosError', async () => {
    const simulator = await startSimulator();
    const { appToken, tls } = simulator.moduleOptions({ authentication: 'mtls' });
    const secrets = { appToken, privateKey: tls.privateKey as string };
    const planted: unknown = await axios
      .get('https://127.0.0.1:9/', {
        headers: { 'service-app-token': appToken },
        httpsAgent: new Agent({ cert: tls.certificate, key: tls.privateKey, ca: tls.chain }),
      })
      .catch((error: unknown) => error);
    expect(secretsIn(everyForm(planted), secrets)).toEqual(['appToken', 'privateKey']);
    expect(secretsIn(everyForm({ nested: { cause: planted } }), secrets)).toEqual(['appToken', 'privateKey']);
    await simulator.stop();
  });
});
