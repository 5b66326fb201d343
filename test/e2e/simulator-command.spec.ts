import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { execFile, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify, parseEnv } from 'node:util';
import { BanksService, getServiceToken, LinkSdkService, ServiceModule } from 'nestjs-service';
import { readEnvironment } from '../../lib/cli/env-file.js';
import { runCommand } from '../../lib/cli/run-command.js';
import { commandIo } from '../helpers/command-io.js';
import { onlyInSoak, partOf } from '../helpers/in-soak.js';
import { freePort } from '../helpers/loopback.js';
import { startProcess, type SampleProcess } from '../helpers/sample-process.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { commandLine, startCommand } from '../helpers/source-process.js';

const READY = 'Requests:\n';
const run = promisify(execFile);
/** In processes that must be ended in a certain way. */
const soakIt = onlyInSoak(it);

/** The command in this process. */
interface Running {
  printed(): string;
  complained(): string;
  /** Its exit code. */
  ended: Promise<number>;
  end(): Promise<void>;
}

describe('nestjs-service simulator', () => {
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

  function startProgram(...options: string[]): SampleProcess {
    const child = startCommand(['simulator', ...options], { cwd: folder, env: { XDG_DATA_HOME: data } });
    started.push(child);
    return child;
  }

  /** Resolves once it is ready, or has ended. */
  async function start(...options: string[]): Promise<Running> {
    const events = new EventEmitter();
    const io = commandIo({ XDG_DATA_HOME: data }, { cwd: folder });
    const { out } = io;
    io.out = (text) => {
      out(text);
      if (String(text).endsWith(READY)) events.emit('ready');
    };
    io.endSignal = async () => void (await once(events, 'signal'));
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

  /** The variables that it wrote. */
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

  /** The line that is printed, given to a shell as it stands. */
  function shell(line: string) {
    return run('sh', ['-c', `${line} --silent --show-error --write-out ' %{http_code}'`]);
  }

  it('prints a curl line that works, and each request, until it is ended', async () => {
    const port = await freePort(6);
    const options = [
      '--port',
      String(port),
      '--dir',
      'a b',
      '--token-lifetime',
      '60',
      '--fail',
      '/banks/v1=503:1',
    ];
    const child = startProgram(...options);
    await child.printed(READY);
    const line = /^ {2}(curl .+)$/m.exec(child.output())?.[1] ?? '';
    for (const command of ['nestjs-service doctor', 'nest start']) {
      expect(child.output()).toContain(`  npx ${command} --env-file '${join(folder, 'a b/.env')}'\n`);
    }
    expect((await shell(line)).stdout).toMatch(/"SIMULATED_503".* 503$/);
    expect((await shell(`${line}?secret=in-the-query`)).stdout).toMatch(/^\[\{"bank_identifier":.* 200$/);
    await expect(run('curl', ['-sk', `https://127.0.0.1:${port + 3}/banks/v1`])).rejects.toBeDefined();

    const env = parseEnv(await readFile(join(folder, 'a b/.env'), 'utf8')) as Record<string, string>;
    const token = await run('curl', [
      ...[
        '-s',
        '--cacert',
        env.SERVICE_TLS_CHAIN_FILE ?? '',
        '-d',
        'grant_type=client_credentials',
        '-d',
        'scope=api',
      ],
      ...['--data-urlencode', `client_id=${env.SERVICE_CLIENT_ID}`],
      ...[
        '--data-urlencode',
        `client_secret=${env.SERVICE_CLIENT_SECRET}`,
        `${env.SERVICE_AUTH_URL}/oauth2/token`,
      ],
    ]);
    expect(JSON.parse(token.stdout)).toMatchObject({ expires_in: 60, scope: 'api' });

    await child.printed('(token)\n');
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
    expect(
      requests
        .replaceAll(/\d\d:\d\d:\d\d/g, 'TIME')
        .replaceAll(/\d+ ms/g, 'N ms')
        .trim()
        .split('\n'),
    ).toEqual([
      'TIME GET /banks/v1 503 N ms (base)',
      'TIME GET /banks/v1 200 N ms (base)',
      'TIME TLS connection refused: certificate_required, no client certificate (sandbox-mtls)',
      'TIME POST /oauth2/token 200 N ms (token)',
    ]);
    expect(child.output()).not.toContain(env.SERVICE_CLIENT_SECRET);
    expect(child.output()).not.toMatch(/eyJ|PRIVATE KEY/);
  });

  it('writes a .env with which the module works, keys for the user alone, and a reason for git to leave them', async () => {
    await start('--port', '0');
    const dir = join(folder, 'service-simulator');
    await withHost(await written('service-simulator'), async (context) => {
      expect(await context.get(BanksService, { strict: false }).list()).toHaveLength(10);
      const session = { customer_id: 'c-1', permissions: ['identity'] };
      expect(await context.get(LinkSdkService, { strict: false }).connectParameters(session)).toHaveProperty(
        'access_token',
      );
    });
    for (const [name, mode] of [
      ['application.key', 0o600],
      ['.env', 0o600],
      ['chain.pem', 0o644],
    ] as const) {
      expect((await stat(join(dir, name))).mode & 0o777).toBe(mode & ~process.umask());
    }
    expect(await readFile(join(dir, '.gitignore'), 'utf8')).toBe('*\n');
  });

  it('writes a .env of which an application logs nothing to worry about, in any mode', async () => {
    await start('--port', '0', '--dir', 'modes');
    for (const [environment, authentication] of [
      ['production', 'mtls'],
      ['production', 'oauth'],
      ['sandbox', 'app-token'],
      ['sandbox', 'mtls'],
      ['sandbox', 'oauth'],
    ]) {
      const mode = { SERVICE_ENVIRONMENT: environment, SERVICE_AUTHENTICATION: authentication };
      await withHost({ ...(await written('modes')), ...mode }, async (context, logged) => {
        expect(await context.get(BanksService, { strict: false }).list()).toHaveLength(10);
        expect(logged()).toContain(`${environment}, ${authentication}`);
        expect(logged()).not.toMatch(/deprecated|WARNING/);
      });
    }
  });

  it('writes the variables of a module with a name', async () => {
    const { printed } = await start('--port', '0', '--dir', 'named', '--name', 'ksa-north');
    const variables = await written('named');
    expect(Object.keys(variables).filter((name) => !name.startsWith('SERVICE_KSA_NORTH_'))).toEqual([]);
    expect(printed()).toMatch(/^ {2}SERVICE_KSA_NORTH_SANDBOX_MTLS_URL {2}https:/m);
    expect(printed()).toContain(
      `  npx nestjs-service doctor --name ksa-north --env-file '${join(folder, 'named/.env')}'\n`,
    );
    expect(printed()).toContain(
      "\nTry it, with ServiceModule.forRoot({ name: 'ksa-north' }) in the application:\n",
    );
    await withHost(
      variables,
      async (context) => {
        const banks = context.get<BanksService>(getServiceToken(BanksService, 'ksa-north'), {
          strict: false,
        });
        expect(await banks.list()).toHaveLength(10);
      },
      'ksa-north',
    );
  });

  it('keeps certificates and credentials, so that an application goes on over a restart', async () => {
    const options = ['--port', String(await freePort(6)), '--dir', 'kept'];
    const restart = async (...more: string[]): Promise<string> => {
      await endAll();
      return (await start(...options, ...more)).printed();
    };
    expect(await restart()).toContain('  They are new, and stay for the next start.\n');
    const variables = await written('kept');
    const certificate = await readFile(join(folder, 'kept/application.crt'), 'utf8');
    // With a certificate and a bearer: the token of before is not valid after the restart.
    await withHost({ ...variables, SERVICE_AUTHENTICATION: 'oauth' }, async (context) => {
      const banks = context.get(BanksService, { strict: false });
      expect(await banks.list()).toHaveLength(10);
      expect(await restart()).toContain('  They are those of the last start; --new makes others.\n');
      expect(await banks.list()).toHaveLength(10);
    });
    expect(await written('kept')).toEqual(variables);
    expect(await readFile(join(folder, 'kept/application.crt'), 'utf8')).toBe(certificate);
    expect((await readdir(join(folder, 'kept'))).sort()).toEqual([
      '.env',
      '.gitignore',
      'application.crt',
      'application.key',
      'chain.pem',
    ]);
    expect(await restart('--new')).toContain('  They are new, and stay for the next start.\n');
    const others = await written('kept');
    expect(others.SERVICE_CLIENT_SECRET).not.toBe(variables.SERVICE_CLIENT_SECRET);
    await restart();
    expect(await written('kept')).toEqual(others);
  });

  it('has a set for each folder; new ones at each start if the user has no folder for data', async () => {
    const secret = async (dir: string) => {
      const { printed, end } = await start('--port', '0', '--dir', dir);
      await end();
      return { printed: printed(), secret: (await written(dir)).SERVICE_CLIENT_SECRET };
    };
    const [one, other] = [await secret('set-1'), await secret('set-2')];
    expect(one.secret).not.toBe(other.secret);
    expect((await secret('set-1')).secret).toBe(one.secret);
    const before = data;
    data = join(folder, 'set-1/.env');
    const homeless = await secret('set-1');
    data = before;
    expect(homeless.secret).not.toBe(one.secret);
    expect(homeless.printed).toContain('They are new at each start, as this user has no folder for data.');
    expect((await readdir(join(folder, 'set-1'))).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('writes over its own files, and over no others', async () => {
    const env = join(folder, 'own/.env');
    const options = ['--port', '0', '--dir', 'own'];
    const first = await start(...options);
    const written = await readFile(env, 'utf8');
    await first.end();
    const second = await start(...options);
    expect(await readFile(env, 'utf8')).not.toBe(written);
    await second.end();

    await writeFile(env, 'PORT=3000\n');
    const third = await start(...options);
    expect(await third.ended).toBe(1);
    expect(third.complained()).toBe(
      `${env} was not written by this command, or was changed since, so it stays as it is. Move it, or choose another folder with --dir.\n`,
    );
    expect(await readFile(env, 'utf8')).toBe('PORT=3000\n');
  });

  it('leaves a .gitignore that is there', async () => {
    await mkdir(join(folder, 'there'));
    await writeFile(join(folder, 'there/.gitignore'), 'mine\n');
    await start('--port', '0', '--dir', 'there');
    expect(await readFile(join(folder, 'there/.gitignore'), 'utf8')).toBe('mine\n');
  });

  it.each([
    [['--host', '192.0.2.1'], 'This machine has no address 192.0.2.1. 0.0.0.0 stands for all that it has.\n'],
    [['--dir', 'a-file'], /^ENOTDIR: .* Choose another folder with --dir\.\n$/],
    [['--dir', 'a-file/below'], /^ENOTDIR: .* Choose another folder with --dir\.\n$/],
  ])('says in one line why it cannot start with %j', async (args, message) => {
    await writeFile(join(folder, 'a-file'), '');
    const { ended, complained } = await start('--port', '0', ...args);
    expect(await ended).toBe(1);
    expect(complained()).toMatch(message);
  });

  it('says in one line which port is taken, and writes nothing', async () => {
    const port = await freePort(6);
    const other = createServer().listen(port + 2, '127.0.0.1');
    await once(other, 'listening');
    const { ended, complained } = await start('--port', String(port), '--dir', 'taken');
    expect(await ended).toBe(1);
    other.close();
    expect(complained()).toBe(
      `Port ${port + 2} is taken (the simulator uses ${port} to ${port + 5}). Choose others with --port.\n`,
    );
    await expect(stat(join(folder, 'taken'))).rejects.toThrow('ENOENT');
  });

  soakIt('ends when only npx gets the signal, whatever its shell does', async () => {
    const line = commandLine(['simulator', '--port', '0', '--dir', 'npx']).map((part) => `'${part}'`);
    // With a second command, the shell does not become the first.
    const npx = startProcess(['npx', '-c', `${line.join(' ')}; :`], {
      cwd: folder,
      env: { XDG_DATA_HOME: data },
    });
    started.push(npx);
    await npx.printed(READY);
    npx.signal('SIGTERM');
    expect(await npx.isGone()).toBe(true);
  });

  soakIt('ends at the first signal before the simulator runs too', async () => {
    // The preload stops the start at its first write, for good.
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

  it.each(partOf(["it's", 'a "b" $(c) `d`', 'a\\b', "it's \\a"], 4))(
    'names its files so that a shell, Node and dotenv read the same: %s',
    async (dir) => {
      const { printed } = await start('--port', '0', '--dir', dir);
      const line = /^ {2}(curl .+)$/m.exec(printed())?.[1] ?? '';
      expect((await shell(line)).stdout).toMatch(/ 200$/);
      const env = join(folder, dir, '.env');
      const key = join(folder, dir, 'application.key');
      const script = '. "$1" && printf %s "$SERVICE_TLS_PRIVATE_KEY_FILE"';
      expect((await run('sh', ['-c', script, 'sh', env])).stdout).toBe(key);
      expect(parseEnv(await readFile(env, 'utf8')).SERVICE_TLS_PRIVATE_KEY_FILE).toBe(key);
      expect(
        (await readEnvironment({ env: {}, cwd: folder }, [env])).get('SERVICE_TLS_PRIVATE_KEY_FILE'),
      ).toBe(key);
    },
  );

  soakIt('goes on when nobody reads its output', async () => {
    const [node = '', ...args] = commandLine(['simulator', '--port', '0', '--dir', 'unread']);
    const env = { ...process.env, XDG_DATA_HOME: data };
    const child = spawn(node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [first] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
      child.stdout.destroy();
      const line = /^ {2}(curl .+)$/m.exec(first)?.[1] ?? '';
      for (let call = 0; call < 3; call += 1) expect((await shell(line)).stdout).toMatch(/ 200$/);
      child.kill('SIGTERM');
      expect(await once(child, 'exit')).toEqual([0, null]);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('is reached by another name at another address, with a warning', async () => {
    const args = ['--port', '0', '--host', '0.0.0.0', '--san', 'localhost', '--san', 'simulator'];
    const { complained } = await start(...args, '--dir', 'reached');
    expect(complained()).toMatch(
      /^Warning: it listens on 0\.0\.0\.0, where every host of the network can call it\./,
    );
    const variables = await written('reached');
    expect(variables.SERVICE_BASE_URL).toMatch(/^https:\/\/localhost:/);
    await withHost(variables, async (context) => {
      expect(await context.get(BanksService, { strict: false }).list()).toHaveLength(10);
    });
    const [{ port = '' } = {}] = [new URL(variables.SERVICE_BASE_URL ?? '')];
    const chain = await readFile(variables.SERVICE_TLS_CHAIN_FILE ?? '', 'utf8');
    const socket = connect({ port: Number(port), host: '127.0.0.2', servername: 'simulator', ca: chain });
    await once(socket, 'secureConnect');
    socket.destroy();
  });

  it.each([
    [['127.0.0.1', '--san', 'localhost'], /^$/],
    [['127.0.0.2'], /^$/],
    [['0.0.0.0'], /Others need a name in \.env and the certificate: add --san </],
  ])('warns of names and addresses that do not fit: --host %j', async (args, warning) => {
    const { complained } = await start('--port', '0', '--dir', 'loopback', '--host', ...args);
    expect(complained()).toMatch(warning);
  });

  it('says whose folder it is, if this user may not write there', async () => {
    await start('--port', '0', '--dir', 'locked');
    await endAll();
    await chmod(join(folder, 'locked'), 0);
    const isRoot = process.getuid?.() === 0;
    // Root may write everywhere.
    if (isRoot) process.seteuid?.(65_534);
    try {
      const { complained, ended } = await start('--port', '0', '--dir', 'locked');
      expect(await ended).toBe(1);
      expect(complained()).toMatch(/^EACCES: .*locked.*\. Choose another folder with --dir\.\n$/);
    } finally {
      if (isRoot) process.seteuid?.(0);
      await chmod(join(folder, 'locked'), 0o700);
    }
  });

  it('loads no more than it needs', async () => {
    const [node = '', ...args] = commandLine(['simulator', '--help']);
    const { stdout, stderr } = await run(node, args, { env: { ...process.env, NODE_DEBUG: 'esm' } });
    expect(stdout).toMatch(/^Usage: nestjs-service simulator/);
    expect(stderr).toContain('/lib/cli/simulator.ts');
    expect(stderr).not.toMatch(/@nestjs\/|class-validator|\/axios\//);
  });

  it.each([
    [['--port', 'x'], "--port needs a whole number from 0 to 65530, and got 'x'."],
    [['--port', '65531'], '--port needs a whole number from 0 to 65530'],
    [['--token-lifetime', '0'], "--token-lifetime needs a whole number from 1 to 2147483648, and got '0'."],
    [
      ['--fail', '/banks/v1'],
      "--fail '/banks/v1': it is not of the form <where>=<fault>[:<times>], for example ",
    ],
    [
      ['--fail', '/banks/v1=200'],
      "--fail '/banks/v1=200': '200' is no fault.\nSee: nestjs-service simulator --help",
    ],
    [['--name', '1a'], '--name: must begin with a letter and contain only letters, digits, - and _.'],
    [
      ['--name', 'oauth'],
      "--name: cannot be 'oauth': SERVICE_OAUTH_BASE_URL is also a variable of the module without",
    ],
    [['--dir', ''], '--dir needs the name of a folder.'],
    [['--dir', `it's "$(touch x)"`], `--dir: the path of the folder has a ' and also ", $, \` or \\.`],
    [['--dir', "it's `touch x`"], "--dir: the path of the folder has a '"],
    [['--dir', 'a\nb'], '--dir: the path of the folder has a line break or another control character.'],
    [['--dir', '\u001b[31m'], 'Choose another folder.'],
    [
      ['--host', 'localhost'],
      "host takes an IP address, for example 0.0.0.0, not 'localhost'. A name belongs in",
    ],
    [
      ['--san', 'simulator', '--san', 'a/b'],
      "takes names of hosts without https://, port or comma, not 'a/b'.",
    ],
    [['--san', 'a:8443'], "not 'a:8443'."],
    [['--san', 'one,two'], "not 'one,two'."],
    [['--san', '*.example'], "not '*.example'."],
    [['--san', ''], "not ''."],
    [['--ports', '1'], "Unknown option '--ports'"],
    [['more'], 'Unexpected argument'],
  ])('refuses %j', async (args, message) => {
    const io = commandIo();
    expect(await runCommand(['simulator', ...args], io)).toBe(2);
    expect(io.printed()).toBe('');
    expect(io.complained()).toContain(message);
    expect(io.complained()).toContain('nestjs-service simulator --help');
    expect(io.complained()).not.toMatch(/[^\n\x20-\x7e]/);
  });
});
