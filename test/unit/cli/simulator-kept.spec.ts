import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { type SimulatorOptions } from '../../../lib/testing/simulator.options.js';
import { checkFolder, ForeignFileError, writeFiles } from '../../../lib/cli/simulator-files.js';
import { readKept, textToKeep } from '../../../lib/cli/simulator-kept.js';

const DAY = 24 * 3_600;

describe('what the simulator command keeps', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'simulator-kept-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** The simulator whose certificates and credentials are in the folder. */
  async function keep(options?: SimulatorOptions): Promise<ServiceSimulator> {
    const simulator = await ServiceSimulator.start(options);
    await simulator.stop();
    await writeFiles(folder, simulator, { kept: await textToKeep(simulator) });
    return simulator;
  }

  it('is nothing where there is no file', async () => {
    expect(await readKept(folder)).toBeUndefined();
  });

  it('is what the simulator had, for the user alone', async () => {
    const { clientId, clientSecret, appToken, application, chain } = await keep();
    const found = await readKept(folder);
    expect(found).toMatchObject({ credentials: { clientId, clientSecret, appToken }, application });
    expect(found?.authority.chain).toBe(chain);
    expect((await stat(join(folder, 'simulator.kept'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['has expired', -1],
    ['expires in less than 30 days', 29 * DAY],
  ])('is nothing where the certificate %s', async (_, applicationLifetime) => {
    await keep({ certificates: { applicationLifetime } });
    expect(await readKept(folder)).toBeUndefined();
  });

  it('is nothing where the certificate is not valid yet', async () => {
    const simulator = await keep();
    const { clientId, clientSecret, appToken, authority } = simulator;
    const application = await simulator.issueCertificate({ notBefore: new Date(Date.now() + DAY * 1_000) });
    const kept = await textToKeep({ clientId, clientSecret, appToken, authority, application });
    await writeFiles(folder, simulator, { kept });
    expect(await readKept(folder)).toBeUndefined();
  });

  it('is nothing where another version of the command wrote it', async () => {
    const simulator = await keep();
    for (const other of ['{}', '{"credentials":{}}', 'no JSON']) {
      await writeFiles(folder, simulator, { kept: other });
      expect(await readKept(folder)).toBeUndefined();
    }
  });

  it('is refused where the file was changed, and stays as it is', async () => {
    const path = join(folder, 'simulator.kept');
    await keep();
    const whole = await readFile(path, 'utf8');
    for (const damaged of ['', whole.slice(0, 500), whole.replace('"clientId"', '"clientid"'), '{}\n']) {
      await writeFile(path, damaged);
      for (const check of [readKept, checkFolder]) {
        await expect(check(folder)).rejects.toThrow(ForeignFileError);
        await expect(check(folder)).rejects.toThrow(
          `${path} was not written by this command, or was changed`,
        );
      }
      expect(await readFile(path, 'utf8')).toBe(damaged);
    }
  });
});
