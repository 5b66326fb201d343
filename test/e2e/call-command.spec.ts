import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { CALL_HELP } from '../../lib/cli/call.js';
import { runCommand } from '../../lib/cli/run-command.js';
import { commandIo } from '../helpers/command-io.js';
import { MODES } from '../helpers/modes.js';
import { deadPort } from '../helpers/loopback.js';
import { secretsIn } from '../helpers/secret-scan.js';
import { commandLine } from '../helpers/source-process.js';
import { startSimulator } from '../helpers/simulators.js';

const SANDBOX = { environment: 'sandbox', authentication: 'app-token' } as const;

describe('The command nestjs-service', () => {
  it('prints its help and its version', async () => {
    const manifest = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
    const { version } = JSON.parse(manifest) as { version: string };
    const help =
      /^Usage: nestjs-service <command>[^]*\n {2}doctor {5}check .*\n {2}call {7}make .*\n {2}simulator {2}run /;
    for (const argument of ['--help', '-h', 'help', '--version', '-v']) {
      const io = commandIo();
      expect(await runCommand([argument], io)).toBe(0);
      expect(io.stdout()).toMatch(argument.includes('v') ? `${version}\n` : help);
    }
  });

  it('does not report an internal error as wrong usage', async () => {
    const fault = new Error('of its own');
    const out = () => {
      throw fault;
    };
    const io = { ...commandIo(), out };
    await expect(runCommand(['doctor', '--help'], io)).rejects.toBe(fault);
    expect(io.stderr()).toBe('');
  });

  it.each([
    ['no command', []],
    ['a command that there is not', ['docter']],
    ['a name of every object', ['constructor']],
    ['an option that the command does not have', ['doctor', '--ofline']],
    ['an argument that nothing takes', ['doctor', 'production']],
  ])('exits with 2 for %s, and prints nothing to stdout', async (_, args) => {
    const io = commandIo();
    expect(await runCommand(args, io)).toBe(2);
    expect(io.stdout()).toBe('');
    expect(io.stderr()).toMatch(/nestjs-service/);
  });
});

describe('The command nestjs-service call', () => {
  let simulator: ServiceSimulator;
  let folder: string;

  beforeAll(async () => {
    [simulator, folder] = await Promise.all([
      startSimulator({ appToken: 'app/token+of=some.length"$\\1' }),
      mkdtemp(join(tmpdir(), 'call-command-')),
    ]);
  });
  afterEach(() => {
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => Promise.all([simulator.stop(), rm(folder, { recursive: true })]));

  /** Runs the command. Its default environment is production with mutual TLS. */
  async function call(args: string[], { env = simulator.env(), isTerminal = false } = {}) {
    const io = commandIo(env, { isTerminal, cwd: folder });
    const written: Uint8Array[] = [];
    const { out } = io;
    io.out = (text) => {
      if (typeof text !== 'string') written.push(text);
      out(text);
    };
    const code = await runCommand(['call', ...args], io);
    const [printed, complained] = [io.stdout(), io.stderr()];
    const secrets = {
      appToken: simulator.appToken,
      clientSecret: simulator.clientSecret,
      privateKey: simulator.application.privateKey,
      tokens: 'eyJ',
    };
    expect(secretsIn(printed + complained, secrets)).toEqual([]);
    return { code, printed, complained, bytes: Buffer.concat(written) };
  }

  it.each(Object.entries(MODES))('prints the response of the service: %s', async (_, mode) => {
    const env = simulator.env(mode);
    const { code, printed, complained } = await call(['get', '/banks/v1?page=2'], { env });
    expect(code).toBe(0);
    expect(JSON.parse(printed)).toHaveLength(10);
    const { environment, authentication } = mode;
    expect(complained).toMatch(
      new RegExp(
        `^${environment}, ${authentication}, at https://127\\.0\\.0\\.1:\\d+: GET "/banks/v1\\?page=2"\n` +
          'HTTP 200\ncontent-type: application/json; charset=utf-8\n[^]*\n\n$',
      ),
    );
    expect(simulator.apiRequests.map(({ path }) => path)).toEqual(['/banks/v1?page=2']);
  });

  it('prints a refusal with what to do, exits with 1, and repeats nothing', async () => {
    simulator.fail({ path: '/banks/v1', times: 9, fault: { status: 503, json: { message: 'down' } } });
    const { code, printed, complained } = await call(['GET', '/banks/v1']);
    expect({ code, printed }).toEqual({ code: 1, printed: '{"message":"down"}' });
    expect(complained).toMatch(
      /: GET "\/banks\/v1"\nHTTP 503\ncontent-type: .*\n[^]*\napi_error: GET \/banks\/v1: HTTP 503: down\. The service is .*\n\n$/,
    );
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it('gets another token if the first is refused, as the application does', async () => {
    simulator.fail({ path: '/banks/v1', fault: { status: 401 } });
    const env = simulator.env({ authentication: 'oauth' });
    expect(await call(['GET', '/banks/v1'], { env })).toMatchObject({ code: 0 });
    expect(simulator.apiRequests.map(({ status }) => status)).toEqual([401, 200]);
    expect(CALL_HELP).toContain('sent again only if its credentials were refused');
  });

  it('prints the status of the response if the next token is refused too', async () => {
    simulator.fail({ path: '/banks/v1', fault: { status: 401 } });
    const ofSecond = { when: () => simulator.tokenRequests.length > 1, times: 9 };
    simulator.fail({ face: 'token', ...ofSecond, fault: { status: 401, json: { error: 'invalid_client' } } });
    const env = simulator.env({ authentication: 'oauth' });
    const { code, complained } = await call(['GET', '/banks/v1'], { env });
    expect(code).toBe(1);
    expect(complained).toMatch(
      /\nHTTP 401\n[^]*\ntoken_refused: The token endpoint refuses .*HTTP 401, .*\n\n$/,
    );
  });

  it('says that a change may have been executed if the attempt after a 401 is lost', async () => {
    const path = '/consents/v1/c-1';
    simulator.fail({ path, fault: { status: 401 } });
    simulator.fail({ path, fault: 'reset' });
    const env = simulator.env({ environment: 'sandbox', authentication: 'oauth' });
    const { code, printed, complained } = await call(['DELETE', path, '--yes'], { env });
    expect({ code, printed }).toEqual({ code: 1, printed: '' });
    expect(simulator.apiRequests.map(({ method }) => method)).toEqual(['DELETE', 'DELETE']);
    expect(complained).not.toContain('HTTP 401');
    expect(complained).toMatch(/connection_reset: .*\. The request may have been executed/);
  });

  it('prints no body for HEAD', async () => {
    simulator.answer('HEAD', '/statements/v1', { headers: { 'x-pages': '3' } });
    const { code, printed, complained } = await call(['HEAD', '/statements/v1']);
    expect({ code, printed }).toEqual({ code: 0, printed: '' });
    expect(complained).toContain('\nx-pages: 3\n');
  });

  it('sends --data byte for byte, in production only with --yes', async () => {
    const body = '{ "app_user_id":  "ü" }';
    const inFile = '{ "app_user_id":  "ö" }';
    const inUtf16 = '{ "app_user_id":  "ß" }';
    // Some editors begin a file with a byte order mark, and PowerShell writes UTF-16.
    await writeFile(join(folder, 'customer.json'), `\uFEFF${inFile}`);
    await writeFile(join(folder, 'utf-16.json'), `\uFEFF${inUtf16}`, 'utf16le');
    for (const [data, sent] of [
      [body, body],
      ['@customer.json', inFile],
      ['@utf-16.json', inUtf16],
    ]) {
      const refused = await call(['POST', '/customers/v1', '--data', data]);
      expect(refused).toMatchObject({ code: 2, printed: '' });
      expect(refused.complained).toContain('POST in production needs --yes.');
      expect(simulator.requests).toEqual([]);
      expect(await call(['POST', '/customers/v1', '--data', data, '--yes'])).toMatchObject({ code: 0 });
      expect(simulator.apiRequests).toMatchObject([
        { body: sent, headers: { 'content-type': 'application/json' }, status: 201 },
      ]);
      simulator.clearRequests();
    }
    const env = simulator.env(SANDBOX);
    expect(await call(['POST', '/customers/v1', '--data', body], { env })).toMatchObject({ code: 0 });
  });

  it('deletes only with --yes, in the sandbox too', async () => {
    simulator.answer('DELETE', '/accounts/v1/{id}', { status: 204 });
    const env = simulator.env(SANDBOX);
    const refused = await call(['DELETE', '/accounts/v1/1'], { env });
    expect(refused).toMatchObject({ code: 2, complained: expect.stringContaining('DELETE needs --yes.') });
    expect(simulator.requests).toEqual([]);
    expect(await call(['DELETE', '/accounts/v1/1', '--yes'], { env })).toMatchObject({
      code: 0,
      printed: '',
    });
  });

  it('shows no cookie, and no credential that the service echoes', async () => {
    const sent = ({ headers }: { headers: Readonly<Record<string, string>> }) =>
      headers.authorization ?? headers['service-app-token'];
    simulator.answer('GET', '/mirror/v1', (request) => ({
      headers: {
        'set-cookie': 'session=s3cret; Secure',
        'x-seen': sent(request),
        [`x-${String(sent(request)).replace(/[^\w.-]/g, '-')}`]: 'named',
        'x-other': 'shown',
      },
      body: `of ${sent(request)} \xff`,
    }));
    for (const env of [simulator.env(), simulator.env({ authentication: 'oauth' })]) {
      const { printed, complained } = await call(['GET', '/mirror/v1'], { env });
      expect(complained).not.toMatch(/cookie|s3cret/);
      expect(complained).toContain('x-other: shown\n');
      expect(complained).toContain('x-seen: [not shown');
      expect(complained).toMatch(/^\[not shown.*\]: named$/m);
      expect(complained).toMatch(/\nThe body contains one of your credentials, so it is not shown\.\n$/);
      expect(printed).toBe('');
    }
  });

  it.each(['C:/Program Files/Git/banks/v1', 'D:\\tools\\Git\\banks\\v1'])(
    'says that Git Bash has rewritten the path: %s',
    async (path) => {
      const { code, complained } = await call(['GET', path]);
      expect([code, complained]).toEqual([2, expect.stringContaining(`'${path}' is a path of Windows.`)]);
      expect(complained).toContain('MSYS_NO_PATHCONV=1 npx nestjs-service call GET /banks/v1');
    },
  );

  it.each([
    ['plain', (text: string) => text],
    ['JSON', (text: string) => text.replace(/\W/g, (found) => `\\u00${hexOf(found)}`)],
    ['an address', encodeURIComponent],
    ['a page', (text: string) => text.replace(/\W/g, (found) => `&#x${hexOf(found)};`)],
  ])('shows no echoed app token, as it is written in %s', async (_, written) => {
    const { appToken } = simulator;
    simulator.answer('GET', '/mirror/v1', { body: `<${written(appToken)}>` });
    simulator.answer('GET', '/part/v1', { body: `<${written('app/tok')}>` });
    const { code, printed, complained } = await call(['GET', '/mirror/v1']);
    expect({ code, printed }).toEqual({ code: 0, printed: '' });
    expect(complained).toContain('The body contains one of your credentials');
    expect((await call(['GET', '/part/v1'])).printed).toBe(`<${written('app/tok')}>`);
  });

  it('writes bytes unchanged, and to a terminal only text with escapes', async () => {
    const pdf = Uint8Array.from([37, 80, 68, 70, 0, 255, 128]);
    simulator.answer('GET', '/statements/v1/{id}', { body: pdf });
    expect((await call(['GET', '/statements/v1/1'])).bytes).toEqual(Buffer.from(pdf));
    const shown = await call(['GET', '/statements/v1/1'], { isTerminal: true });
    expect(shown).toMatchObject({ code: 0, printed: '' });
    expect(shown.complained).toContain('The body is binary (7 bytes). To save it, append: > <file>\n');

    simulator.answer('GET', '/text/v1', {
      body: 'a\u001b[2J\tb\r\u202e\nü',
      headers: { 'x-title': '\u009b1m' },
    });
    const { printed, complained } = await call(['GET', '/text/v1'], { isTerminal: true });
    expect(printed).toBe('a%1B[2J\tb%0D%E2%80%AE\nü\n');
    expect(complained).not.toMatch(/[^\n\x20-\x7e]/);
  });

  describe('as a process with a body of 4 MiB', () => {
    const BYTES = 4 * 1024 * 1024;
    beforeAll(() => simulator.answer('GET', '/big/v1', { body: 'x'.repeat(BYTES) }));

    const start = () => {
      const [node = '', ...args] = commandLine(['call', 'GET', '/big/v1']);
      const env = { ...process.env, ...simulator.env() };
      return spawn(node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    };

    it('ends when a slow reader has read everything', async () => {
      const child = start();
      const ended = once(child, 'exit');
      child.stderr.resume();
      let bytes = 0;
      for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        await delay(30);
      }
      expect(bytes).toBe(BYTES);
      expect(await ended).toEqual([0, null]);
    });

    it('ends without a message when its reader has gone', async () => {
      const child = start();
      const ended = once(child, 'exit');
      const complained = text(child.stderr);
      await once(child.stdout, 'data');
      child.stdout.destroy();
      expect(await ended).toEqual([0, null]);
      expect(await complained).toMatch(/keep-alive: .*\n\n$/);
    });

    it('goes on for the reader of stdout if nobody reads stderr', async () => {
      const child = start();
      const ended = once(child, 'exit');
      child.stderr.destroy();
      expect(await text(child.stdout)).toHaveLength(BYTES);
      expect(await ended).toEqual([0, null]);
    });
  });

  it('says why there is no response', async () => {
    const env = { ...simulator.env(), SERVICE_BASE_URL: `https://127.0.0.1:${await deadPort()}` };
    const { code, printed, complained } = await call(['GET', '/banks/v1'], { env });
    expect({ code, printed }).toEqual({ code: 1, printed: '' });
    expect(complained).toMatch(/refused \(ECONNREFUSED\).*\. Check host and port of urls\.baseUrl/);
    expect(complained).not.toContain('HTTP ');
  });

  it('reports faults of the configuration, and sends nothing', async () => {
    const { SERVICE_APP_TOKEN: _, ...env } = simulator.env();
    const { code, complained } = await call(['GET', '/banks/v1'], { env });
    expect(code).toBe(1);
    expect(complained).toMatch(/so nothing was sent\. Read from the environment[^]*SERVICE_APP_TOKEN/);
    expect(simulator.requests).toEqual([]);
  });

  it('reads an env file, also for a named module', async () => {
    const lines = Object.entries(simulator.env({ name: 'ksa' })).map(([name, value]) => `${name}="${value}"`);
    await writeFile(join(folder, 'ksa.env'), lines.join('\n'));
    const args = ['GET', '/banks/v1', '--env-file', 'ksa.env', '--name', 'ksa'];
    expect(await call(args, { env: {} })).toMatchObject({ code: 0 });
  });

  it.each([
    [[], 'A call needs a method'],
    [['GET'], 'A call needs a method'],
    [['TRACE', '/banks/v1'], 'A call needs a method'],
    [['GET', '/banks/v1', 'more'], 'A call needs a method'],
    [['GET', '/banks/v1', '--data', '{}'], 'GET takes no --data.'],
    [['PATCH', '/banks/v1'], 'PATCH needs --data.'],
    [
      ['POST', '/banks/v1', '--data', '{ s3cret'],
      '--data is not valid JSON. To send a file, write @ before its path',
    ],
    [['POST', '/banks/v1', '--data', '@none.json'], '--data: the file cannot be read (ENOENT).'],
    [['GET', '/banks/v1', '--name', 'k s a'], '--name: must begin'],
    [['GET', 'https://elsewhere.example/banks/v1'], 'https://elsewhere.example'],
    [['GET', '//elsewhere.example/'], 'must not begin with //'],
    [['GET', '/banks/../x'], 'segments'],
    [['GET', '/banks/v1', '--retries', '3'], "Unknown option '--retries'"],
  ])('refuses %j', async (args, message) => {
    const { code, printed, complained } = await call(args);
    expect({ code, printed }).toEqual({ code: 2, printed: '' });
    expect(complained).toContain(message);
    expect(complained).not.toContain('s3cret');
    expect(simulator.requests).toEqual([]);
  });

  it('prints its help', async () => {
    expect(await call(['--help'])).toMatchObject({ code: 0, printed: CALL_HELP });
  });
});

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, '0');
}
