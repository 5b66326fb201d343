import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { BanksService, ServiceConfigurationError, ServiceModule, ServiceStartupError } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { run } from '../../lib/cli/doctor.js';
import { watchClock } from '../../lib/cli/doctor/connections.js';
import { judgeClientCertificate, judgeServer, shakeHands } from '../../lib/cli/doctor/handshake.js';
import { type DoctorReport } from '../../lib/cli/doctor/report.js';
import { runCommand } from '../../lib/cli/run-command.js';
import { type ServiceModuleOptions } from '../../lib/config/options.js';
import { resolveOptions } from '../../lib/config/resolve-options.js';
import { Secret } from '../../lib/config/secret.js';
import { reportStart, checkStart } from '../../lib/engine/lifecycle.js';
import { type CertificateSummary } from '../../lib/errors/index.js';
import { type ExchangeRequest, type ExchangeResponse } from '../../lib/exchange/io.js';
import { SILENT } from '../../lib/telemetry/telemetry.js';
import { summarize } from '../../lib/tls/certificate-summary.js';
import { type LoadedIdentity } from '../../lib/tls/material/check-identity.js';
import { BROKEN_SETUPS, setupsOfBlock } from '../helpers/broken-setups.js';
import { createAuthority, issue, type Authority, type Issued } from '../helpers/certificates.js';
import { commandIo } from '../helpers/command-io.js';
import { startConnectProxy } from '../helpers/connect-proxy.js';
import { makeClient } from '../helpers/make-client.js';
import { MODES } from '../helpers/modes.js';
import { CollectingLogger, everyForm, secretsIn } from '../helpers/secret-scan.js';
import { simulatorsOfBlock } from '../helpers/simulators.js';
import { startCommand } from '../helpers/source-process.js';
import { modulesOfBlock, rejection } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';
import { onBun } from '../helpers/on-bun.js';
import { mtlsServer, type MtlsServerOptions } from '../helpers/mtls-server.js';
import { withoutRights } from '../helpers/without-rights.js';

const DAY_MS = 86_400_000;
const LIMITS = { stepMs: 10_000, totalMs: 20_000 };
const OAUTH = { environment: 'production', authentication: 'oauth' } as const;

const startSimulator = simulatorsOfBlock();
const { start, setVariables } = modulesOfBlock();

const secretsOf = ({ appToken, clientSecret, application }: ServiceSimulator) => ({
  appToken,
  clientSecret,
  privateKey: application.privateKey,
});

describe('The doctor and the start-up check of a broken set-up', () => {
  const withSetup = setupsOfBlock();

  it.each(Object.entries(BROKEN_SETUPS))('name the true cause: %s', async (_what, setup) => {
    // Otherwise the fault is in the variables.
    const isOfConnection = setup.cause.includes('.');
    await withSetup(setup, async (variables, simulator) => {
      const secrets = { ...secretsOf(simulator), passwords: 's3cret-' };
      const io = commandIo(variables);
      const code = await run(['--json'], io, { ...LIMITS, stepMs: setup.stepMs ?? 5_000 });
      const { ok, checks } = JSON.parse(io.stdout()) as DoctorReport;
      expect({ ok, code }).toEqual({ ok: false, code: 1 });
      const failures = checks.filter(({ status }) => status === 'failed');
      expect(failures[0]).toEqual({
        name: setup.cause,
        status: 'failed',
        message: expect.stringMatching(setup.words),
        remedy: expect.stringMatching(/\w{3}.*\.$/),
      });
      // The doctor does not report the consequences of this failure as further failures.
      if (isOfConnection) expect(failures).toHaveLength(1);
      expect(secretsIn(io.stdout() + io.stderr(), secrets)).toEqual([]);

      setVariables({
        ...(Object.keys(variables).length > 0 && { SERVICE_STARTUP_CHECK: 'fail' }),
        // One attempt, so that the test does not wait.
        ...(isOfConnection && { SERVICE_HTTP_RETRIES: '0' }),
        ...(setup.stepMs && { SERVICE_HTTP_TIMEOUT: String(setup.stepMs) }),
        ...variables,
      });
      const logger = new CollectingLogger();
      const error = await rejection(start({ imports: [ServiceModule.forRoot()] }, logger));
      expect(error).toBeInstanceOf(ServiceConfigurationError);
      const { message, faults, code: errorCode } = error as ServiceConfigurationError;
      expect(message.replace(/\n/g, ' ')).toMatch(new RegExp(setup.wordsAtStart ?? setup.words, 'i'));
      if (isOfConnection) {
        expect(errorCode).toBe('startup_check_failed');
        // The start-up check makes two calls, and checks nothing else.
        const check = setup.cause.startsWith('token') ? 'token.api' : 'api.banks';
        expect(message).toContain(`(${check})`);
        const text = expect.any(String);
        const variable = expect.stringMatching(/^SERVICE_/);
        expect(faults).toEqual([{ option: text, variable, message: text }]);
      }
      expect(secretsIn(everyForm(error) + everyForm(logger.lines), secrets)).toEqual([]);
    });
  });
});

/** Runs the doctor, and checks its exit code. Returns its output. */
async function printed(code: 0 | 1, args: string[], io = commandIo()): Promise<string> {
  expect(await run(args, io, LIMITS)).toBe(code);
  return io.stdout();
}

describe('The doctor of a set-up that works', () => {
  it.each(Object.entries(MODES))('exits with 0, and shows no secret: %s', async (_mode, options) => {
    const simulator = await startSimulator();
    const io = commandIo(simulator.env(options));
    const output = await printed(0, [], io);
    expect(output).toMatch(/\n\d+ ok, \d+ warnings?, 0 failed, \d+ skipped\.\n$/);
    expect(output).toMatch(/^ok +api\.banks +GET \/banks\/v1 answered with JSON/m);
    const isShown = /^ok +token-endpoint\.client-certificate +The server asked .*, and did not refuse "CN=/m;
    expect(isShown.test(output)).toBe('oauthMtls' in options);
    expect(io.stderr()).toBe('');
    expect(secretsIn(output, { ...secretsOf(simulator), tokens: 'eyJ' })).toEqual([]);
    // One request of each kind, and no customer.
    const tokens = simulator.tokenRequests.map(({ body }) => new URLSearchParams(body).get('scope'));
    expect(tokens).toEqual(tokens.length === 0 ? [] : ['api']);
    expect(simulator.apiRequests.map(({ path }) => path)).toEqual(['/banks/v1']);
    expect(simulator.customers).toEqual([]);
  });

  it('makes no call without a bearer if the token endpoint says to wait', async () => {
    const simulator = await startSimulator();
    simulator.fail({ path: '/oauth2/token', times: Infinity, fault: { status: 429 } });
    expect(await printed(0, [], commandIo(simulator.env(OAUTH)))).toMatch(
      /^skipped +api\.banks +.* issues no token/m,
    );
    expect(simulator.requests.map(({ path }) => path)).not.toContain('/banks/v1');
  });

  it('opens no connection with --offline', async () => {
    const simulator = await startSimulator();
    expect(await printed(0, ['--offline'], commandIo(simulator.env()))).not.toMatch(/ api\./);
    expect([simulator.handshakes.base.total, simulator.requests]).toEqual([0, []]);
  });

  it('requests a token of the customer in --customer, and reports that the endpoint refuses it', async () => {
    const simulator = await startSimulator();
    const io = () => commandIo(simulator.env({ authentication: 'oauth' }));
    await printed(0, ['--customer', 'c-1'], io());
    expect(simulator.tokenRequests.at(-1)?.body).toContain('scope=customer.c-1');
    const ofCustomer = ({ body }: { body: string }): boolean => body.includes('customer.');
    simulator.fail({ when: ofCustomer, fault: { status: 400, json: { error: 'invalid_scope' } } });
    expect(await printed(1, ['--customer', 'c-1'], io())).toMatch(
      /^failed +token\.customer .*invalid_scope.*\n +-> The endpoint does not know this customer in this environment/m,
    );
  });

  it('prints colours and progress on a terminal, and none with NO_COLOR', async () => {
    const simulator = await startSimulator();
    const terminal = commandIo(simulator.env(), { isTerminal: true });
    expect(await printed(0, [], terminal)).toContain('\u001b[32mok');
    expect(terminal.stderr()).toContain('api.connection ...');
    const plain = commandIo({ ...simulator.env(), NO_COLOR: '1' }, { isTerminal: true });
    expect(await printed(0, ['--offline'], plain)).not.toContain('\u001b');
  });

  it('has a row for an app token that LinkSDK sessions lack', async () => {
    const simulator = await startSimulator();
    const { SERVICE_APP_TOKEN: _, ...variables } = simulator.env({ authentication: 'oauth' });
    const offline = (code: 0 | 1, more: Record<string, string> = {}) =>
      printed(code, ['--offline'], commandIo({ ...variables, ...more }));
    expect(await offline(0)).toMatch(
      /^warning +SERVICE_APP_TOKEN +Is not set, .*every LinkSDK session needs it.*\n +-> Set SERVICE_APP_TOKEN or/m,
    );
    expect(await offline(0, { SERVICE_LINK_SDK_INCLUDE_APP_TOKEN: 'false' })).not.toMatch(
      /SERVICE_APP_TOKEN /,
    );
    expect(await offline(1, { SERVICE_SEND_APP_TOKEN_WITH_BEARER: 'true' })).toMatch(
      /^failed +SERVICE_APP_TOKEN +Is missing: .*\(SERVICE_SEND_APP_TOKEN_WITH_BEARER\) needs it\.\n +-> Set SERVICE_APP_TOKEN or/m,
    );
  });

  it('names SERVICE_TLS_PUBLIC_ROOTS in the row of a chain that is not set', async () => {
    const simulator = await startSimulator();
    const { SERVICE_TLS_CHAIN: _, ...variables } = simulator.env({
      environment: 'sandbox',
      authentication: 'mtls',
    });
    expect(await printed(0, ['--offline'], commandIo(variables))).toMatch(
      /^warning +SERVICE_TLS_CHAIN +Is not set, .*tls\.publicRoots \(SERVICE_TLS_PUBLIC_ROOTS\)/m,
    );
  });

  it('reads an env file as ConfigModule does, with variables of the environment first', async () => {
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
      const output = await printed(0, ['--env-file', file], commandIo({ SERVICE_APP_TOKEN }));
      expect(output).toMatch(/^ok +SERVICE_APP_TOKEN +set; not shown here \(the environment\)$/m);
      expect(output).toContain(`production (${file})`);
      // Only the proxy variables, as ConfigModule reads them.
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
    expect(await printed(0, ['--name', 'ksa'], io)).toMatch(/^ok +SERVICE_KSA_BASE_URL /m);
  });

  it('runs as a process whose output can be piped, and exits although something keeps it running', async () => {
    const simulator = await startSimulator();
    const preload = 'data:text/javascript,setInterval(()=>{},1_000)';
    const env = { ...simulator.env(), NODE_OPTIONS: `--import=${preload}` };
    const child = startCommand(['doctor', '--json'], { env });
    try {
      const { code } = await child.exited;
      const { ok, checks } = JSON.parse(child.output()) as DoctorReport;
      expect({ code, ok }).toEqual({ code: 0, ok: true });
      expect(checks).toContainEqual(expect.objectContaining({ name: 'api.banks', status: 'ok' }));
    } finally {
      await child.kill();
    }
  });
});

describe('The doctor without connections', () => {
  it.each([
    [
      'an env file that is not there',
      ['--env-file', '/no/such/prod.env'],
      /prod\.env cannot be read \(ENOENT\)/,
    ],
    ['an env file that is a folder', ['--env-file', tmpdir()], /cannot be read \(not a regular file\)/],
    ['a name of no module', ['--name', 'k s a'], /--name/],
    ['an id of no customer', ['--customer', 'a b'], /--customer/],
  ])('exits with 2 for wrong usage: %s', async (_what, args, words) => {
    const io = commandIo();
    expect(await runCommand(['doctor', ...args], io)).toBe(2);
    expect(io.stderr()).toMatch(words);
    expect(io.stdout()).toBe('');
  });

  it('prints nothing of a private key, whatever values are swapped', async () => {
    const simulator = await startSimulator();
    const env = simulator.env();
    const { privateKey } = simulator.application;
    const base64 = Buffer.from(privateKey).toString('base64');
    const texts = [privateKey, privateKey.replaceAll('\n', '\\n'), privateKey.replaceAll('\n', '')];
    texts.push(base64, privateKey.slice(40, 100));
    for (const option of ['TLS_CERTIFICATE', 'TLS_PRIVATE_KEY', 'TLS_PASSPHRASE', 'TLS_CHAIN', 'APP_TOKEN']) {
      const { [`SERVICE_${option}`]: _, ...others } = env;
      for (const text of texts) {
        for (const name of [option, `${option}_FILE`]) {
          const io = commandIo({ ...others, [`SERVICE_${name}`]: text });
          await run(['--offline'], io, LIMITS);
          const output = io.stdout() + io.stderr();
          expect(output).toMatch(/ok, \d+ warnings?,/);
          expect(secretsIn(output, { privateKey, inBase64: base64.slice(40, 100) })).toEqual([]);
        }
      }
    }
  });

  it.each(['hunter', '12345678', 'deadbeef01', 'k4X.9Zt', 'k4X:9Zt'])(
    'shows nothing of a token in the variable of an address: %s',
    async (token) => {
      const urls = ['SANDBOX_URL', 'BASE_URL', 'AUTH_URL', 'SANDBOX_AUTH_URL', 'SANDBOX_MTLS_URL'];
      const given = Object.fromEntries(urls.map((name) => [`SERVICE_${name}`, token]));
      const output = await printed(1, ['--offline'], commandIo({ ...given, SERVICE_APP_TOKEN: 'a1' }));
      expect(output).toMatch(/^failed +SERVICE_SANDBOX_URL +(Is not an absolute URL|Must begin with https)/m);
      expect(output).not.toContain(token);
    },
  );

  it('does not show a secret that was set as the name of its file, or a path that may be a secret', async () => {
    const certificate = { SERVICE_TLS_CERTIFICATE_FILE: '/no/such/app.crt' };
    const io = commandIo({ ...certificate, SERVICE_TLS_PASSPHRASE_FILE: 'hunter2hunter2' });
    const output = await printed(1, ['--offline'], io);
    expect(output).toMatch(/^failed +SERVICE_TLS_PASSPHRASE_FILE +Names a file that cannot be read/m);
    expect(output).not.toContain('hunter2');
    const read = { SERVICE_TLS_PASSPHRASE_FILE: 'LICENSE', SERVICE_TLS_CHAIN_FILE: 'sub/none.pem' };
    expect(await printed(1, ['--offline'], commandIo(read))).toMatch(
      /^ok +SERVICE_TLS_PASSPHRASE_FILE +a file; its path is not shown here \(/m,
    );
  });

  it('prints a host name as it is configured, and counts one warning', async () => {
    const io = commandIo({
      SERVICE_ENVIRONMENT: 'sandbox',
      SERVICE_AUTHENTICATION: 'oauth',
      SERVICE_SANDBOX_URL: 'https://sandbox.service.example',
      SERVICE_SANDBOX_AUTH_URL: 'https://auth.service.example',
      SERVICE_CLIENT_ID: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52',
      SERVICE_CLIENT_SECRET: 's3cret',
    });
    const output = await printed(0, ['--offline'], io);
    expect(output).toMatch(/^ok +SERVICE_SANDBOX_URL +https:\/\/sandbox\.service\.example /m);
    expect(output).toMatch(/ ok, 1 warning, 0 failed/);
  });

  it('names the file and its variable if a file is at fault, and opens no connection', async () => {
    const io = commandIo({
      SERVICE_SANDBOX_URL: 'https://sandbox.bank',
      SERVICE_APP_TOKEN_FILE: '/no/such/app-token',
    });
    const output = await printed(1, [], io);
    expect(output).toMatch(
      /^failed {3}SERVICE_APP_TOKEN_FILE {13}.*\n {9}-> Correct the file, or SERVICE_APP_TOKEN_FILE in the environment\.\n/m,
    );
    expect(output).toMatch(/^skipped +api +.* configuration is not valid yet\.\n\n/m);
  });

  it('says to whom a file belongs that the user of the doctor may not read, an env file too; and as root, that others may not', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'doctor-'));
    const file = join(folder, 'app-token');
    await writeFile(file, 'app-token');
    const variables = { SERVICE_SANDBOX_URL: 'https://sandbox.bank', SERVICE_APP_TOKEN_FILE: file };
    const io = () => commandIo(variables, { cwd: folder });
    const asRoot =
      /^ok +user +The doctor runs as root, who may read every file\. .*run the doctor as that user too\.$/m;
    const geteuid = jest.spyOn(process as Required<typeof process>, 'geteuid').mockReturnValue(0);
    expect(await printed(0, ['--offline'], io())).toMatch(asRoot);
    const { SERVICE_APP_TOKEN_FILE: _, ...noFile } = variables;
    const none = commandIo({ ...noFile, SERVICE_APP_TOKEN: 'app-token' });
    expect(await printed(0, ['--offline'], none)).not.toMatch(asRoot);
    geteuid.mockReturnValue(1000);
    expect(await printed(0, ['--offline'], io())).not.toMatch(asRoot);
    geteuid.mockRestore();
    await chmod(folder, 0o755);
    for (const name of ['app-token', '.env']) {
      await writeFile(join(folder, name), '');
      await chmod(join(folder, name), 0o000);
    }
    const access =
      /\(EACCES\)\. It belongs to user \d+ and group \d+, and its mode is 0000\. This process runs as user \d+, in the groups/;
    await withoutRights(async () => {
      const elsewhere = commandIo(variables, { cwd: '/' });
      expect(await printed(1, ['--offline'], elsewhere)).toMatch(access);
      await expect(run(['--offline'], io(), LIMITS)).rejects.toThrow(access);
    });
    await rm(folder, { recursive: true });
  });

  it('explains without variables what the simulator writes, and how to use it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'doctor-'));
    const none = (...args: string[]) => printed(1, ['--offline', ...args], commandIo({}, { cwd: folder }));
    expect(await none()).toMatch(
      /^failed +variables .*\n.*simulator: it writes service-simulator\/\.env\. .* --env-file service-simu/m,
    );
    expect(await none('--name', 'ksa')).not.toContain('simulator');
    await rm(folder, { recursive: true });
  });

  it('names at most ten certificates of a chain, and one that has expired', async () => {
    const old = { notBefore: new Date(0), notAfter: new Date(DAY_MS), ca: true };
    const roots = await Promise.all(Array.from({ length: 13 }, (_, index) => issue(`Root-${index}`, old)));
    const valid = await issue('Valid', { ca: true });
    const io = commandIo({
      SERVICE_SANDBOX_URL: 'https://api.bank',
      SERVICE_APP_TOKEN: 'a1',
      SERVICE_TLS_CHAIN: [...roots, valid].map(({ certificate }) => certificate).join(''),
    });
    expect(await printed(0, ['--offline'], io)).toMatch(
      /^warning +SERVICE_TLS_CHAIN .*"CN=Root-9" \(valid to \S+\), and 4 more\. "CN=Root-0" has expired or expires soon, and so have 12 more\.$/m,
    );
  });

  it('says that it does not expand a $ in an env file, as expandVariables of ConfigModule does', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'doctor-'));
    await writeFile(join(folder, '.env'), "SERVICE_CLIENT_SECRET='pa$word'\nSERVICE_CLIENT_ID=plain\n");
    const rowsWith = async (variables: Record<string, string>) => {
      const io = commandIo(variables, { cwd: folder });
      return (await printed(1, ['--offline'], io)).match(/^ok +variables .*/gm);
    };
    expect(await rowsWith({})).toEqual([
      expect.stringMatching(
        / SERVICE_CLIENT_SECRET: .* contains a \$\. The doctor does not expand variables\. .*\(expandVariables\).* \\\$ for a literal \$\.$/,
      ),
    ]);
    // Variables that are already set in the process keep their values.
    expect(await rowsWith({ SERVICE_CLIENT_SECRET: 'pa$word' })).toBeNull();
    await rm(folder, { recursive: true });
  });

  it('names the certificates after that of the application, and warns of the first one to expire', async () => {
    const root = await issue('Root', { ca: true });
    const intermediate = await issue('Intermediate', { ca: true, issuer: root });
    const notAfter = new Date(Date.now() + 5.5 * DAY_MS);
    const ending = await issue('Ending', { ca: true, issuer: root, notBefore: new Date(0), notAfter });
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
      return /^\w+ +SERVICE_TLS_CERTIFICATE .*/m.exec(await printed(0, ['--offline'], io))?.[0] ?? 'none';
    };
    expect(await rowOf(own)).toMatch(/^ok .* days left\.( \(.*\))?$/);
    expect(await rowOf(own, intermediate, root)).toMatch(
      /^ok .* days left\. Sent after it: "CN=Intermediate", "CN=Root"\./,
    );
    const date = notAfter.toISOString().slice(0, 10);
    expect(await rowOf(own, intermediate, ending)).toMatch(
      new RegExp(
        `^warning .* days left\\. Sent after it: .*"CN=Ending" \\(SHA-256 [\\w:]+\\) expires on ${date}T`,
      ),
    );
  });
});

const place = {
  host: 'api.bank',
  port: 443,
  option: 'urls.baseUrl',
  url: new URL('https://api.bank'),
  server: 'api' as const,
  chain: [],
  describeOption: (option: string) => option,
};

describe('A handshake shows whether the server asks for a client certificate', () => {
  const [OLD, NEW] = (['TLSv1.2', 'TLSv1.3'] as const).map((version) => ({
    minVersion: version,
    maxVersion: version,
  }));
  const WAYS: [string, MtlsServerOptions][] = [
    ['TLS 1.2', OLD],
    ['TLS 1.3', NEW],
    ['TLS 1.3 with a hello retry request', { ...NEW, ecdhCurve: 'P-384' }],
  ];
  let authority: Authority;
  let ours: Issued;
  let foreign: Issued;
  const closes: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    authority = await createAuthority();
    ours = await authority.client('app');
    foreign = await (await createAuthority('Other')).client('app');
  });
  afterEach(() => Promise.all(closes.splice(0).map((close) => close())));

  /** Shakes hands with a server, as itself and through a proxy; what both showed. */
  async function shake(options: MtlsServerOptions, offered: Issued | undefined) {
    const [server, proxy] = await Promise.all([mtlsServer(authority, options), startConnectProxy()]);
    closes.push(server.close, () => proxy.stop());
    const pair: SecureContextOptions = offered ? { cert: offered.certificate, key: offered.key } : {};
    const context = createSecureContext({ ca: authority.chain, ...pair });
    const target = { host: '127.0.0.1', port: server.port };
    return Promise.all([
      shakeHands(target, context, 5_000),
      shakeHands({ ...target, proxy: new Secret(proxy.url) }, context, 5_000),
    ]);
  }

  it('as unknown on Bun, whose list of shared signature algorithms is always empty', async () => {
    const server = { requestCert: true, rejectUnauthorized: false };
    for (const facts of await onBun('1.4.5', () => shake(server, ours))) {
      expect(facts.established).toBe(true);
      expect(facts.askedForCertificate).toBeUndefined();
    }
  });

  it.each(WAYS)('over %s, if it asks for none or accepts any', async (_, way) => {
    for (const requestCert of [false, true]) {
      for (const offered of [undefined, ours, foreign]) {
        for (const facts of await shake({ ...way, requestCert, rejectUnauthorized: false }, offered)) {
          expect(facts).toMatchObject({ established: true, askedForCertificate: requestCert });
          expect(facts.fault).toBeUndefined();
        }
      }
    }
  });

  it.each(WAYS)('over %s, if it refuses', async (_, way) => {
    const demands = { ...way, requestCert: true, rejectUnauthorized: true };
    for (const facts of await shake(demands, ours)) {
      expect(facts).toMatchObject({ established: true, askedForCertificate: true });
      expect(facts.fault).toBeUndefined();
    }
    // Without a client certificate, the server sends an alert. With a certificate that it does not accept, it ends the connection.
    for (const [offered, message] of [
      [undefined, /^The server asks for a client certificate and none is offered \(/],
      [foreign, /^The server asked for the client certificate and then ended the connection.*"CN=app"/],
    ] as const) {
      const [facts] = await shake(demands, offered);
      expect(facts.askedForCertificate).toBe(true);
      const certificate = offered && summarize(parsed(offered));
      const status = 'failed';
      expect(judgeClientCertificate({ ...place, certificate }, facts)).toMatchObject({
        status,
        message: expect.stringMatching(message),
      });
    }
  });
});

describe('The findings about a handshake', () => {
  const now = Date.now();
  const over = { notBefore: new Date(now - 90 * DAY_MS), notAfter: new Date(now - 9 * DAY_MS) };
  let root: Issued;
  let oldRoot: Issued;
  let namesake: Issued;
  let leaf: Issued;

  beforeAll(async () => {
    root = await issue('Root', { ca: true });
    oldRoot = await issue('Old Root', { ca: true, ...over });
    namesake = await issue('Root', { ca: true });
    leaf = await issue('api', { issuer: root, names: ['api.bank'] });
  });

  const judge = (shown: Issued[], notVerified: string, chain: Issued[]) =>
    judgeServer(
      { ...place, chain: chain.map(parsed) },
      { established: true, notVerified, certificates: shown.map(parsed), askedForCertificate: false },
    );

  it('do not blame an old root that the server sends in addition', () => {
    const shown = [leaf, root, oldRoot];
    const otherName = judge(shown, 'ERR_TLS_CERT_ALTNAME_INVALID', [root]);
    expect(otherName.message).toMatch(/for another host name/);
    const otherChain = judge(shown, 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', [oldRoot]);
    expect(otherChain.message).not.toMatch(/has expired/);
    expect(otherChain.remedy).toContain('tls.chain');
  });

  it('blame an old root if its date is the fault', () => {
    const { message } = judge([leaf, root, oldRoot], 'CERT_HAS_EXPIRED', [root]);
    expect(message).toMatch(/has expired or is not valid yet: "CN=Old Root" expired on/);
  });

  it('blame an expired certificate of the server first', async () => {
    const ended = await issue('api', { issuer: root, ...over });
    const { message } = judge([ended], 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', [namesake]);
    expect(message).toMatch(/has expired or is not valid yet: "CN=api" expired on/);
  });

  it('notice the same name with another key, even if Node adds that of the chain', () => {
    const { message } = judge([leaf, namesake], 'CERT_SIGNATURE_FAILURE', [namesake]);
    expect(message).toMatch(/the same name, but another key/);
  });

  it.each([
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /no version of TLS in common \(ERR_SSL_TLSV1_ALERT_PROTOCOL_/],
    ['ERR_SSL_SSL_TLS_ALERT_HANDSHAKE_FAILURE', /the server ended the TLS handshake/],
  ])('name how it ended: %s', (reason, words) => {
    const fault = { kind: 'tls' as const, reason };
    const { message } = judgeServer(place, { established: false, fault, certificates: [] });
    expect(message).toMatch(words);
  });

  it.each([
    [
      'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
      40,
      true,
      /^The server refused the client certificate: "CN=api"/,
    ],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 40, false, /^The server asked .* Most likely it refused/],
    ['ERR_SSL_SSLV3_ALERT_ILLEGAL_PARAMETER', 47, false, /^The server asked .* Most likely it refused/],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 80, true, /^The server asked .* Most likely it refused/],
  ])(
    'say that the client certificate is refused after %s (%d), with our handshake finished: %s',
    (reason, alert, established, words) => {
      const fault = { kind: 'tls' as const, reason, alert };
      const facts = { established, fault, certificates: [], askedForCertificate: true };
      const finding = judgeClientCertificate({ ...place, certificate: summarize(parsed(leaf)) }, facts);
      expect(finding).toMatchObject({ status: 'failed', message: expect.stringMatching(words) });
      expect(finding.message).toContain(reason);
    },
  );

  it.each([
    ['is requested but not needed', true, / may be optional, .* There is nothing to do /],
    ['may be requested, which Bun does not show', undefined, /does not show whether/],
  ])('say if a client certificate %s', (_what, askedForCertificate, words) => {
    const facts = { established: true, certificates: [], askedForCertificate };
    expect(judgeClientCertificate(place, facts)).toEqual({
      status: 'skipped',
      message: expect.stringMatching(words),
    });
  });

  it.each([
    ['Sat, 01 Jun 2030 00:00:00 GMT', 'ok'],
    ['Sat Jun  1 00:00:00 2030', 'ok'],
    ['Sat, 01 Jun 2030 00:05:00 GMT', 'warning'],
    ['Sat, 01 Jun 2031 00:00:00 GMT', 'warning'],
    // The last moment that a Date can hold, and what no clock shows.
    ['Sat, 13 Sep 275760 00:00:00 GMT', 'skipped'],
    ['\u001b[31m', 'skipped'],
  ])('compare the clock with the Date of responses, %j: %s', async (date, status) => {
    const answer = async () => ({ status: 200, headers: { date } }) as ExchangeResponse;
    const clock = watchClock(answer, () => Date.UTC(2030, 5, 1));
    await clock.exchange({} as ExchangeRequest);
    expect(clock.judge()).toMatchObject({ status });
  });
});

function parsed({ certificate }: Issued): X509Certificate {
  return new X509Certificate(certificate);
}

describe('The start-up check', () => {
  const passed = 'The start-up check passed.';

  async function refusing(startupCheck: 'warn' | 'fail', name?: string) {
    const simulator = await startSimulator();
    const oauth = {
      clientId: simulator.clientId,
      clientSecret: 'wrong-s3cret',
      refresh: 'scheduled' as const,
    };
    const options = { ...simulator.moduleOptions(OAUTH), oauth, name, startupCheck };
    return { simulator, imports: [ServiceModule.forRoot(options)] };
  }

  it('makes one call and one token request, whose token the first call then uses', async () => {
    const simulator = await startSimulator();
    const logger = new CollectingLogger();
    const options = { ...simulator.moduleOptions(OAUTH), startupCheck: 'fail' as const };
    const app = await start({ imports: [ServiceModule.forRoot(options)] }, logger);
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/oauth2/token', '/banks/v1']);
    await app.get(BanksService).list();
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(simulator.handshakes['oauth-base'].total).toBe(1);
    expect(logger.linesOf('ServiceModule')).toContain(passed);
  });

  it('does nothing by default', async () => {
    const simulator = await startSimulator();
    await start({ imports: [ServiceModule.forRoot(simulator.moduleOptions())] });
    expect(simulator.requests).toEqual([]);
  });

  it("with 'fail' lets the application start if a retry succeeds", async () => {
    const simulator = await startSimulator();
    simulator.fail({ path: '/banks/v1', fault: { status: 500 } });
    const logger = new CollectingLogger();
    const options = { ...simulator.moduleOptions(), startupCheck: 'fail' as const };
    await start({ imports: [ServiceModule.forRoot(options)] }, logger);
    expect(logger.linesOf('ServiceModule')).toContain(passed);
  });

  it("with 'warn' only logs the cause and what to do", async () => {
    const logger = new CollectingLogger();
    const { imports } = await refusing('warn');
    await start({ imports }, logger);
    expect(logger.linesOf('ServiceModule')).toContainEqual(
      expect.stringMatching(
        /^The start-up check failed \(token\.api\): .*invalid_client.*Check oauth\.clientSecret/,
      ),
    );
    expect(secretsIn(everyForm(logger.lines), { secret: 'wrong-s3cret' })).toEqual([]);
  });

  it("with 'fail' sends a refused secret once, names the variables of a named module, and leaves nothing running", async () => {
    const { simulator, imports } = await refusing('fail', 'ksa');
    const timers = new TimerCount();
    try {
      const module = await Test.createTestingModule({ imports }).setLogger(new CollectingLogger()).compile();
      const error = await rejection(module.init());
      expect(error).toBeInstanceOf(ServiceStartupError);
      expect((error as ServiceStartupError).faults[0]).toEqual({
        option: 'oauth.clientSecret',
        variable: 'SERVICE_KSA_CLIENT_SECRET',
        message: expect.stringMatching(/SERVICE_KSA_CLIENT_ID/),
      });
      expect(timers.running).toBe(0);
      expect(simulator.tokenRequests).toHaveLength(1);
    } finally {
      timers.restore();
    }
  });

  it('has the time limit of one call for both, at most 15 s, so that a late token leaves the banks a millisecond', async () => {
    type Limit = { timeout?: number };
    const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's3cret' };
    const limits: unknown[] = [];
    const list = async ({ timeout }: Limit) => void limits.push(timeout);
    const late = async (limit: Limit) => {
      await list(limit);
      await new Promise((resolve) => setTimeout(resolve, 60));
    };
    for (const more of [{ oauth, http: { timeout: 50 } }, {}]) {
      const urls = { sandboxUrl: 'https://sandbox.example', sandboxAuthUrl: 'https://auth.example' };
      const { options } = await makeClient({ urls, appToken: 'a', startupCheck: 'fail', ...more });
      await checkStart(options, { getApiToken: late } as never, { list } as never, SILENT);
    }
    expect(limits).toEqual([expect.any(Number), 1, expect.any(Number)]);
    expect(limits[0]).toBeLessThanOrEqual(50);
    expect(limits[2]).toBeLessThanOrEqual(15_000);
    expect(limits[2]).toBeGreaterThan(10_000);
  });
});

describe('The log line at the start', () => {
  const certificate = { subject: 'CN=app, O=Example' } as CertificateSummary;
  const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 'client-secret' };
  const production: ServiceModuleOptions = {
    environment: 'production',
    urls: { baseUrl: 'https://api.example/base/', authUrl: 'https://auth.example/' },
    appToken: 'app-token',
    tls: { certificate: 'PEM', privateKey: 'PEM' },
  };
  const sandbox = { urls: { sandboxUrl: 'https://sandbox.example' }, appToken: 'app-token' };
  const nothing = async () => undefined;

  /** What the report logs: its line, and its warnings. */
  async function reported(
    given: ServiceModuleOptions,
    daysLeft?: number,
    lacksChain = false,
    name?: string,
    keyType = 'P-256',
  ) {
    const { options } = await resolveOptions(given, name);
    const [lines, warnings]: string[][] = [[], []];
    const log = {
      ...SILENT,
      log: (line: string) => lines.push(line),
      warn: (line: string) => warnings.push(line),
    };
    const known = daysLeft === undefined ? undefined : certificate;
    const status = { healthy: true, daysLeft };
    const loaded = { lacksChain } as LoadedIdentity;
    reportStart(options!, { loaded, certificate: known, keyType, status }, log);
    return { lines, warnings };
  }

  it.each([
    [
      sandbox,
      undefined,
      'sandbox, app-token: calls go to https://sandbox.example; no client certificate; no OAuth tokens',
    ],
    [
      { ...production, oauth },
      87,
      'production, mtls: calls go to https://api.example/base; client certificate "CN=app, O=Example", 87 days left; tokens from auth.example, kept in this process',
    ],
    [
      {
        ...production,
        authentication: 'oauth' as const,
        oauth,
        tokenStore: { get: nothing, set: nothing, delete: nothing },
      },
      1,
      'production, oauth: calls go to https://api.example/base; client certificate "CN=app, O=Example", 1 day left; tokens from auth.example, shared through tokenStore',
    ],
    [
      { ...sandbox, http: { proxy: 'http://user:password@proxy.bank:3128' } },
      undefined,
      'sandbox, app-token: calls go to https://sandbox.example through the proxy proxy.bank:3128; no client certificate; no OAuth tokens',
    ],
    [
      production,
      -1,
      'production, mtls: calls go to https://api.example/base; client certificate "CN=app, O=Example", expired; no OAuth tokens',
    ],
  ])('describes the configuration', async (given, daysLeft, line) => {
    expect(await reported(given, daysLeft)).toEqual({ lines: [line], warnings: [] });
  });

  it.each(['secp256k1', 'P-224', 'DSA'])(
    'comes with a warning about a key that TLS 1.3 never sends: %s',
    async (keyType) => {
      const { warnings } = await reported(production, 87, false, 'ksa', keyType);
      expect(warnings).toEqual([
        expect.stringMatching(
          `^tls\\.privateKey \\(SERVICE_KSA_TLS_PRIVATE_KEY\\) is of the type ${keyType}, for which TLS 1\\.3 has no signature`,
        ),
      ]);
    },
  );

  it('comes with a warning about a client certificate without the chain, and about what production will demand', async () => {
    const { warnings } = await reported(sandbox, 87, true, 'ksa');
    expect(warnings).toEqual([
      expect.stringMatching(
        /tls\.chain \(SERVICE_KSA_TLS_CHAIN\).*against Node's public roots\..*in production, the application does not start.*SERVICE_KSA_TLS_PUBLIC_ROOTS/,
      ),
    ]);
  });
});

describe('An application with faulty variables', () => {
  it('reports every fault once, with what to do', async () => {
    setVariables({
      SERVICE_ENVIRONMENT: 'prod',
      SERVICE_AUTHENTICATION: 'mtls',
      SERVICE_BASE_URL: 'https://api.bank',
      SERVICE_APP_TOKEN: 'a1',
      SERVICE_TLS_CERTIFICATE_FILE: '/no/such/application.crt',
      SERVICE_CLIENT_ID: '00000000-0000-4000-8000-000000000000',
      SERVICE_CLIENT_SECRET_FILE: '/no/such/secret',
      SERVICE_HTTP_TIMEOUT: '30s',
      SERVICE_HTTP_PROXY: 'proxy:s3cret',
    });
    const error = await rejection(start({ imports: [ServiceModule.forRoot()] }));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect((error as Error).message.split('\n  - ')).toEqual([
      'The configuration of ServiceModule is not usable:',
      "environment (SERVICE_ENVIRONMENT): must be one of: production, sandbox; it is 'prod'",
      "http.timeout (SERVICE_HTTP_TIMEOUT): must be a whole number of milliseconds from 1 to 86400000; it is '30s'",
      'http.proxy (SERVICE_HTTP_PROXY): must be the URL of a proxy, for example http://proxy.example:3128; or environment or none',
      'oauth.clientSecret (SERVICE_CLIENT_SECRET_FILE): the file /no/such/secret cannot be read (ENOENT).',
      'tls.certificate (SERVICE_TLS_CERTIFICATE_FILE): the file /no/such/application.crt cannot be read (ENOENT).',
      expect.stringMatching(/^tls\.privateKey \(SERVICE_TLS_PRIVATE_KEY\): is missing/),
    ]);
  });

  it('cannot have a module whose name gives one variable two meanings', () => {
    expect(() => ServiceModule.forRoot({ name: 'sandbox' })).toThrow(
      /- name: cannot be 'sandbox': SERVICE_SANDBOX_AUTH_URL is also a variable/,
    );
  });
});
