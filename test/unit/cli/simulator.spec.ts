import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { UsageError } from '../../../lib/cli/command.js';
import { FAULT_WORDS, readFault } from '../../../lib/cli/simulator-faults.js';
import { checkFolder, ForeignFileError, writeFiles } from '../../../lib/cli/simulator-files.js';
import { readKept, textToKeep } from '../../../lib/cli/simulator-kept.js';
import { readSimulatorOptions } from '../../../lib/cli/simulator-options.js';
import { describeRefusal, describeRequest } from '../../../lib/cli/simulator-report.js';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { type SimulatorOptions } from '../../../lib/testing/simulator.options.js';

it('uses the six ports from 8443 on, where no other is named', async () => {
  const { ports } = (await readSimulatorOptions([], '/a')) as { ports: Record<string, number> };
  expect(Object.values(ports)).toEqual([8443, 8444, 8445, 8446, 8447, 8448]);
});

describe('a fault in words', () => {
  it.each([
    ['/banks/v1=503', { path: '/banks/v1', times: Infinity, fault: { status: 503 } }],
    [' /banks/v1=2000ms:3 ', { path: '/banks/v1', times: 3, fault: { delayMs: 2000 } }],
    ['token=reset', { face: 'token', times: Infinity, fault: 'reset' }],
    ['base=certificate_unknown:1', { face: 'base', times: 1, fault: { tlsAlert: 'certificate_unknown' } }],
    ['sandbox-mtls=reset-handshake', { face: 'sandbox-mtls', fault: 'reset-handshake' }],
  ])('is read: %s', (text, rule) => {
    expect(readFault(text)).toMatchObject({ where: text.trim().split('=')[0], rule });
  });

  it('has each word that the help names', () => {
    for (const word of FAULT_WORDS.named) expect(readFault(`/x=${word}`).rule?.fault).toBe(word);
    for (const word of FAULT_WORDS.connection) expect(readFault(`base=${word}`).rule?.fault).toBeDefined();
  });

  it('has a word that ends others', () => {
    expect(readFault('/banks/v1=ok')).toEqual({ where: '/banks/v1' });
  });

  it.each([
    ['', "it is not of the form <where>=<fault>[:<times>], for example '/banks/v1=503:3'."],
    ['/banks/v1', 'it is not of the form'],
    ['/banks/v1=503:0', "'0' is no number of times."],
    ['/banks/v1=503:3:4', "'3:4' is no number of times."],
    ['banks/v1=503', "'banks/v1' is no path, and no server."],
    ['bse=503', "'bse' is no path, and no server."],
    ['/banks/v1?a=503', "'/banks/v1?a' is no path, and no server."],
    ['/banks/v1=', "'' is no fault."],
    ['/banks/v1=200', "'200' is no fault."],
    ['/banks/v1=rest', "'rest' is no fault."],
    ['/banks/v1=toString', "'toString' is no fault."],
    ['base=constructor', "'constructor' is no fault."],
    ['/banks/v1=9999999999ms', "'9999999999ms' is no fault."],
    ['/banks/v1=unknown_ca', "'unknown_ca' is a fault of a server, and not of a path."],
    ['/banks/v1=reset-handshake', "'reset-handshake' is a fault of a server, and not of a path."],
    ['/banks/v1=ok:1', "'ok' takes no number of times."],
  ])('is refused: %j', (text, reason) => {
    expect(() => readFault(text)).toThrow(UsageError);
    expect(() => readFault(` ${text}`)).toThrow(`'${text}': ${reason}`);
  });
});

describe('the folder of the simulator command', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'simulator-files-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it.each<[string, (path: string) => unknown]>([
    ['a link to nowhere', (path) => symlink('nowhere', path)],
    ['a link to a file', (path) => symlink('/etc/hostname', path)],
    ['a folder', (path) => mkdir(path)],
    ['a pipe, which is not read', (path) => execFileSync('mkfifo', [path])],
    ['a file', (path) => writeFile(path, 'x')],
  ])('leaves %s of somebody else', async (_, make) => {
    for (const name of ['.env', 'application.key']) {
      await make(join(folder, name));
      await expect(checkFolder(folder)).rejects.toThrow(ForeignFileError);
      await rm(join(folder, name), { recursive: true });
    }
    await expect(checkFolder(folder)).resolves.toBeUndefined();
  });

  it.each<[string, (text: string) => string, boolean]>([
    ['as it is', (text) => text, true],
    ['with a line more', (text) => `${text}PORT=3000\n`, false],
    ['with another first line', (text) => `\n${text}`, false],
    ['without its first line', (text) => text.replace(/^.*\n/, ''), false],
  ])('knows a file that it wrote, %s', async (_, change, isOwn) => {
    const simulator = {
      application: { certificate: 'CERTIFICATE', privateKey: 'KEY' },
      chain: 'CHAIN',
      env: () => ({ SERVICE_CLIENT_ID: 'id' }),
    } as unknown as ServiceSimulator;
    const { env } = await writeFiles(folder, simulator);
    await writeFile(env, change(await readFile(env, 'utf8')));
    const checked = checkFolder(folder);
    await (isOwn
      ? expect(checked).resolves.toBeUndefined()
      : expect(checked).rejects.toThrow(ForeignFileError));
  });

  it.each([undefined, 'ksa'])(
    'has a .env with what env() has in each mode, for the module %s',
    async (name) => {
      const simulator = await ServiceSimulator.start();
      const { env } = await writeFiles(folder, simulator, { name });
      const prefix = name === undefined ? 'SERVICE_' : 'SERVICE_KSA_';
      const read = Object.entries(parseEnv(await readFile(env, 'utf8')) as Record<string, string>).map(
        async ([variable, value]) => {
          if (!variable.endsWith('_FILE')) return [variable, value];
          const [, pem = ''] = /^#.*\n([^]*)$/.exec(await readFile(value, 'utf8')) ?? [];
          return [variable.slice(0, -'_FILE'.length), pem.replaceAll('\n', '\\n')];
        },
      );
      const written = Object.fromEntries(await Promise.all(read)) as Record<string, string>;
      await simulator.stop();
      expect(written).toEqual(simulator.env({ name }));
      for (const [environment, authentication] of [
        ['production', 'mtls'],
        ['production', 'oauth'],
        ['sandbox', 'app-token'],
        ['sandbox', 'mtls'],
        ['sandbox', 'oauth'],
      ] as const) {
        const chosen = { [`${prefix}ENVIRONMENT`]: environment, [`${prefix}AUTHENTICATION`]: authentication };
        expect({ ...written, ...chosen }).toEqual(simulator.env({ environment, authentication, name }));
      }
    },
  );
});

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

it('shows nothing of a client that a terminal would take for a command', () => {
  const line = describeRefusal({
    face: 'baseUrl',
    alert: 'unknown_ca',
    certificateSubject: 'CN=\u001b[2Jü',
  } as never);
  expect(line).toContain('CN=?[2J?');
});

it('shows why a route of the file failed', () => {
  const request = { receivedAt: 0, method: 'GET', path: '/x?a=1', status: 500, face: 'base' };
  const line = (error?: string) => describeRequest({ ...request, error } as never, 3).replace(/^\S+ /, '');
  expect(line("Cannot read properties\nof undefined (reading 'id')")).toBe(
    "GET /x 500 3 ms (base): Cannot read properties?of undefined (reading 'id')\n",
  );
  expect(line()).toBe('GET /x 500 3 ms (base)\n');
});
