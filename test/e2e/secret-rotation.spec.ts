import { describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceTokenError } from 'nestjs-service';
import { rotateSecret } from '../helpers/rotate-secret.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

describe('rotation of the client secret', () => {
  // test/soak does the same for longer.
  it.each(['a function', 'a file'] as const)('as %s: no call fails', (source) =>
    rotateSecret(source, { rotations: 2, between: 2, everyMs: 0 }),
  );

  it('as plain text: the old token serves to its end, then the error says what to check, and the endpoint is not called again and again', async () => {
    const simulator = await startSimulator();
    const { module, banks } = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    await banks.list();
    simulator.rotateClientSecret();
    await banks.list();
    simulator.revokeTokens();
    simulator.clearRequests();
    const errors = await Promise.all(Array.from({ length: 500 }, () => rejection(banks.list())));
    const tokenErrors = errors.filter((error) => error instanceof ServiceTokenError);
    expect(tokenErrors.length).toBeGreaterThan(0);
    for (const error of tokenErrors) {
      expect(error).toMatchObject({ code: 'token_refused', error: 'invalid_client', status: 401 });
      expect(error.hint).toMatch(/makes the one before invalid/);
    }
    // Those whose 401 came after the limit on forced refreshes was reached.
    for (const error of errors)
      if (!tokenErrors.includes(error as never)) expect(error).toMatchObject({ status: 401 });
    expect(simulator.tokenRequests.length).toBeLessThanOrEqual(2);
    await module.close();
    await simulator.stop();
  });

  it('is not what a page or a gateway is about: no call fails for it, and the secret is not held back', async () => {
    const simulator = await startSimulator();
    const { module, banks } = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    const page = { status: 403, headers: { 'content-type': 'text/html' }, body: '<h1>403 Forbidden</h1>' };
    for (const fault of [page, { status: 401, json: { message: 'Unauthorized' } }, { status: 425 }]) {
      simulator.revokeTokens();
      simulator.clearRequests();
      simulator.fail({ face: 'token', times: 2, fault });
      await banks.list();
      expect(simulator.tokenRequests.map(({ status }) => status)).toEqual([fault.status, fault.status, 200]);
    }
    await module.close();
    await simulator.stop();
  });

  it('as a file that is lost: the error says which one', async () => {
    const simulator = await startSimulator();
    const folder = await mkdtemp(join(tmpdir(), 'lost-secret-'));
    const file = join(folder, 'client-secret.txt');
    await writeFile(file, simulator.clientSecret);
    const { oauth, ...options } = simulator.moduleOptions({ authentication: 'oauth' });
    const { module, auth } = await startModule({ ...options, oauth: { ...oauth, clientSecret: { file } } });
    await rm(folder, { recursive: true });
    const error = await rejection(auth.getCustomerToken('c-1'));
    expect(error).toMatchObject({
      code: 'client_secret_unavailable',
      message: expect.stringContaining(`oauth.clientSecret: the file ${file} cannot be read (ENOENT).`),
    });
    await module.close();
    await simulator.stop();
  });
});
