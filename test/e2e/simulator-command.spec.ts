import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify, parseEnv } from 'node:util';
import {
  BanksService,
  getServiceToken,
  LinkSdkService,
  ServiceHttpService,
  ServiceModule,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { UsageError } from '../../lib/cli/command.js';
import { readEnvironment } from '../../lib/cli/host-configuration.js';
import { runCommand } from '../../lib/cli/run-command.js';
import { FAULT_WORDS, parseFault, readSimulatorOptions } from '../../lib/cli/simulator-options.js';
import {
  checkFolder,
  ForeignFileError,
  readState,
  statePath,
  writeFiles,
  writeState,
} from '../../lib/cli/simulator-files.js';
import { describeContent, describeRefusal, describeRequest } from '../../lib/cli/simulator-report.js';
import { commandIo } from '../helpers/command-io.js';
import { onlyInSoak, partOf } from '../helpers/in-soak.js';
import { freePort } from '../helpers/loopback.js';
import { readDocument } from '../helpers/readme.js';
import { startProcess, type SampleProcess } from '../helpers/sample-process.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { commandLine, startCommand } from '../helpers/source-process.js';

const READY = 'Requests:\n';
const DAY = 24 * 3_600;
const run = promisify(execFile);
/** For tests that run the command in a process of its own, which takes long. */
const soakIt = onlyInSoak(it);

/** The command, run inside the test process. */
interface Running {
  stdout(): string;
  stderr(): string;
  /** Its exit code. */
  ended: Promise<number>;
  end(): Promise<void>;
}

let folder: string;
let data: string;
const started: SampleProcess[] = [];
const running: Running[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'simulator command '));
  data = join(folder, 'data');
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.kill()));
  await endAll();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const endAll = () => Promise.all(running.splice(0).map((each) => each.end()));

/** Starts the command in a process of its own. */
function startProgram(options: string[], env: Record<string, string> = { XDG_DATA_HOME: data }) {
  const child = startCommand(['simulator', ...options], { cwd: folder, env });
  started.push(child);
  return child;
}

/** Runs the command in the test process. Resolves once the simulator is ready or the command has ended. */
function start(...options: string[]): Promise<Running> {
  return startWith({}, ...options);
}

/** Like start(), with these environment variables. */
async function startWith(env: Record<string, string>, ...options: string[]): Promise<Running> {
  const events = new EventEmitter();
  const io = commandIo({ XDG_DATA_HOME: data, ...env }, { cwd: folder });
  const { out } = io;
  io.out = (text) => {
    out(text);
    if (String(text).endsWith(READY)) events.emit('ready');
  };
  io.waitForEndSignal = async () => void (await once(events, 'signal'));
  const ready = once(events, 'ready');
  const ended = runCommand(['simulator', ...options], io);
  const end = async () => {
    events.emit('signal');
    expect(await ended).toBe(0);
  };
  if (await Promise.race([ready.then(() => true), ended.then(() => false)]))
    running.push({ ...io, ended, end });
  return { ...io, ended, end };
}

/** Reads the variables from the .env file that the command wrote. */
async function written(dir: string): Promise<Record<string, string>> {
  return parseEnv(await readFile(join(folder, dir, '.env'), 'utf8')) as Record<string, string>;
}

/** Runs a task with an application whose environment has these variables. */
async function withHost(
  variables: Record<string, string>,
  task: (context: INestApplicationContext, logged: () => string) => Promise<void>,
  name?: string,
): Promise<void> {
  const before = { ...process.env };
  const logger = new CollectingLogger();
  logger.warn = logger.error = (...parts) => void logger.lines.push('WARNING', ...parts);
  Object.assign(process.env, variables);
  const context = await NestFactory.createApplicationContext(
    { module: class Host {}, imports: [ServiceModule.forRoot({ name })] },
    { logger, abortOnError: false },
  );
  try {
    await task(context, () => logger.lines.map(String).join('\n'));
  } finally {
    await context.close();
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
  }
}

const banksOf = (context: INestApplicationContext) => context.get(BanksService, { strict: false });

/** Finds the curl line in the output. */
const curlIn = (stdout: string) => /^ {2}(curl .+)$/m.exec(stdout)?.[1] ?? '';

/** Runs the curl line in a shell, unchanged. */
function shell(line: string) {
  return run('sh', ['-c', `${line} --silent --show-error --write-out ' %{http_code}'`]);
}

describe('nestjs-service simulator', () => {
  it('the simulator command prints a working curl line and then each request, until SIGTERM', async () => {
    const port = await freePort(6);
    const faults = ['--token-lifetime', '60', '--fail', '/banks/v1=503:1'];
    const child = startProgram(['--port', String(port), '--dir', 'a b', ...faults]);
    await child.waitForOutput(READY);
    const line = curlIn(child.output());
    for (const command of ['nestjs-service doctor', 'nest start'])
      expect(child.output()).toContain(`  npx ${command} --env-file '${join(folder, 'a b/.env')}'\n`);
    expect((await shell(line)).stdout).toMatch(/"SIMULATED_503".* 503$/);
    expect((await shell(`${line}?secret=in-the-query`)).stdout).toMatch(/^\[\{"bank_identifier":.* 200$/);
    await expect(run('curl', ['-sk', `https://127.0.0.1:${port + 3}/banks/v1`])).rejects.toBeDefined();

    const env = await written('a b');
    const form = ['grant_type=client_credentials', 'scope=api', `client_id=${env.SERVICE_CLIENT_ID}`];
    const token = await run('curl', [
      ...['-s', '--cacert', env.SERVICE_TLS_CHAIN_FILE ?? '', `${env.SERVICE_AUTH_URL}/oauth2/token`],
      ...[...form, `client_secret=${env.SERVICE_CLIENT_SECRET}`].flatMap((field) => [
        '--data-urlencode',
        field,
      ]),
    ]);
    expect(JSON.parse(token.stdout)).toMatchObject({ expires_in: 60, scope: 'api' });

    await child.waitForOutput('(token)\n');
    child.signal('SIGTERM');
    expect(await child.exited).toEqual({ code: 0, signal: null });
    const [head = '', requests = ''] = child.output().split(READY);
    const ports = [...head.matchAll(/^ {2}(SERVICE_\w+) +https:\/\/127\.0\.0\.1:(\d+) /gm)];
    expect(ports.map(([, variable, used]) => [variable, Number(used) - port])).toEqual([
      ['SERVICE_BASE_URL', 0],
      ['SERVICE_OAUTH_BASE_URL', 1],
      ['SERVICE_SANDBOX_URL', 2],
      ['SERVICE_SANDBOX_MTLS_URL', 3],
      ['SERVICE_AUTH_URL', 4],
      ['SERVICE_SANDBOX_AUTH_URL', 5],
    ]);
    const shownRequests = requests.replaceAll(/\d\d:\d\d:\d\d/g, 'TIME').replaceAll(/\d+ ms/g, 'N ms');
    expect(shownRequests.trim().split('\n')).toEqual([
      'TIME GET /banks/v1 503 N ms (base)',
      'TIME GET /banks/v1 200 N ms (base)',
      'TIME TLS connection refused: certificate_required, no client certificate (sandbox-mtls)',
      'TIME POST /oauth2/token 200 N ms (token)',
    ]);
    expect(child.output()).not.toContain(env.SERVICE_CLIENT_SECRET);
    expect(child.output()).not.toMatch(/eyJ|PRIVATE KEY/);
  });

  it('the simulator command uses the six ports from 8443 by default', async () => {
    const { ports } = (await readSimulatorOptions([], '/a')) as { ports: Record<string, number> };
    expect(Object.values(ports)).toEqual([8443, 8444, 8445, 8446, 8447, 8448]);
  });

  it('an application works in every mode with the .env that the simulator command writes, and logs no warning', async () => {
    await start('--port', '0');
    const env = await written('service-simulator');
    for (const [environment, authentication] of [
      ['production', 'mtls'],
      ['production', 'oauth'],
      ['sandbox', 'app-token'],
      ['sandbox', 'mtls'],
      ['sandbox', 'oauth'],
    ] as const) {
      const mode = { SERVICE_ENVIRONMENT: environment, SERVICE_AUTHENTICATION: authentication };
      await withHost({ ...env, ...mode }, async (context, logged) => {
        expect(await banksOf(context).list()).toHaveLength(10);
        const session = { customer_id: 'c-1', permissions: ['identity'] };
        const sdk = context.get(LinkSdkService, { strict: false });
        expect(await sdk.connectParameters(session)).toHaveProperty('access_token');
        expect(logged()).toContain(`${environment}, ${authentication}`);
        expect(logged()).not.toMatch(/deprecated|WARNING/);
      });
    }
  });

  const BRAND = {
    SERVICE_APP_TOKEN_HEADER: 'brand-token',
    SERVICE_WEBHOOK_HEADER: 'brand-signature',
    SERVICE_WEBHOOK_ALGORITHM: 'sha256',
    SERVICE_WEBHOOK_PREFIX: '',
  };
  it.each<[string, Record<string, string>, Record<string, string>]>([
    ['the environment', BRAND, {}],
    ["the application's .env", {}, BRAND],
    [
      "the environment rather than those of the application's .env",
      BRAND,
      { SERVICE_APP_TOKEN_HEADER: 'other-token' },
    ],
  ])("the simulator command takes the brand's header names and signatures from %s", async (_, env, file) => {
    const lines = Object.entries(file).map(([variable, value]) => `${variable}=${value}\n`);
    await writeFile(join(folder, '.env'), lines.join(''));
    try {
      const { stdout } = await startWith(env, '--port', '0', '--dir', 'brand');
      expect(stdout()).toContain("-H 'brand-token: ");
      expect((await shell(curlIn(stdout()))).stdout).toMatch(/ 200$/);
      const variables = await written('brand');
      expect(variables).toMatchObject(BRAND);
      await withHost(variables, async (context) => {
        expect(await banksOf(context).list()).toHaveLength(10);
      });
    } finally {
      await rm(join(folder, '.env'));
    }
  });

  it('the option --name writes and prints the variables of a named module', async () => {
    const { stdout } = await start('--port', '0', '--dir', 'named', '--name', 'ksa-north');
    const variables = await written('named');
    expect(Object.keys(variables).filter((name) => !name.startsWith('SERVICE_KSA_NORTH_'))).toEqual([]);
    expect(stdout()).toMatch(/^ {2}SERVICE_KSA_NORTH_SANDBOX_MTLS_URL {2}https:/m);
    for (const command of ['doctor', 'call GET /banks/v1']) {
      const env = join(folder, 'named/.env');
      expect(stdout()).toContain(`  npx nestjs-service ${command} --name ksa-north --env-file '${env}'\n`);
    }
    expect(stdout()).toContain(
      "\nTry it, with ServiceModule.forRoot({ name: 'ksa-north' }) in the application:\n",
    );
    const list = async (context: INestApplicationContext) => {
      const banks = context.get<BanksService>(getServiceToken(BanksService, 'ksa-north'), { strict: false });
      expect(await banks.list()).toHaveLength(10);
    };
    await withHost(variables, list, 'ksa-north');
  });

  it.each(partOf(["it's", 'a "b" $(c) `d`', 'a\\b', "it's \\a"], 4))(
    'a shell, Node and dotenv read the same path from the written .env in a folder with the name %j',
    async (dir) => {
      const { stdout } = await start('--port', '0', '--dir', dir);
      expect((await shell(curlIn(stdout()))).stdout).toMatch(/ 200$/);
      const env = join(folder, dir, '.env');
      const key = join(folder, dir, 'application.key');
      const script = '. "$1" && printf %s "$SERVICE_TLS_PRIVATE_KEY_FILE"';
      expect((await run('sh', ['-c', script, 'sh', env])).stdout).toBe(key);
      expect((await written(dir)).SERVICE_TLS_PRIVATE_KEY_FILE).toBe(key);
      const byDotenv = await readEnvironment({ env: {}, cwd: folder }, [env]);
      expect(byDotenv.get('SERVICE_TLS_PRIVATE_KEY_FILE')).toBe(key);
    },
  );

  it('the simulator is reachable under the names of --san on the address of --host, and prints a warning', async () => {
    const args = ['--port', '0', '--host', '0.0.0.0', '--san', 'localhost', '--san', 'simulator'];
    const { stderr } = await start(...args, '--dir', 'reached');
    expect(stderr()).toMatch(
      /^Warning: the simulator listens on 0\.0\.0\.0, so every host of the network can call it\./,
    );
    const variables = await written('reached');
    const { hostname, port } = new URL(variables.SERVICE_BASE_URL ?? '');
    expect(hostname).toBe('localhost');
    await withHost(variables, async (context) => {
      expect(await banksOf(context).list()).toHaveLength(10);
    });
    const chain = await readFile(variables.SERVICE_TLS_CHAIN_FILE ?? '', 'utf8');
    const socket = connect({ port: Number(port), host: '127.0.0.2', servername: 'simulator', ca: chain });
    await once(socket, 'secureConnect');
    socket.destroy();
  });

  it.each([
    [['127.0.0.1', '--san', 'localhost'], /^$/],
    [['127.0.0.2'], /^$/],
    [['0.0.0.0'], /For clients on other hosts add --san </],
  ])(
    'the simulator command warns about --san and the network only if needed: --host %j',
    async (args, warning) => {
      const { stderr } = await start('--port', '0', '--dir', 'loopback', '--host', ...args);
      expect(stderr()).toMatch(warning);
    },
  );

  it.each([
    [
      ['--host', '192.0.2.1'],
      'This machine does not have the address 192.0.2.1. To listen on all its addresses: --host 0.0.0.0\n',
    ],
    [['--dir', 'a-file'], /^ENOTDIR: .* Choose another folder with --dir\.\n$/],
    [['--dir', 'a-file/below'], /^ENOTDIR: .* Choose another folder with --dir\.\n$/],
    [['--dir', '/proc/none/below'], /^ENOENT: .* Choose another folder with --dir\.\n$/],
  ])(
    'the simulator command prints a single line that says why it cannot start with %j',
    async (args, message) => {
      await writeFile(join(folder, 'a-file'), '');
      const { ended, stderr } = await start('--port', '0', ...args);
      expect(await ended).toBe(1);
      expect(stderr()).toMatch(message);
    },
  );

  it('the simulator command prints a single line that says which port is in use, and writes no file', async () => {
    const port = await freePort(6);
    const other = createServer().listen(port + 2, '127.0.0.1');
    await once(other, 'listening');
    const { ended, stderr } = await start('--port', String(port), '--dir', 'taken');
    expect(await ended).toBe(1);
    other.close();
    expect(stderr()).toBe(
      `Port ${port + 2} is in use (the simulator uses ${port} to ${port + 5}). Is another simulator running? Otherwise choose other ports with --port.\n`,
    );
    await expect(stat(join(folder, 'taken'))).rejects.toThrow('ENOENT');
  });

  soakIt('the simulator ends if only npx receives SIGTERM', async () => {
    const line = commandLine(['simulator', '--port', '0', '--dir', 'npx']).map((part) => `'${part}'`);
    // The second command (`:`) keeps the shell from replacing itself with the first one.
    const npx = startProcess(['npx', '-c', `${line.join(' ')}; :`], {
      cwd: folder,
      env: { XDG_DATA_HOME: data },
    });
    started.push(npx);
    await npx.waitForOutput(READY);
    npx.signal('SIGTERM');
    expect(await npx.waitUntilGone()).toBe(true);
  });

  soakIt('the first SIGINT ends the command even before the simulator runs', async () => {
    // The preload makes the first write hang forever.
    const preload = `data:text/javascript,${encodeURIComponent(`
      import fs from 'node:fs/promises';
      import { syncBuiltinESMExports } from 'node:module';
      setInterval(() => {}, 1_000);
      fs.mkdir = () => (console.log('making the folder'), new Promise(() => {}));
      syncBuiltinESMExports();`)}`;
    const [node = '', ...args] = commandLine(['simulator', '--port', '0', '--dir', 'never']);
    const child = spawn(node, ['--import', preload, ...args], {
      cwd: folder,
      env: { ...process.env, XDG_DATA_HOME: data },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(child.stdout.setEncoding('utf8'), 'data');
      child.kill('SIGINT');
      expect(await once(child, 'exit')).toEqual([null, 'SIGINT']);
    } finally {
      child.kill('SIGKILL');
    }
  });

  soakIt('the simulator keeps running if nobody reads its output', async () => {
    const [node = '', ...args] = commandLine(['simulator', '--port', '0', '--dir', 'unread']);
    const env = { ...process.env, XDG_DATA_HOME: data };
    const child = spawn(node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [first] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
      child.stdout.destroy();
      for (let call = 0; call < 3; call += 1) expect((await shell(curlIn(first))).stdout).toMatch(/ 200$/);
      child.kill('SIGTERM');
      expect(await once(child, 'exit')).toEqual([0, null]);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('simulator --help loads neither Nest nor class-validator nor axios', async () => {
    const [node = '', ...args] = commandLine(['simulator', '--help']);
    const env = { ...process.env, NODE_DEBUG: 'esm' };
    const { stdout, stderr } = await run(node, args, { env, maxBuffer: 64 * 1024 * 1024 });
    expect(stdout).toMatch(/^Usage: nestjs-service simulator/);
    expect(stderr).toContain('/lib/cli/simulator.ts');
    // Node 24 prints the sources too, whose comments have these names.
    expect(stderr).not.toMatch(/node_modules\/(@nestjs|class-validator|axios)\//);
  });

  it.each([
    [['--port', 'x'], "--port must be a whole number from 0 to 65530, not 'x'."],
    [['--port', '65531'], '--port must be a whole number from 0 to 65530'],
    [['--token-lifetime', '0'], "--token-lifetime must be a whole number from 1 to 2147483648, not '0'."],
    [
      ['--fail', '/banks/v1=200'],
      "--fail '/banks/v1=200': '200' is not a fault. A fault is a status from 400 to 599, a delay such as 2000ms, lost, reset, reset-after-headers, truncate, hang, html, empty, reset-handshake, handshake_failure, bad_certificate, unsupported_certificate, certificate_revoked, certificate_expired, certificate_unknown, unknown_ca, access_denied, certificate_required.\nSee: nestjs-service simulator --help",
    ],
    [['--name', '1a'], '--name: must begin with a letter and contain only letters, digits, - and _.'],
    [
      ['--name', 'oauth'],
      "--name: cannot be 'oauth': SERVICE_OAUTH_BASE_URL is also a variable of the module",
    ],
    [['--dir', ''], '--dir needs the name of a folder.'],
    [['--dir', `it's "$(touch x)"`], `--dir: the path contains a ' and also one of ", $, \` and \\,`],
    [['--dir', 'a\nb'], '--dir: the path contains a line break or another control character.'],
    [['--dir', '\u001b[31m'], 'Choose another folder.'],
    [
      ['--host', 'localhost'],
      "must be an IP address, for example 0.0.0.0, not 'localhost'. A host name belongs in",
    ],
    [
      ['--san', 'simulator', '--san', 'a/b'],
      "must be host names without https://, port or comma, not 'a/b'.",
    ],
    [['--san', 'a:8443'], "not 'a:8443'."],
    [['--san', '*.example'], "not '*.example'."],
    [['--san', ''], "not ''."],
    [['--ports', '1'], "Unknown option '--ports'"],
    [['more'], 'Unexpected argument'],
  ])('the simulator command exits with 2 and an explanation for the arguments %j', async (args, message) => {
    const { ended, stdout, stderr } = await start(...args);
    expect(await ended).toBe(2);
    expect(stdout()).toBe('');
    expect(stderr()).toContain(message);
    expect(stderr()).toContain('nestjs-service simulator --help');
    expect(stderr()).not.toMatch(/[^\n\x20-\x7e]/);
  });

  it('with --verbose it prints the path with its query, the headers and the body of each request, without credentials', async () => {
    const { stdout } = await start('--port', '0', '--verbose', '--dir', 'verbose');
    const env = await written('verbose');
    const oauth = { ...env, SERVICE_AUTHENTICATION: 'oauth', SERVICE_OAUTH_MTLS: 'true' };
    await withHost(oauth, async (context) => {
      const http = context.get(ServiceHttpService, { strict: false });
      await http.post('/customers/v1', { app_user_id: 'u-1', name: 'سارة\u001b[2J' });
    });
    await withHost(env, async (context) => {
      await context.get(ServiceHttpService, { strict: false }).get('/echo/v1', { params: { page: 2 } });
    });
    const shown = stdout().split(READY)[1];
    const blocks = shown.replace(/\d\d:\d\d:\d\d (.*) \d+ ms/g, 'TIME $1').split(/^(?=TIME)/m);
    const without = (block: string) =>
      block.replace(/^ {2}(host|user-agent|content-length|accept.*|connection): .*\n/gm, '');
    expect(blocks.map(without)).toEqual([
      `TIME POST /oauth2/token 200 (token)
  POST /oauth2/token
  client certificate: CN=application, O=Simulated Application
  content-type: application/x-www-form-urlencoded

  grant_type=client_credentials&client_id=${env.SERVICE_CLIENT_ID}&client_secret=[cut]&scope=api

`,
      `TIME POST /customers/v1 201 (base)
  POST /customers/v1
  client certificate: CN=application, O=Simulated Application
  content-type: application/json
  authorization: Bearer [cut]

  {"app_user_id":"u-1","name":"سارة\\u001b[2J"}

`,
      `TIME GET /echo/v1 200 (base)
  GET /echo/v1?page=2
  client certificate: CN=application, O=Simulated Application
  service-app-token: [cut]
`,
    ]);
    expect(shown).not.toContain(encodeURIComponent(env.SERVICE_CLIENT_SECRET).slice(0, 20));
    expect(shown).not.toMatch(/eyJ/);
  });

  it.each([
    ['a token in the body', { body: 'token=token-0123456789' }, /token-0123/],
    ['a token in the query', { path: '/x?t=token-0123456789' }, /token-0123/],
    ['a JWT in another header', { headers: { 'x-token': `eyJ${'a'.repeat(30)}.b.c` } }, /eyJ/],
    ['a client secret as JSON', { body: '{"client_secret" : "a\\"b c", "x": 1}' }, /b c/],
    ['another scheme', { headers: { authorization: 'Token own-secret-1' } }, /own-secret|Token/],
    ['the app token', { headers: { 'brand-token': 'brand-secret-1' } }, /brand-secret/],
    ['a cookie', { headers: { cookie: 'session=cookie-secret-1' } }, /cookie-secret/],
    ['control characters', { body: 'a\u001b[2J\u202eb\r\nc', path: '/\u001b' }, /(?!\n)[\p{Cc}\p{Cf}]/u],
  ])('--verbose does not print %s', (_, part, secret) => {
    const headers = { authorization: 'Bearer token-0123456789' };
    const request = { method: 'POST', path: '/x', headers, body: '', ...part };
    expect(describeContent(request as never, 'Brand-Token')).not.toMatch(secret);
  });

  it('--verbose prints at most 10,000 characters of a body', () => {
    const request = { method: 'POST', path: '/x', headers: {}, body: 'x'.repeat(20_000) };
    const shown = describeContent(request as never, 'a');
    expect(shown).toMatch(/^ {2}x{10000}\n {2}\[the first 10000 of 20000 characters\]\n$/m);
  });

  it('printed requests contain no control characters of a client, but the reason why a route failed', () => {
    const refusal = { face: 'baseUrl', alert: 'unknown_ca', certificateSubject: 'CN=\u001b[2Jü' };
    expect(describeRefusal(refusal as never)).toContain('CN=?[2J?');
    const request = { receivedAt: 0, method: 'GET', path: '/x?a=1', status: 500, face: 'base' };
    const line = (error?: string) => describeRequest({ ...request, error } as never, 3).replace(/^\S+ /, '');
    expect(line("Cannot read properties\nof undefined (reading 'id')")).toBe(
      "GET /x 500 3 ms (base): Cannot read properties?of undefined (reading 'id')\n",
    );
    expect(line()).toBe('GET /x 500 3 ms (base)\n');
  });
});

describe('stored state of the simulator command', () => {
  it('a restart reuses the credentials of its folder, so that a running application keeps working', async () => {
    const options = ['--port', String(await freePort(6)), '--dir', 'kept'];
    const restart = async (...more: string[]): Promise<string> => {
      await endAll();
      return (await start(...options, ...more)).stdout();
    };
    expect(await restart()).toContain('  They are new. The next start uses them again.\n');
    const variables = await written('kept');
    const certificate = await readFile(join(folder, 'kept/application.crt'), 'utf8');
    // The application uses OAuth, because the restarted simulator does not accept its old token: it must get another.
    await withHost({ ...variables, SERVICE_AUTHENTICATION: 'oauth' }, async (context) => {
      expect(await banksOf(context).list()).toHaveLength(10);
      expect(await restart()).toContain('  They are the same as at the last start. For new ones: --new\n');
      expect(await banksOf(context).list()).toHaveLength(10);
    });
    expect(await written('kept')).toEqual(variables);
    expect(await readFile(join(folder, 'kept/application.crt'), 'utf8')).toBe(certificate);
    expect(await restart('--new')).toContain('  They are new. The next start uses them again.\n');
    const others = await written('kept');
    expect(others.SERVICE_CLIENT_SECRET).not.toBe(variables.SERVICE_CLIENT_SECRET);
    await restart();
    expect(await written('kept')).toEqual(others);
    await start('--port', '0', '--dir', 'another');
    expect((await written('another')).SERVICE_CLIENT_SECRET).not.toBe(others.SERVICE_CLIENT_SECRET);

    const path = statePath({ XDG_DATA_HOME: data }, join(folder, 'kept')) ?? '';
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(path, '..'))).mode & 0o077).toBe(0);
    expect(await readdir(join(path, '..'))).not.toContainEqual(expect.stringMatching(/(?<!\.json)$/));
  });

  it('without a writable home folder, the command still starts and makes new credentials each time', async () => {
    const home = join(folder, 'home');
    await writeFile(home, 'no folder');
    const secrets: (string | undefined)[] = [];
    for (const HOME of [home, '/proc/self', '']) {
      const child = startProgram(['--port', '0', '--dir', 'homeless'], { HOME, XDG_DATA_HOME: '' });
      await child.waitForOutput(READY);
      expect(child.output()).toContain(
        '  They are new at each start, because they cannot be stored. Set HOME or XDG_DATA_HOME to a folder that this user can write to.\n',
      );
      expect((await shell(curlIn(child.output()))).stdout).toMatch(/ 200$/);
      child.signal('SIGTERM');
      expect(await child.exited).toEqual({ code: 0, signal: null });
      secrets.push((await written('homeless')).SERVICE_CLIENT_SECRET);
    }
    expect(new Set(secrets).size).toBe(3);
    expect(await readFile(home, 'utf8')).toBe('no folder');
  });

  it.each<[NodeJS.Platform, Record<string, string>, string | undefined]>([
    ['linux', { HOME: '/home/a' }, '/home/a/.local/share/nestjs-service/'],
    ['linux', { HOME: '/home/a', XDG_DATA_HOME: '/data' }, '/data/nestjs-service/'],
    ['linux', { HOME: '/home/a', XDG_DATA_HOME: 'data' }, '/home/a/.local/share/nestjs-service/'],
    ['linux', { HOME: '' }, undefined],
    ['darwin', { HOME: '/Users/a' }, '/Users/a/Library/Application Support/nestjs-service/'],
    ['win32', { LOCALAPPDATA: '/Local', APPDATA: '/Roaming', HOME: '/a' }, '/Local/nestjs-service/'],
    ['win32', { APPDATA: '/Roaming' }, '/Roaming/nestjs-service/'],
    ['win32', {}, undefined],
  ])(
    "statePath returns a file in the user's data folder, or undefined without one: %s, %j",
    (platform, env, expected) => {
      const path = statePath(env, '/one', platform);
      expect(path?.replace(/[^/]*$/, '')).toBe(expected);
    },
  );

  it.each([
    ['that has expired is not used again', -1, false],
    ['that expires in less than 30 days is not used again', 29 * DAY, false],
    ['that is valid for more than 30 days is used again', 31 * DAY, true],
  ])('a stored certificate %s', async (_, applicationLifetime, isUsed) => {
    const simulator = await ServiceSimulator.start({ certificates: { applicationLifetime } });
    await simulator.stop();
    const path = join(folder, 'lifetimes/kept.json');
    expect(await readState(path)).toBeUndefined();
    expect(await writeState(path, simulator)).toBe(true);
    const { clientId, clientSecret, appToken, application } = simulator;
    const kept = { credentials: { clientId, clientSecret, appToken }, application };
    const found = await readState(path);
    if (isUsed) expect(found).toMatchObject({ ...kept, authority: { chain: simulator.chain } });
    else expect(found).toBeUndefined();
    for (const other of ['{}', '{"credentials":{}}', 'no JSON']) {
      await writeFile(path, other);
      expect(await readState(path)).toBeUndefined();
    }
    await rm(path);
  });
});

describe('folder of the simulator command', () => {
  it('the folder contains keys that only the user can read, a .gitignore for all files and nothing unexpected', async () => {
    await start('--port', '0', '--dir', 'private');
    const dir = join(folder, 'private');
    for (const [name, mode] of [
      ['application.key', 0o600],
      ['.env', 0o600],
      ['chain.pem', 0o644],
    ] as const)
      expect((await stat(join(dir, name))).mode & 0o777).toBe(mode & ~process.umask());
    expect(await readFile(join(dir, '.gitignore'), 'utf8')).toBe('*\n');
    const files = ['.env', '.gitignore', 'application.crt', 'application.key', 'chain.pem'];
    expect((await readdir(dir)).sort()).toEqual(files);
  });

  it("the command keeps an existing .gitignore and does not start if it would overwrite another program's .env", async () => {
    await mkdir(join(folder, 'own'));
    await writeFile(join(folder, 'own/.gitignore'), 'mine\n');
    await (await start('--port', '0', '--dir', 'own')).end();
    expect(await readFile(join(folder, 'own/.gitignore'), 'utf8')).toBe('mine\n');
    const env = join(folder, 'own/.env');
    await writeFile(env, 'PORT=3000\n');
    const { ended, stderr } = await start('--port', '0', '--dir', 'own');
    expect(await ended).toBe(1);
    expect(stderr()).toBe(
      `${env} would be overwritten, but it was changed since the simulator wrote it, or was not written by the simulator. Move the file, or choose another folder with --dir.\n`,
    );
    expect(await readFile(env, 'utf8')).toBe('PORT=3000\n');
  });

  it.each<[string, (path: string) => unknown]>([
    ['a link to nowhere', (path) => symlink('nowhere', path)],
    ['a link to a file', (path) => symlink('/etc/hostname', path)],
    ['a folder', (path) => mkdir(path)],
    ['a pipe', (path) => execFileSync('mkfifo', [path])],
    ['a file', (path) => writeFile(path, 'x')],
  ])('the command rejects a folder in which %s stands in place of one of its files', async (_, make) => {
    const dir = await mkdtemp(join(folder, 'foreign-'));
    for (const name of ['.env', 'application.key']) {
      await make(join(dir, name));
      await expect(checkFolder(dir)).rejects.toThrow(ForeignFileError);
      await rm(join(dir, name), { recursive: true });
    }
    await expect(checkFolder(dir)).resolves.toBeUndefined();
  });

  it.each<[string, (text: string) => string, boolean]>([
    ['recognizes its own unchanged .env', (text) => text, true],
    ['does not recognize a .env with one line more', (text) => `${text}PORT=3000\n`, false],
    ['does not recognize a .env with another first line', (text) => `\n${text}`, false],
    ['does not recognize a .env without its first line', (text) => text.replace(/^.*\n/, ''), false],
  ])('the command %s', async (_, change, isOwn) => {
    const simulator = {
      application: { certificate: 'CERTIFICATE', privateKey: 'KEY' },
      chain: 'CHAIN',
      env: () => ({ SERVICE_CLIENT_ID: 'id' }),
    } as unknown as ServiceSimulator;
    const dir = await mkdtemp(join(folder, 'changed-'));
    const { env } = await writeFiles(dir, simulator);
    await writeFile(env, change(await readFile(env, 'utf8')));
    const checked = checkFolder(dir).then(
      () => true,
      (error: unknown) => !(error instanceof ForeignFileError),
    );
    expect(await checked).toBe(isOwn);
  });
});

describe('nestjs-service simulator --fail', () => {
  it.each([
    ['/banks/v1=503', { path: '/banks/v1', times: Infinity, fault: { status: 503 } }],
    ['/banks/v1=2000ms:3', { path: '/banks/v1', times: 3, fault: { delayMs: 2000 } }],
    ['/customers/v1=lost', { path: '/customers/v1', times: Infinity, fault: 'lost' }],
    ['token=reset', { face: 'token', times: Infinity, fault: 'reset' }],
    ['base=certificate_unknown:1', { face: 'base', times: 1, fault: { tlsAlert: 'certificate_unknown' } }],
    ['sandbox-mtls=reset-handshake', { face: 'sandbox-mtls', fault: 'reset-handshake' }],
  ])('parseFault reads --fail %s', (text, rule) => {
    expect(parseFault(text)).toMatchObject(rule);
  });

  it('parseFault accepts each fault that the help of --fail names', () => {
    for (const word of FAULT_WORDS.named) expect(parseFault(`/x=${word}`).fault).toBe(word);
    for (const word of FAULT_WORDS.connection) expect(parseFault(`base=${word}`).fault).toBeDefined();
  });

  it.each([
    ['', "must be <where>=<fault>[:<times>], for example '/banks/v1=503:3'."],
    ['/banks/v1', 'must be <where>=<fault>'],
    ['/banks/v1=503:0', 'must be <where>=<fault>'],
    ['/banks/v1=503:3:4', 'must be <where>=<fault>'],
    ['banks/v1=503', "'banks/v1' is neither a path nor a server."],
    ['bse=503', "'bse' is neither a path nor a server."],
    ['/banks/v1?a=503', "'/banks/v1?a' is neither a path nor a server."],
    ['/banks/v1=', "'' is not a fault."],
    ['/banks/v1=200', "'200' is not a fault."],
    ['/banks/v1=toString', "'toString' is not a fault."],
    ['base=constructor', "'constructor' is not a fault."],
    ['/banks/v1=9999999999ms', "'9999999999ms' is not a fault."],
    ['/banks/v1=unknown_ca', "'unknown_ca' affects whole connections: give a server instead of a path."],
    [
      '/banks/v1=reset-handshake',
      "'reset-handshake' affects whole connections: give a server instead of a path.",
    ],
  ])('parseFault rejects --fail %j', (text, reason) => {
    expect(() => parseFault(text)).toThrow(UsageError);
    expect(() => parseFault(text)).toThrow(`--fail '${text}': ${reason}`);
  });
});

it('the error about --fail explains that Git Bash has rewritten the path', () => {
  for (const text of ['C:/Program Files/Git/banks/v1=503:3', 'C:\\Program Files\\Git\\banks\\v1=503;3'])
    expect(() => parseFault(text)).toThrow(/is a path of Windows\. Git Bash .* MSYS_NO_PATHCONV=1/);
});

describe('nestjs-service simulator --routes', () => {
  it.each<[string, string, string, (http: ServiceHttpService) => Promise<void>]>([
    [
      'json',
      'guide.json',
      'GET /accounts/v1/{id}',
      async (http) => {
        expect(await http.get('/accounts/v1/7')).toEqual({ id: 'a-1', balance: 10 });
        expect(await http.delete('/accounts/v1/7')).toBeUndefined();
        expect(await http.get('/banks/v1')).toHaveLength(10);
      },
    ],
    [
      'js',
      'guide.mjs',
      'GET /accounts/v1/{id}',
      async (http) => {
        expect(await http.get('/accounts/v1/7?currency=SAR')).toEqual({ id: '7', currency: 'SAR' });
      },
    ],
    [
      'js',
      'known-api.mjs',
      'GET /data/v2/accounts',
      async (http) => {
        const customer = await http.post<{ customer_id: string }>('/customers/v1', { app_user_id: 'u' });
        const path = '/customers/v1/app-user-id/{app_user_id}';
        expect(await http.get(path, { pathParams: { app_user_id: 'u' } })).toEqual(customer);
      },
    ],
  ])(
    'the simulator answers the routes of the %s example in the guide: %s',
    async (language, name, route, task) => {
      const { fences } = await readDocument('docs/command.md');
      const { text = '' } =
        fences.find(({ text }) => text.startsWith(`// ${name}\n`)) ??
        fences.find((fence) => fence.language === language) ??
        {};
      await writeFile(join(folder, name), text);
      const { stdout } = await start('--port', '0', '--dir', 'routes', '--routes', name);
      expect(stdout()).toContain(`\n  Also answers ${route}\n`);
      await withHost(await written('routes'), (context) =>
        task(context.get(ServiceHttpService, { strict: false })),
      );
    },
  );

  it.each([
    ['none.json', undefined, 'cannot be read: ENOENT'],
    ['half.json', '{ "GET', 'cannot be read: '],
    ['throws.mjs', 'throw new Error("of the module")', 'cannot be read: of the module'],
    [
      'list.json',
      '[]',
      'must contain an object (a module: as its default export). The object has an answer for each method and path',
    ],
    ['nothing.mjs', 'export const routes = {}', 'must contain an object (a module: as its default export).'],
    ['path-only.json', '{ "/accounts/v1": {} }', "'/accounts/v1': must be a method, a space and a path."],
    ['more.json', '{ "GET /a now": {} }', "'GET /a now': must be a method, a space and a path."],
    ['answer.json', '{ "GET /accounts/v1": { "id": 1 } }', "and not 'id'. Put the content of a JSON answer"],
  ])('the simulator command rejects the routes file %s', async (name, text, message) => {
    if (text !== undefined) await writeFile(join(folder, name), text);
    const { ended, stdout, stderr } = await start('--port', '0', '--dir', 'refused', '--routes', name);
    expect(await ended).toBe(2);
    expect(stdout()).toBe('');
    expect(stderr()).toContain('--routes: ');
    expect(stderr()).toContain(message);
  });
});
