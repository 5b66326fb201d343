import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { UsageError } from '../../../lib/cli/command.js';
import { FAULT_WORDS, readFault } from '../../../lib/cli/simulator-faults.js';
import { checkFolder, ForeignFileError, writeFiles } from '../../../lib/cli/simulator-files.js';
import { keep, keptPath, readKept } from '../../../lib/cli/simulator-kept.js';
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
    ['/banks/v1=2000ms:3', { path: '/banks/v1', times: 3, fault: { delayMs: 2000 } }],
    ['token=reset', { face: 'token', times: Infinity, fault: 'reset' }],
    ['base=certificate_unknown:1', { face: 'base', times: 1, fault: { tlsAlert: 'certificate_unknown' } }],
    ['sandbox-mtls=reset-handshake', { face: 'sandbox-mtls', fault: 'reset-handshake' }],
  ])('is read: %s', (text, rule) => {
    expect(readFault(text)).toMatchObject(rule);
  });

  it('has each word that the help names', () => {
    for (const word of FAULT_WORDS.named) expect(readFault(`/x=${word}`).fault).toBe(word);
    for (const word of FAULT_WORDS.connection) expect(readFault(`base=${word}`).fault).toBeDefined();
  });

  it.each([
    ['', "it is not of the form <where>=<fault>[:<times>], for example '/banks/v1=503:3'."],
    ['/banks/v1', 'it is not of the form'],
    ['/banks/v1=503:0', 'it is not of the form'],
    ['/banks/v1=503:3:4', 'it is not of the form'],
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
    ['/banks/v1=ok', "'ok' is no fault."],
  ])('is refused: %j', (text, reason) => {
    expect(() => readFault(text)).toThrow(UsageError);
    expect(() => readFault(text)).toThrow(`--fail '${text}': ${reason}`);
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
      const { env } = await writeFiles(folder, simulator, name);
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
  let path: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'simulator-kept-'));
    path = keptPath({ XDG_DATA_HOME: folder }, '/work/service-simulator') ?? '';
  });
  afterEach(() => rm(folder, { recursive: true }));

  it.each<[NodeJS.Platform, Record<string, string>, string | undefined]>([
    ['linux', { HOME: '/home/a' }, '/home/a/.local/share/nestjs-service/'],
    ['linux', { HOME: '/home/a', XDG_DATA_HOME: '/data' }, '/data/nestjs-service/'],
    ['linux', { HOME: '/home/a', XDG_DATA_HOME: 'data' }, '/home/a/.local/share/nestjs-service/'],
    ['linux', { HOME: '' }, undefined],
    ['darwin', { HOME: '/Users/a' }, '/Users/a/Library/Application Support/nestjs-service/'],
    ['win32', { LOCALAPPDATA: '/Local', APPDATA: '/Roaming', HOME: '/a' }, '/Local/nestjs-service/'],
    ['win32', { APPDATA: '/Roaming' }, '/Roaming/nestjs-service/'],
    ['win32', {}, undefined],
  ])('is in the folder for data of the user: %s, %j', (platform, env, expected) => {
    const [one, other] = ['/one', '/other'].map((dir) => keptPath(env, dir, platform));
    if (expected === undefined) return expect(one).toBeUndefined();
    expect(one?.startsWith(expected)).toBe(true);
    // Each --dir has its own.
    expect(other).not.toBe(one);
  });

  /** The simulator whose certificates and credentials are kept. */
  async function kept(options?: SimulatorOptions): Promise<ServiceSimulator> {
    const simulator = await ServiceSimulator.start(options);
    await simulator.stop();
    expect(await keep(path, simulator)).toBe(true);
    return simulator;
  }

  it('is nothing if there is no file, or one of another form', async () => {
    expect(await readKept(path)).toBeUndefined();
    await kept();
    for (const other of ['{}', '{"credentials":{}}', 'no JSON']) {
      await writeFile(path, other);
      expect(await readKept(path)).toBeUndefined();
    }
  });

  it('is what the simulator had, for the user alone', async () => {
    const { clientId, clientSecret, appToken, application, chain } = await kept();
    const found = await readKept(path);
    expect(found).toMatchObject({ credentials: { clientId, clientSecret, appToken }, application });
    expect(found?.authority.chain).toBe(chain);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(path, '..'))).mode & 0o077).toBe(0);
    expect(await readdir(join(path, '..'))).toHaveLength(1);
  });

  it.each([
    ['has expired', -1],
    ['expires in less than 30 days', 29 * DAY],
  ])('is nothing if the certificate %s', async (_, applicationLifetime) => {
    await kept({ certificates: { applicationLifetime } });
    expect(await readKept(path)).toBeUndefined();
  });

  it('is not written if the folder cannot be made', async () => {
    const simulator = await ServiceSimulator.start();
    await simulator.stop();
    await writeFile(join(folder, 'file'), '');
    expect(await keep(join(folder, 'file/below/x.json'), simulator)).toBe(false);
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
