import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { type SimulatorOptions } from '../../../lib/testing/simulator.options.js';
import { ForeignFileError, writeFiles } from '../../../lib/cli/simulator-files.js';
import { describeKept, readKept, textToKeep } from '../../../lib/cli/simulator-kept.js';

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

  it('is nothing where there is no file, and none is written unless asked for', async () => {
    const simulator = await ServiceSimulator.start();
    await simulator.stop();
    await writeFiles(folder, simulator);
    const found = await readKept(folder);
    expect(found).toBeUndefined();
    expect(describeKept(found)).toBe('They are new, and stay for the next start with --keep.');
  });

  it('is what the simulator had, for the user alone', async () => {
    const { clientId, clientSecret, appToken, application, chain } = await keep();
    const found = await readKept(folder);
    expect(found).toMatchObject({ credentials: { clientId, clientSecret, appToken }, application });
    expect(found?.authority?.chain).toBe(chain);
    expect(describeKept(found)).toMatch(
      /^They are those of the last start with --keep\. The certificates are valid until \d{4}-\d\d-\d\d\.$/,
    );
    expect((await stat(join(folder, 'simulator.kept'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['have expired', -1],
    ['expire in less than 30 days', 29 * DAY],
  ])('has new certificates where the old ones %s, and says so', async (_, applicationLifetime) => {
    const { clientSecret } = await keep({ certificates: { applicationLifetime } });
    const found = await readKept(folder);
    expect(found).not.toHaveProperty('authority');
    expect(found?.credentials.clientSecret).toBe(clientSecret);
    expect(describeKept(found)).toMatch(
      /^The certificates are new: those of the last start are valid from [\d-]+ to [\d-]+ only\. Start your application again\.$/,
    );
  });

  it('has new certificates where the old ones are not valid yet', async () => {
    const simulator = await keep();
    const { clientId, clientSecret, appToken, authority } = simulator;
    const application = await simulator.issueCertificate({ notBefore: new Date(Date.now() + DAY * 1_000) });
    const kept = await textToKeep({ clientId, clientSecret, appToken, authority, application });
    await writeFiles(folder, simulator, { kept });
    expect(await readKept(folder)).not.toHaveProperty('authority');
  });

  it('is refused where the file was changed, or is of another version, and stays as it is', async () => {
    const path = join(folder, 'simulator.kept');
    const simulator = await keep();
    const whole = await readFile(path, 'utf8');
    for (const damaged of ['', whole.slice(0, 500), whole.replace('"clientId"', '"clientid"'), '{}\n']) {
      await writeFile(path, damaged);
      const reading = readKept(folder);
      await expect(reading).rejects.toThrow(ForeignFileError);
      await expect(reading).rejects.toThrow(`${path} was not written by this command, or was changed since`);
      expect(await readFile(path, 'utf8')).toBe(damaged);
    }
    for (const other of ['{}', '{"credentials":{}}', 'no JSON']) {
      await writeFiles(folder, simulator, { kept: other });
      await expect(readKept(folder)).rejects.toThrow(
        `${path} is not as this version of the command writes it. Remove it: the next start makes new certificates and credentials.`,
      );
    }
  });
});
