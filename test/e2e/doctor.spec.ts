import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { ServiceSimulator } from 'nestjs-service/testing';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../lib/cli/doctor.js';
import { type Examined } from '../../lib/cli/examine.js';
import { runCommand } from '../../lib/cli/run-command.js';
import { BROKEN_SETUPS, setupsOfBlock } from '../helpers/broken-setups.js';
import { onlyInSoak, partOf } from '../helpers/in-soak.js';
import { issue, type Issued } from '../helpers/certificates.js';
import { commandIo } from '../helpers/command-io.js';
import { MODES } from '../helpers/leak-scan.js';
import { secretsIn } from '../helpers/secret-scan.js';
import { simulatorsOfBlock, startSimulator } from '../helpers/simulators.js';
import { commandLine, startCommand } from '../helpers/source-process.js';

describe('nestjs-service doctor', () => {
  const withSetup = setupsOfBlock();

  describe('names the true cause first', () => {
    for (const [what, setup] of partOf(Object.entries(BROKEN_SETUPS), 12)) {
      it(what, async () => {
        await withSetup(setup, async (variables, simulator) => {
          const io = commandIo(variables);
          const code = await run(['--json'], io, { stepMs: setup.stepMs ?? 5_000, totalMs: 20_000 });
          const { ok, checks } = JSON.parse(io.printed()) as Examined;
          const failures = checks.filter(({ status }) => status === 'failed');
          expect(failures[0]).toEqual({
            name: setup.cause,
            status: 'failed',
            message: expect.stringMatching(setup.words),
            remedy: expect.stringMatching(/\w{3}.*\.$/),
          });
          expect({ ok, code }).toEqual({ ok: false, code: 1 });
          const follows = checks.filter(({ message }) => message.startsWith('Follows from'));
          for (const { status } of follows) expect(status).toBe('skipped');
          const secrets = {
            appToken: simulator.appToken,
            clientSecret: simulator.clientSecret,
            privateKey: simulator.application.privateKey,
            passwords: 's3cret-',
          };
          expect(secretsIn(io.printed() + io.complained(), secrets)).toEqual([]);
        });
      });
    }
  });

  const LIMITS = { stepMs: 10_000, totalMs: 20_000 };

  describe('of a set-up that works', () => {
    const startSimulator = simulatorsOfBlock();

    it('makes no call without a bearer where the token endpoint says to wait', async () => {
      const simulator = await startSimulator();
      simulator.fail({ path: '/oauth2/token', times: Infinity, fault: { status: 429 } });
      const io = commandIo(simulator.env({ environment: 'production', authentication: 'oauth' }));
      expect(await run([], io, LIMITS)).toBe(0);
      expect(io.printed()).toMatch(/^skipped +api\.banks +There is no token/m);
      expect(simulator.requests.map(({ path }) => path)).not.toContain('/banks/v1');
    });

    for (const [mode, options] of Object.entries(MODES)) {
      it(`ends with 0, and shows no secret: ${mode}`, async () => {
        const simulator = await startSimulator();
        const io = commandIo(simulator.env(options));
        expect(await run([], io, LIMITS)).toBe(0);
        const printed = io.printed();
        expect(printed).toMatch(/\n\d+ ok, \d+ warnings?, 0 failed, \d+ skipped\.\n$/);
        expect(printed).toMatch(/^ok +api\.banks +GET \/banks\/v1 is answered with JSON/m);
        const isShown =
          /^ok +token-endpoint\.client-certificate +The server asked .*, and did not refuse "CN=/m;
        expect(isShown.test(printed)).toBe('oauthMtls' in options);
        expect(io.complained()).toBe('');
        const secrets = {
          appToken: simulator.appToken,
          clientSecret: simulator.clientSecret,
          privateKey: simulator.application.privateKey,
          tokens: 'eyJ',
        };
        expect(secretsIn(printed, secrets)).toEqual([]);
        // One request of each kind, and no customer.
        const tokens = simulator.tokenRequests.map(({ body }) => new URLSearchParams(body).get('scope'));
        expect(tokens).toEqual(tokens.length === 0 ? [] : ['api']);
        expect(simulator.apiRequests.map(({ path }) => path)).toEqual(['/banks/v1']);
        expect(simulator.customers).toEqual([]);
      });
    }

    it('connects to nothing with --offline', async () => {
      const simulator = await startSimulator();
      const io = commandIo(simulator.env());
      expect(await run(['--offline'], io, LIMITS)).toBe(0);
      expect(io.printed()).not.toMatch(/ api\./);
      expect([simulator.handshakes.base.total, simulator.requests]).toEqual([0, []]);
    });

    it('prints nothing of a private key, whatever is swapped', async () => {
      const simulator = await startSimulator();
      const env = simulator.env({ environment: 'production', authentication: 'mtls' });
      const { privateKey } = simulator.application;
      const texts = [privateKey, privateKey.replaceAll('\n', '\\n'), privateKey.replaceAll('\n', '')];
      texts.push(Buffer.from(privateKey).toString('base64'), privateKey.slice(40, 100));
      const options = ['TLS_CERTIFICATE', 'TLS_PRIVATE_KEY', 'TLS_PASSPHRASE', 'TLS_CHAIN', 'APP_TOKEN'];
      const inBase64 = Buffer.from(privateKey).toString('base64').slice(40, 100);
      for (const name of options.map((option) => `SERVICE_${option}`)) {
        for (const text of texts) {
          const { [name]: _, ...others } = env;
          for (const given of [
            { ...env, [name]: text },
            { ...others, [`${name}_FILE`]: text },
          ]) {
            const io = commandIo(given);
            await run(['--offline'], io, LIMITS);
            const printed = io.printed() + io.complained();
            expect(printed).toMatch(/ok, \d+ warnings?,/);
            expect(secretsIn(printed, { privateKey, inBase64 })).toEqual([]);
          }
        }
      }
    });

    it('asks for a token of the customer that is named', async () => {
      const simulator = await startSimulator();
      const io = commandIo(simulator.env({ authentication: 'oauth' }));
      expect(await run(['--customer', 'c-1'], io, LIMITS)).toBe(0);
      expect(simulator.tokenRequests.at(-1)?.body).toContain('scope=customer.c-1');
    });

    it('says that the token endpoint refuses that customer', async () => {
      const simulator = await startSimulator();
      const ofCustomer = ({ body }: { body: string }): boolean => body.includes('customer.');
      simulator.fail({ when: ofCustomer, fault: { status: 400, json: { error: 'invalid_scope' } } });
      const io = commandIo(simulator.env({ authentication: 'oauth' }));
      expect(await run(['--customer', 'c-1'], io, LIMITS)).toBe(1);
      expect(io.printed()).toMatch(/^failed +token\.customer .*invalid_scope.*\n +-> \w/m);
    });

    it('has colours and progress on a terminal, and not with NO_COLOR', async () => {
      const simulator = await startSimulator();
      const terminal = commandIo(simulator.env(), { isTerminal: true });
      await run([], terminal, LIMITS);
      expect(terminal.printed()).toContain('\u001b[32mok');
      expect(terminal.complained()).toContain('api.connection ...');
      const plain = commandIo({ ...simulator.env(), NO_COLOR: '1' }, { isTerminal: true });
      await run(['--offline'], plain, LIMITS);
      expect(plain.printed()).not.toContain('\u001b');
    });

    it('has a row for an app token that the LinkSDK lacks', async () => {
      const simulator = await startSimulator();
      const { SERVICE_APP_TOKEN: _, ...variables } = simulator.env({ authentication: 'oauth' });
      const io = commandIo(variables);
      expect(await run(['--offline'], io, LIMITS)).toBe(0);
      expect(io.printed()).toMatch(
        /^warning +SERVICE_APP_TOKEN +Is not set, .*LinkSDK needs it.*\n +-> Set SERVICE_APP_TOKEN or/m,
      );
      const answered = commandIo({ ...variables, SERVICE_LINK_SDK_INCLUDE_APP_TOKEN: 'false' });
      expect(await run(['--offline'], answered, LIMITS)).toBe(0);
      expect(answered.printed()).not.toMatch(/SERVICE_APP_TOKEN /);
      const asked = commandIo({ ...variables, SERVICE_SEND_APP_TOKEN_WITH_BEARER: 'true' });
      expect(await run(['--offline'], asked, LIMITS)).toBe(1);
      expect(asked.printed()).toMatch(
        /^failed +SERVICE_APP_TOKEN +Is missing: .*\(SERVICE_SEND_APP_TOKEN_WITH_BEARER\) needs it\.\n +-> Set SERVICE_APP_TOKEN or/m,
      );
    });

    it('names the variable that says that public roots are meant, in the row of a chain that is not set', async () => {
      const simulator = await startSimulator();
      const env = simulator.env({ environment: 'sandbox', authentication: 'mtls' });
      const withoutChain = Object.entries(env).filter(([name]) => !name.startsWith('SERVICE_TLS_CHAIN'));
      const io = commandIo(Object.fromEntries(withoutChain));
      expect(await run(['--offline'], io, LIMITS)).toBe(0);
      expect(io.printed()).toMatch(
        /^warning +SERVICE_TLS_CHAIN +Is not set: .*tls\.publicRoots \(SERVICE_TLS_PUBLIC_ROOTS\)/m,
      );
    });

    it('reads an env file as ConfigModule does: what the environment has counts first', async () => {
      const simulator = await startSimulator();
      const { SERVICE_APP_TOKEN, ...variables } = simulator.env({ environment: 'production' });
      const lines = Object.entries(variables).map(([name, value]) => `${name}="${value}"`);
      const folder = await mkdtemp(join(tmpdir(), 'doctor-'));
      const file = join(folder, 'prod.env');
      const more = ['SERVICE_APP_TOKEN=of-the-file', 'NO_PROXY=of.the.file', '# x'];
      await writeFile(file, [...lines, ...more].join('\n'));
      const { NO_PROXY } = process.env;
      delete process.env.NO_PROXY;
      const before = { ...process.env };
      try {
        const io = commandIo({ SERVICE_APP_TOKEN });
        expect(await run(['--env-file', file], io, LIMITS)).toBe(0);
        expect(io.printed()).toMatch(/^ok +SERVICE_APP_TOKEN +set; not shown here \(the environment\)$/m);
        expect(io.printed()).toContain(`production (${file})`);
        // Only the variables of proxies, as ConfigModule has it.
        expect({ ...process.env }).toStrictEqual({ ...before, NO_PROXY: 'of.the.file' });
      } finally {
        delete process.env.NO_PROXY;
        if (NO_PROXY !== undefined) process.env.NO_PROXY = NO_PROXY;
        await rm(folder, { recursive: true });
      }
    });

    it('checks a named module', async () => {
      const simulator = await startSimulator();
      const io = commandIo(simulator.env({ name: 'ksa' }));
      expect(await run(['--name', 'ksa'], io, LIMITS)).toBe(0);
      expect(io.printed()).toMatch(/^ok +SERVICE_KSA_BASE_URL /m);
    });
  });

  describe('ends with 2 for wrong usage', () => {
    for (const [what, args, words] of [
      [
        'an env file that is not there',
        ['--env-file', '/no/such/prod.env'],
        /\/no\/such\/prod\.env cannot be read \(ENOENT\)/,
      ],
      ['an env file that is a folder', ['--env-file', tmpdir()], /cannot be read \(not a regular file\)/],
      ['a name of no module', ['--name', 'k s a'], /--name/],
      ['an id of no customer', ['--customer', 'a b'], /--customer/],
    ] as const) {
      it(what, async () => {
        const io = commandIo();
        expect(await runCommand(['doctor', ...args], io)).toBe(2);
        expect(io.complained()).toMatch(words);
        expect(io.printed()).toBe('');
      });
    }
  });

  it.each(['hunter', '12345678', 'deadbeef01', 'k4X.9Zt', 'k4X:9Zt'])(
    'shows nothing of a token that stands in the variable of an address: %s',
    async (token) => {
      const urls = ['SANDBOX_URL', 'BASE_URL', 'AUTH_URL', 'SANDBOX_AUTH_URL', 'SANDBOX_MTLS_URL'];
      const io = commandIo({
        ...Object.fromEntries(urls.map((name) => [`SERVICE_${name}`, token])),
        SERVICE_APP_TOKEN: 'a1',
      });
      expect(await run(['--offline'], io, LIMITS)).toBe(1);
      expect(io.printed()).toMatch(
        /^failed +SERVICE_SANDBOX_URL +(Is not an absolute URL|Must begin with https)/m,
      );
      expect(io.printed()).not.toContain(token);
    },
  );

  it('writes the name of a host as it is set, and counts one warning', async () => {
    const io = commandIo({
      SERVICE_ENVIRONMENT: 'sandbox',
      SERVICE_AUTHENTICATION: 'oauth',
      SERVICE_SANDBOX_URL: 'https://sandbox.service.example',
      SERVICE_SANDBOX_AUTH_URL: 'https://auth.service.example',
      SERVICE_CLIENT_ID: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52',
      SERVICE_CLIENT_SECRET: 's3cret',
    });
    expect(await run(['--offline'], io, LIMITS)).toBe(0);
    expect(io.printed()).toMatch(/^ok +SERVICE_SANDBOX_URL +https:\/\/sandbox\.service\.example /m);
    expect(io.printed()).toMatch(/ ok, 1 warning, 0 failed/);
  });

  it('names the file and its variable where a file is at fault, and connects to nothing', async () => {
    const io = commandIo({
      SERVICE_SANDBOX_URL: 'https://sandbox.bank',
      SERVICE_APP_TOKEN_FILE: '/no/such/app-token',
    });
    expect(await run([], io, LIMITS)).toBe(1);
    expect(io.printed()).toMatch(
      /^failed {3}SERVICE_APP_TOKEN_FILE {13}.*\n {9}-> Correct the file, or SERVICE_APP_TOKEN_FILE in the environment\.\n/m,
    );
    expect(io.printed()).toMatch(/^skipped +api +The configuration comes first\.\n\n/m);
  });

  describe('without variables', () => {
    let folder: string;
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'doctor-'));
    });
    afterEach(() => rm(folder, { recursive: true }));

    const remedyOf = async (...args: string[]): Promise<string> => {
      const io = commandIo({}, { cwd: folder });
      expect(await run(['--offline', '--json', ...args], io)).toBe(1);
      const { checks } = JSON.parse(io.printed()) as Examined;
      const [{ name, remedy = '' }] = checks.filter(({ status }) => status === 'failed');
      expect(name).toBe('variables');
      return remedy;
    };

    it('says what the simulator writes, and what takes it', async () => {
      expect(await remedyOf()).toMatch(
        /simulator writes service-simulator\/\.env, .* --env-file service-simu/,
      );
      expect(await remedyOf('--name', 'ksa')).not.toContain('simulator');
    });
  });

  it.each([
    ['no key', {}],
    ['a key file that is missing', { SERVICE_TLS_PRIVATE_KEY_FILE: '/no/such/key.pem' }],
    ['a key that is no PEM', { SERVICE_TLS_PRIVATE_KEY: 'no PEM' }],
  ])('does not show a secret that was given as the name of its file: %s', async (_, key) => {
    const certificate = { SERVICE_TLS_CERTIFICATE_FILE: '/no/such/app.crt' };
    const io = commandIo({ ...certificate, ...key, SERVICE_TLS_PASSPHRASE_FILE: 'hunter2hunter2' });
    expect(await run(['--offline'], io, LIMITS)).toBe(1);
    expect(io.printed()).toMatch(/^failed +SERVICE_TLS_PASSPHRASE_FILE +Names a file that cannot be read/m);
    expect(io.printed()).not.toContain('hunter2');
  });

  it('shows the path of a file that it has read only where that cannot be a secret', async () => {
    const io = commandIo({ SERVICE_TLS_PASSPHRASE_FILE: 'LICENSE', SERVICE_TLS_CHAIN_FILE: 'sub/none.pem' });
    await run(['--offline'], io, LIMITS);
    expect(io.printed()).toMatch(/^ok +SERVICE_TLS_PASSPHRASE_FILE +a file; its path is not shown here \(/m);
  });

  it('warns of a certificate that expires soon', async () => {
    const simulator = await ServiceSimulator.start({ certificates: { applicationLifetime: 5 * 86_400 } });
    const variables = simulator.env();
    await simulator.stop();
    const io = commandIo({ ...variables, SERVICE_BASE_URL: 'https://api.sandbox.bank' });
    expect(await run(['--offline'], io, LIMITS)).toBe(0);
    expect(io.printed()).toMatch(/^warning +SERVICE_TLS_CERTIFICATE .* [45] days left/m);
  });

  it('names the certificates that stand after that of the application', async () => {
    const root = await issue('Root', { ca: true });
    const intermediate = await issue('Intermediate', { ca: true, issuer: root });
    const own = await issue('app', { issuer: intermediate });
    const rowOf = async (...sent: Issued[]): Promise<string> => {
      const io = commandIo({
        SERVICE_ENVIRONMENT: 'production',
        SERVICE_BASE_URL: 'https://api.bank',
        SERVICE_APP_TOKEN: 'a1',
        SERVICE_TLS_CERTIFICATE: sent.map(({ certificate }) => certificate).join(''),
        SERVICE_TLS_PUBLIC_ROOTS: 'true',
        SERVICE_TLS_PRIVATE_KEY: own.key,
      });
      await run(['--offline'], io, LIMITS);
      return /^\w+ +SERVICE_TLS_CERTIFICATE .*/m.exec(io.printed())?.[0] ?? io.printed();
    };
    expect(await rowOf(own)).toMatch(/^ok .* days left\.( \(.*\))?$/);
    expect(await rowOf(own, intermediate, root)).toMatch(
      /^ok .* days left\. After it stand "CN=Intermediate", "CN=Root"\./,
    );
  });

  onlyInSoak(it)('ends as a process where something still holds that', async () => {
    const [node = '', ...args] = commandLine(['doctor', '--help']);
    const preload = 'data:text/javascript,setInterval(() => {}, 1_000)';
    const child = spawn(node, ['--import', preload, ...args], { stdio: 'ignore' });
    try {
      expect(await once(child, 'exit')).toEqual([0, null]);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('runs as a process, and its output can be piped', async () => {
    const simulator = await startSimulator();
    try {
      const child = startCommand(['doctor', '--json'], { env: simulator.env() });
      const { code } = await child.exited;
      const { ok, checks } = JSON.parse(child.output()) as Examined;
      expect({ code, ok }).toEqual({ code: 0, ok: true });
      expect(checks).toContainEqual(expect.objectContaining({ name: 'api.banks', status: 'ok' }));
    } finally {
      await simulator.stop();
    }
  });
});
