import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger, type LoggerService } from '@nestjs/common';
import axios from 'axios';
import { execFile } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import {
  BanksService,
  createServiceClient,
  ServiceAuthService,
  ServiceCertificateError,
  ServiceConnectionError,
  type ServiceError,
  type ServiceClient,
  ServiceModule,
  type ServiceCallEvent,
  type TlsIdentityPems,
  type PemValue,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceSimulator, type IssuedCertificate, type SimulatorOptions } from 'nestjs-service/testing';
import { run } from '../../lib/cli/doctor.js';
import { type DoctorReport } from '../../lib/cli/doctor/report.js';
import { explainMissingPeer } from '../../lib/testing/certificate-authority.js';
import { alertingServer, plainAlert } from '../helpers/alerting-server.js';
import {
  createAuthority,
  issue,
  type Authority,
  type Issued,
  withoutPaths,
} from '../helpers/certificates.js';
import { commandIo } from '../helpers/command-io.js';
import { rawServer } from '../helpers/loopback.js';
import { mtlsServer, type MtlsServer, type MtlsServerOptions } from '../helpers/mtls-server.js';
import { opensslServer } from '../helpers/openssl-server.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { sendWithoutClient, failCode, keptAliveAgent } from '../helpers/plain-client.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { simulatorsOfBlock, startSimulator } from '../helpers/simulators.js';
import { modulesOfBlock, rejection } from '../helpers/start-module.js';
import { until } from '../helpers/until.js';

const DAY_MS = 86_400_000;
const VARIABLES = {
  certificate: 'SERVICE_TLS_CERTIFICATE',
  privateKey: 'SERVICE_TLS_PRIVATE_KEY',
  passphrase: 'SERVICE_TLS_PASSPHRASE',
  chain: 'SERVICE_TLS_CHAIN',
};
type Key = keyof typeof VARIABLES;
type Given = Partial<Record<Key, string | { path: string } | undefined>>;
type Way = 'option, as text' | 'option, as a file' | 'variable' | 'variable _FILE';

let simulator: ServiceSimulator;
let app: IssuedCertificate;
let folder: string;
const modules = modulesOfBlock();

beforeAll(async () => {
  [simulator, folder] = await Promise.all([startSimulator(), mkdtemp(join(tmpdir(), 'certificates-'))]);
  app = simulator.application;
});
afterEach(() => simulator.clearRequests());
afterAll(async () => {
  await simulator.stop();
  await rm(folder, { recursive: true });
});

const pair = ({ certificate, privateKey }: IssuedCertificate) => ({ certificate, privateKey });
const good = (): Given => ({ ...pair(app), chain: simulator.chain });

function start(tls: ServiceModuleOptions['tls'], logger: LoggerService | false = false) {
  const { tls: _, ...rest } = simulator.moduleOptions();
  return modules.start({ imports: [ServiceModule.forRoot({ ...rest, tls })] }, logger);
}

let files = 0;
async function fileOf(content: string | { path: string }): Promise<string> {
  if (typeof content === 'object') return content.path;
  const path = join(folder, `input-${(files += 1)}.pem`);
  await writeFile(path, content);
  return path;
}

/** Starts an application with the inputs given in one of the four ways; the paths are those of the files used. */
async function startWith(given: Given, way: Way) {
  const options: Partial<Record<Key, PemValue>> = {};
  const paths: Partial<Record<Key, string>> = {};
  const isFile = way.endsWith('file') || way.endsWith('_FILE');
  for (const [key, content] of Object.entries(given) as [Key, string | { path: string } | undefined][]) {
    if (content === undefined) continue;
    const value = isFile ? (paths[key] = await fileOf(content)) : (content as string);
    if (way.startsWith('option')) options[key] = isFile ? { file: value } : value;
    else modules.setVariables({ [VARIABLES[key] + (isFile ? '_FILE' : '')]: value });
  }
  return { paths, application: start(way.startsWith('option') ? options : undefined) };
}

describe('A bad certificate, key or chain at the start of an application', () => {
  // One for each way; test/unit/tls/material.spec.ts has a row for each fault.
  it.each<[string, Way, () => Given | Promise<Given>, Key, RegExp]>([
    [
      'a missing file',
      'option, as a file',
      () => ({ certificate: { path: join(folder, 'nowhere.crt') } }),
      'certificate',
      /nowhere\.crt cannot be read \(ENOENT\)/,
    ],
    [
      'the key of another certificate',
      'option, as text',
      async () => ({ privateKey: (await simulator.issueCertificate()).privateKey }),
      'privateKey',
      /holds the key of another certificate, not of "CN=.*SHA-256.*Take key and certificate from the same download/,
    ],
    [
      'a certificate without key',
      'variable',
      () => ({ privateKey: undefined }),
      'privateKey',
      /is missing: tls\.certificate is set\. Set the key, or leave out both/,
    ],
    [
      'an encrypted key with a wrong passphrase',
      'variable _FILE',
      async () => ({
        ...pair(await simulator.issueCertificate({ passphrase: 'open sesame' })),
        passphrase: 'open barley',
      }),
      'passphrase',
      /the passphrase does not open the private key.*it is wrong \(.*\), the key is damaged/,
    ],
  ])('ends the start for %s (%s)', async (_what, way, given, at, says) => {
    const { paths, application } = await startWith({ ...good(), ...(await given()) }, way);
    const error = await rejection(application);
    expect(error).toBeInstanceOf(ServiceCertificateError);
    const { message, faults } = error as ServiceCertificateError;
    const variable = VARIABLES[at] + (paths.chain === undefined ? '' : '_FILE');
    expect(faults).toEqual([{ option: `tls.${at}`, variable, message: expect.stringMatching(says) }]);
    expect(message).toContain(`  - tls.${at} (${variable}): ${faults[0].message}`);
    // A wrong passphrase is reported with the path of the key that it does not open.
    expect(message).toContain(paths[at === 'passphrase' ? 'privateKey' : at] ?? '');
    // No content of the inputs.
    expect(withoutPaths(message, folder)).not.toMatch(/[A-Za-z0-9+/]{40}|open sesame|open barley/);
  });

  it('ends the start once for an empty chain given as text', async () => {
    const { application } = await startWith({ ...good(), chain: ' ' }, 'option, as text');
    expect(await rejection(application)).toMatchObject({
      faults: [{ option: 'tls.chain', message: 'must be text or { file: path }, and not empty' }],
    });
  });

  it('ends the start for a tls function that fails, or returns no certificate although one is needed', async () => {
    const sealed = Object.assign(new Error('token s.1234 refused'), { code: 'VAULT_SEALED' });
    await expect(start(() => Promise.reject(sealed))).rejects.toThrow(
      /tls: the function failed \(VAULT_SEALED: token s\.1234 refused\)\. Check the vault or store that it reads\.$/,
    );
    await expect(start(async () => ({}))).rejects.toThrow(
      /tls\.certificate.* is missing: 'mtls' needs it, and the tls function returned none/,
    );
  });
});

describe('A certificate that is not valid at the start', () => {
  const issueAt = (from: number, to: number) => {
    const [notBefore, notAfter] = [from, to].map((days) => new Date(Date.now() + days * DAY_MS));
    return simulator.issueCertificate({ commonName: 'not-valid', notBefore, notAfter });
  };
  const DATES = [
    ['has expired', -60, -1, /expired on/],
    ['is not valid yet', 1, 60, /is not valid before/],
  ] as const;

  /** Starts a Nest application, or a client without Nest, with `startupCheck`. */
  const STARTS = {
    ServiceModule: async (options: ServiceModuleOptions, logger: LoggerService) => {
      const module = await modules.start({ imports: [ServiceModule.forRoot(options)] }, logger);
      return { auth: module.get(ServiceAuthService), banks: module.get(BanksService) };
    },
    'createServiceClient()': async (options: ServiceModuleOptions, logger: LoggerService) => {
      Logger.overrideLogger(logger);
      const client = await createServiceClient(options);
      clients.push(client);
      return client;
    },
  };
  const clients: ServiceClient[] = [];
  afterEach(async () => {
    for (const { close } of clients.splice(0)) await close();
  });
  const optionsWith = (tls: ServiceModuleOptions['tls'], startupCheck?: 'off' | 'warn' | 'fail') => ({
    ...simulator.moduleOptions(),
    tls,
    startupCheck,
  });

  it.each(
    (['ServiceModule', 'createServiceClient()'] as const).flatMap((by) =>
      DATES.map((dates) => [by, ...dates] as const),
    ),
  )(
    "is used by %s with startupCheck: 'warn' if it %s: an error in the log, health down, and a good file takes its place",
    async (by, _, from, to, why) => {
      const bad = await issueAt(from, to);
      const good = await simulator.issueCertificate({ commonName: 'good' });
      const tls = {
        certificate: { file: await fileOf(bad.certificate) },
        privateKey: { file: await fileOf(bad.privateKey) },
        chain: simulator.chain,
      };
      const logger = new CollectingLogger();
      const errors: unknown[] = [];
      Object.assign(logger, { error: (line: unknown) => void errors.push(line) });
      const { auth, banks } = await STARTS[by](optionsWith(tls, 'warn'), logger);
      expect(errors[0]).toEqual(
        expect.stringMatching(
          /^tls\.certificate.*: the file \S+ holds the certificate "CN=not-valid" .* It is used all the same, because startupCheck is 'warn'\.$/,
        ),
      );
      expect(errors[0]).toMatch(why);
      expect(logger.lines).toContainEqual(expect.stringMatching(/^The start-up check failed \(api\.banks\)/));
      expect(auth.identityStatus).toMatchObject({ healthy: false, certificate: { subject: 'CN=not-valid' } });
      expect(await rejection(banks.list())).toMatchObject({
        code: 'certificate_refused',
        certificate: { subject: 'CN=not-valid' },
      });
      await writeFile(tls.certificate.file, good.certificate);
      await writeFile(tls.privateKey.file, good.privateKey);
      await until(() => auth.certificate?.subject === 'CN=good');
      await banks.list();
      expect(auth.identityStatus).toMatchObject({ healthy: true });
    },
  );

  it.each(['off', 'fail', undefined] as const)(
    'ends the start with startupCheck: %s',
    async (startupCheck) => {
      for (const [, from, to, why] of DATES) {
        const bad = await issueAt(from, to);
        const options = optionsWith({ ...pair(bad), chain: simulator.chain }, startupCheck);
        for (const startBy of Object.values(STARTS)) {
          const error = await rejection(startBy(options, new CollectingLogger()));
          expect(error).toBeInstanceOf(ServiceCertificateError);
          expect(error).toMatchObject({
            faults: [{ option: 'tls.certificate', message: expect.stringMatching(why) }],
          });
        }
      }
    },
  );

  it("ends the start with startupCheck: 'warn' too if there is another fault", async () => {
    const bad = await issueAt(-60, -1);
    const { privateKey } = await simulator.issueCertificate();
    const chain = (await issue('Old', { ca: true, notAfter: new Date(Date.now() - DAY_MS) })).certificate;
    for (const [tls, options] of [
      [{ ...pair(bad), privateKey, chain: simulator.chain }, ['tls.certificate', 'tls.privateKey']],
      [{ ...pair(bad), chain }, ['tls.certificate', 'tls.chain']],
      [{ ...pair(app), chain }, ['tls.chain']],
    ] as const) {
      const error = await rejection(STARTS.ServiceModule(optionsWith(tls, 'warn'), new CollectingLogger()));
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect((error as ServiceCertificateError).faults.map(({ option }) => option)).toEqual(options);
    }
  });

  it("is used with startupCheck: 'warn' if a tls function returns it, and does not take the place of a good one", async () => {
    const bad = await issueAt(-60, -1);
    let current: TlsIdentityPems = { ...pair(bad), chain: simulator.chain };
    const { auth, banks } = await STARTS.ServiceModule(
      optionsWith(async () => current, 'warn'),
      new CollectingLogger(),
    );
    expect(auth.identityStatus.healthy).toBe(false);
    current = { ...pair(app), chain: simulator.chain };
    expect(await auth.reloadCertificate()).toBe(true);
    await banks.list();
    current = { ...pair(bad), chain: simulator.chain };
    expect(await auth.reloadCertificate()).toBe(false);
    expect(auth.identityStatus).toMatchObject({
      healthy: true,
      lastReloadFault: { faults: [{ option: 'tls.certificate' }] },
    });
  });
});

describe('The certificate in use', () => {
  it.each<[Way, string, (text: string) => string]>([
    ['option, as text', 'CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ['option, as a file', 'a byte order mark', (text) => `\uFEFF${text}`],
    ['variable', 'newlines escaped', (text) => text.replaceAll('\n', '\\n')],
    ['variable _FILE', 'base64', (text) => Buffer.from(text).toString('base64')],
  ])('is read as %s: %s, with the chain and the key in one file', async (way, _name, form) => {
    const whole = form(app.privateKey + app.certificate + simulator.chain);
    const given = { certificate: whole, privateKey: whole, chain: form(simulator.chain) };
    const { application } = await startWith(given, way);
    await (await application).get(BanksService).list();
    expect(simulator.requests.at(-1)?.certificateSubject).toBe(app.subject);
  });

  it('has subject, issuer, fingerprint and dates in auth.certificate, and is healthy', async () => {
    const logger = new CollectingLogger();
    const auth = (await start(simulator.moduleOptions().tls, logger)).get(ServiceAuthService);
    const { subject, issuer, fingerprint256, validFrom, validTo } = new X509Certificate(app.certificate);
    const certificate = {
      subject: subject.replace('\n', ', '),
      issuer,
      fingerprint256,
      validFrom: new Date(validFrom),
      validTo: new Date(validTo),
    };
    expect(auth.certificate).toEqual(certificate);
    expect(auth.identityStatus).toEqual({ healthy: true, certificate, daysLeft: expect.any(Number) });
    expect(logger.lines.join('\n')).not.toMatch(/expires in/);
  });

  it('causes a warning with its date if it expires soon', async () => {
    const notAfter = new Date(Math.floor((Date.now() + 20 * DAY_MS) / 1000) * 1000);
    const soon = await simulator.issueCertificate({ commonName: 'soon', notBefore: new Date(0), notAfter });
    const logger = new CollectingLogger();
    const auth = (await start({ ...pair(soon), chain: simulator.chain }, logger)).get(ServiceAuthService);
    const date = notAfter.toISOString().replace('.000Z', 'Z');
    expect(logger.linesOf('ServiceModule')).toContainEqual(
      expect.stringMatching(
        `^tls\\.certificate: "CN=soon" .* expires in 19 days, on ${date}\\. Generate a new one in the developer portal`,
      ),
    );
    expect(auth.identityStatus).toMatchObject({ healthy: true, daysLeft: 19 });
  });

  it('is used by other clients too: node:https and axios, over one pool', async () => {
    const auth = (await start(simulator.moduleOptions().tls)).get(ServiceAuthService);
    const url = `${simulator.urls.baseUrl}/banks/v1`;
    const headers = await auth.authorizationHeaders();
    const status = await new Promise((resolve, reject) => {
      get(url, { agent: auth.httpsAgent, headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      }).on('error', reject);
    });
    expect(status).toBe(200);
    expect((await axios.get(url, { httpsAgent: auth.httpsAgent, headers })).status).toBe(200);
    const seen = simulator.requests.map(({ certificateSubject }) => certificateSubject);
    expect(seen).toEqual([app.subject, app.subject]);
    expect(new Set(simulator.requests.map(({ connection }) => connection)).size).toBe(1);
  });
});

const openssl = findProgram('openssl');
itWith(openssl, 'a server that knows its root alone')(
  'A server that knows only its root refuses our certificate, and the hint names the issuer whose certificate has to follow',
  async () => {
    const [authority, ours] = await Promise.all([createAuthority(), createAuthority('Our')]);
    const client = await ours.client('ours');
    const [ca, cert, key] = await Promise.all(
      [ours.root.certificate, authority.serverChain, authority.server.key].map(fileOf),
    );
    const server = await opensslServer(requireProgram(openssl), [
      ...['-cert', cert, '-cert_chain', cert, '-key', key],
      ...['-CAfile', ca, '-Verify', '3', '-verify_return_error'],
    ]);
    try {
      const refusal = async (certificate: string) => {
        const { banks, close } = await createServiceClient({
          ...simulator.moduleOptions(),
          urls: { baseUrl: server.url },
          tls: { certificate, privateKey: client.key, chain: authority.chain },
          http: { retries: 0 },
        });
        return rejection(banks.list()).finally(close);
      };
      const error = await refusal(client.certificate);
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect(error).toMatchObject({
        message: expect.stringMatching(/"CN=ours".*UNKNOWN_CA/),
        hint: expect.stringMatching(/lack the certificate of "CN=Our Intermediate": put it after ours/),
      });
      // Its page.
      const whole = await refusal(client.certificate + ours.intermediate.certificate);
      expect(whole).toMatchObject({ code: 'invalid_response', status: 200 });
    } finally {
      await server.stop();
    }
  },
);

itWith(openssl, 'a key that TLS 1.3 never sends')(
  'A key that TLS 1.3 never sends causes a warning at the start and by the doctor, and is named if the server misses the certificate',
  async () => {
    const authority = await createAuthority();
    const { stdout } = await promisify(execFile)(requireProgram(openssl), [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1', '-nodes'],
      ...['-subj', '/CN=app', '-keyout', '-', '-out', '-'],
    ]);
    const server = await mtlsServer(authority, { ca: [authority.chain, stdout] });
    const lenient = await mtlsServer(authority, { ca: stdout, rejectUnauthorized: false });
    const logger = new CollectingLogger();
    const { tls: _, ...options } = simulator.moduleOptions();
    const application = await modules.start(
      {
        imports: [
          ServiceModule.forRoot({
            ...options,
            urls: { baseUrl: server.url },
            tls: { certificate: stdout, privateKey: stdout, chain: authority.chain },
          }),
        ],
      },
      logger,
    );
    expect(logger.linesOf('ServiceModule')).toContainEqual(
      expect.stringMatching(/type secp256k1, .* TLS 1\.3/),
    );
    const error = await rejection(application.get(BanksService).list());
    expect(error).toMatchObject({
      code: 'certificate_refused',
      message: expect.stringMatching(
        /was not sent, or did not arrive: the server accepts no key of this type \(secp256k1\), or a proxy in front of it ended TLS\. It is .*_CERTIFICATE_REQUIRED\)/,
      ),
      hint: expect.stringMatching(/^TLS 1\.3 has no signature for such a key/),
    });

    const rowsOf = async ({ url }: MtlsServer) => {
      const io = commandIo({
        SERVICE_ENVIRONMENT: 'production',
        SERVICE_APP_TOKEN: 'a1',
        SERVICE_BASE_URL: url,
        SERVICE_TLS_CERTIFICATE: stdout,
        SERVICE_TLS_PRIVATE_KEY: stdout,
        SERVICE_TLS_CHAIN: authority.chain,
      });
      await run(['--json'], io);
      const { checks } = JSON.parse(io.stdout()) as DoctorReport;
      return Object.fromEntries(checks.map(({ name, status, message }) => [name, `${status}: ${message}`]));
    };
    const demanding = await rowsOf(server);
    expect(demanding.SERVICE_TLS_CERTIFICATE).toMatch(
      /^warning: .*key type secp256k1, valid to .* does not get the certificate/,
    );
    expect(demanding['api.client-certificate']).toMatch(/^failed: .* was not sent, .*\(secp256k1\)/);
    const { 'api.client-certificate': taken } = await rowsOf(lenient);
    expect(taken).toMatch(/^warning: .*"CN=app" was not sent: .*\(secp256k1\)/);
    await Promise.all([server.close(), lenient.close()]);
  },
);

describe('An alert about our certificate', () => {
  type Version = 'TLSv1.2' | 'TLSv1.3';
  type When =
    | 'in the handshake'
    | 'instead of an answer'
    | 'on a kept-alive connection'
    | 'after an informational answer'
    | 'after the first bytes of an answer'
    | 'in the body of an answer';
  const AFTER: When[] = [
    // In TLS 1.2 the verdict on the certificate comes before the handshake ends; in TLS 1.3 before the session tickets.
    'instead of an answer',
    'on a kept-alive connection',
    'after an informational answer',
    'after the first bytes of an answer',
    'in the body of an answer',
  ];
  /** What may come after the service acted. */
  const DOUBTS = (['TLSv1.2', 'TLSv1.3'] as const).flatMap((version) =>
    AFTER.flatMap((when) => [44, 49].map((alert): [Version, When, number] => [version, when, alert])),
  );
  /**
   * What comes before the request was looked at: the handshake's own verdict. Erlang/OTP 25 sends 40 for a certificate
   * without clientAuth, wolfSSL 47 for an RSA-PSS key.
   */
  const PROOFS = [40, 44, 47, 49, 50, 51].map((alert): [Version, When, number] => [
    'TLSv1.3',
    'in the handshake',
    alert,
  ]);
  /** What can be anything. stunnel sends 80 for a certificate with another host name. */
  const SUSPICIONS: [Version, When, number][] = [['TLSv1.3', 'in the handshake', 80]];
  /** What the same alerts are over TLS 1.2 before its handshake ends: OpenSSL sends 47 for a key on secp256k1, GnuTLS 50. */
  const EARLY = [40, 47, 50, 51, 80].map((alert): [Version, When, number] => [
    'TLSv1.2',
    'in the handshake',
    alert,
  ]);
  /** Alerts that are about a request, or that come with one. */
  const UNRELATED: [Version, When, number][] = [
    ...[10, 20, 22].map((alert): [Version, When, number] => ['TLSv1.3', 'in the handshake', alert]),
    // Apache asks for the certificate again after it has read the request (SSLVerifyClient in a Location).
    ...[40, 47, 50, 51].map((alert): [Version, When, number] => ['TLSv1.2', 'instead of an answer', alert]),
    ...[40, 47, 50, 51].map((alert): [Version, When, number] => ['TLSv1.3', 'instead of an answer', alert]),
  ];

  let authority: Authority;
  let first: Issued;
  let second: Issued;
  const closes: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    authority = await createAuthority();
    [first, second] = await Promise.all(['first', 'second'].map((name) => authority.client(name)));
  });
  afterEach(async () => {
    for (const close of closes.splice(0).reverse()) await close();
  });

  /** A client, and a server that refuses the client certificate for one call. `done` counts the calls that the server has executed. */
  async function refusing([version, when, alert]: [Version, When, number], hasNewPair: boolean) {
    const done: string[] = [];
    let left = 1;
    let silent = false;
    const { serverChain: cert, server, chain: ca } = authority;
    const api = await alertingServer(
      version,
      { cert, key: server.key, ca, requestCert: true, rejectUnauthorized: true },
      (request, response, send) => {
        request.resume().on('end', () => {
          if (silent) return;
          done.push(`${request.method} ${request.url}`);
          if (request.url !== '/a' || left === 0) return response.end('{"ok":true}');
          left -= 1;
          const socket = request.socket as TLSSocket;
          if (when === 'after an informational answer') response.writeProcessing();
          if (when === 'after the first bytes of an answer') socket.write('HTTP/1.1 20');
          if (when === 'in the body of an answer')
            response.writeHead(200, { 'content-length': 90 }).write('{');
          // Behind what was written just now.
          setImmediate(() => setImmediate(() => send(alert)));
        });
      },
      (send) => {
        silent = when === 'in the handshake' && left === 1;
        if (!silent) return;
        left -= 1;
        // Before OpenSSL's session tickets, as servers do that refuse.
        send(alert);
      },
      () => {
        if (version === 'TLSv1.3' || when !== 'in the handshake' || left === 0) return undefined;
        left -= 1;
        return alert;
      },
    );
    let readings = 0;
    const { http, close } = await createServiceClient({
      environment: 'production',
      authentication: 'mtls',
      urls: { baseUrl: api.url },
      appToken: 'a1',
      tls: () => {
        readings += 1;
        const { certificate, key } = readings > 1 && hasNewPair ? second : first;
        return { certificate, privateKey: key, chain: ca };
      },
      http: { retries: 0, timeout: 10_000 },
    });
    closes.push(api.close, close);
    if (when === 'on a kept-alive connection') await http.get('/warm');
    return { http, done, reloads: () => readings - 1 };
  }

  const ofFirst = () => new X509Certificate(first.certificate).fingerprint256;
  const posts = (done: string[]) => done.filter((each) => each === 'POST /a').length;

  it.each(DOUBTS)(
    'over %s, %s, alert %d: a POST is sent once, and its outcome is unknown',
    async (...how) => {
      for (const hasNewPair of [true, false]) {
        const { http, done, reloads } = await refusing(how, hasNewPair);
        const error = await rejection(http.post('/a', {}));
        expect(error).toBeInstanceOf(ServiceConnectionError);
        expect(error).toMatchObject({ kind: 'tls', outcomeUnknown: true, method: 'POST', path: '/a' });
        expect((error as Error).message).toContain(ofFirst());
        expect(posts(done)).toBe(1);
        // For the next call.
        expect(reloads()).toBe(1);
        expect(await http.post('/a', {})).toEqual({ ok: true });
      }
    },
  );

  it.each([...DOUBTS, ...PROOFS])(
    'over %s, %s, alert %d: a GET is sent once more with a new certificate',
    async (...how) => {
      const renewed = await refusing(how, true);
      expect(await renewed.http.get('/a')).toEqual({ ok: true });
      const error = await rejection((await refusing(how, false)).http.get('/a'));
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect((error as Error).message).toContain(ofFirst());
    },
  );

  it.each(SUSPICIONS)(
    'over %s, %s, alert %d: a POST is in doubt, a GET is sent once more with a new certificate, and the hint names the certificate',
    async (...how) => {
      const { http, reloads } = await refusing(how, false);
      const error = await rejection(http.post('/a', {}));
      expect(error).toMatchObject({ code: 'connection_tls', outcomeUnknown: true });
      expect((error as ServiceError).hint).toMatch(/tls\.certificate/);
      expect(reloads()).toBe(1);
      expect(await (await refusing(how, true)).http.get('/a')).toEqual({ ok: true });
    },
  );

  it.each(EARLY)(
    'over %s, %s, alert %d: the hint names the certificate, and a POST is sent with a new one',
    async (...how) => {
      const error = await rejection((await refusing(how, false)).http.post('/a', {}));
      expect(error).toMatchObject({ code: 'connection_tls', outcomeUnknown: false });
      expect(error).toMatchObject({
        message: expect.stringMatching(/may have refused the client certificate/),
        hint: expect.stringMatching(/Check tls\.certificate/),
      });
      const renewed = await refusing(how, true);
      expect(await renewed.http.post('/a', {})).toEqual({ ok: true });
      expect(posts(renewed.done)).toBe(1);
    },
  );

  it.each(UNRELATED)(
    'over %s, %s, alert %d is not about the certificate, and a POST is in doubt',
    async (...how) => {
      const { http, reloads } = await refusing(how, true);
      const error = await rejection(http.post('/a', {}));
      expect(error).toMatchObject({ code: 'connection_tls', outcomeUnknown: true });
      expect(reloads()).toBe(0);
    },
  );

  it('in response to the ClientHello is not about the certificate', async () => {
    const server = await rawServer((socket) => socket.once('data', () => socket.end(plainAlert(40))));
    const { certificate, key: privateKey } = first;
    let readings = 0;
    const { http, close } = await createServiceClient({
      environment: 'production',
      authentication: 'mtls',
      urls: { baseUrl: `https://127.0.0.1:${server.port}` },
      appToken: 'a1',
      tls: () => {
        readings += 1;
        return { certificate, privateKey, chain: authority.chain };
      },
    });
    closes.push(server.close, close);
    const error = await rejection(http.get('/a'));
    expect(error).toMatchObject({ code: 'connection_tls', hint: expect.not.stringContaining('certificate') });
    expect((error as Error).message).toMatch(/the TLS handshake at its beginning/);
    expect(readings).toBe(1);
  });

  it.each([40, 50])('%d without a configured certificate says that it may be missing', async (alert) => {
    const { serverChain: cert, server, chain } = authority;
    const options = { cert, key: server.key, ca: chain, requestCert: true, rejectUnauthorized: false };
    const api = await alertingServer(
      'TLSv1.3',
      options,
      () => undefined,
      (send) => send(alert),
    );
    const { http, close } = await createServiceClient({
      environment: 'sandbox',
      authentication: 'app-token',
      urls: { sandboxUrl: api.url },
      appToken: 'a1',
      tls: { chain },
    });
    closes.push(api.close, close);
    const error = await rejection(http.post('/a', {}));
    expect(error).toMatchObject({
      code: 'connection_tls',
      outcomeUnknown: false,
      message: expect.stringMatching(/It may require a client certificate, and none is configured/),
      hint: expect.stringMatching(/set tls\.certificate and tls\.privateKey/),
    });
  });

  it.each(DOUBTS)(
    'over %s, %s, alert %d: a POST with an idempotency key is sent once more with a new certificate',
    async (...how) => {
      const renewed = await refusing(how, true);
      const key = { idempotencyKey: 'k-1' };
      expect(await renewed.http.post('/a', {}, key)).toEqual({ ok: true });
      expect(posts(renewed.done)).toBe(2);
      const error = await rejection((await refusing(how, false)).http.post('/a', {}, key));
      expect(error).toMatchObject({ kind: 'tls', outcomeUnknown: true, idempotencyKey: 'k-1' });
    },
  );

  it.each(PROOFS)(
    'over %s, %s, alert %d: a POST is sent once more with a new certificate, or fails as refused without one',
    async (...how) => {
      const renewed = await refusing(how, true);
      expect(await renewed.http.post('/a', {})).toEqual({ ok: true });
      const { http, reloads } = await refusing(how, false);
      const error = await rejection(http.post('/a', {}));
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect((error as Error).message).toContain(ofFirst());
      expect(reloads()).toBe(1);
    },
  );
});

describe("A server that refuses without an alert, as Node's own does", () => {
  let authority: Authority;
  let known: Issued;
  let unknown: Issued;
  const closes: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    authority = await createAuthority();
    known = await authority.client('known');
    unknown = await (await createAuthority('Other')).client('unknown');
  });
  afterEach(async () => {
    for (const close of closes.splice(0).reverse()) await close();
  });

  const BOTH = /refused the client certificate \(.* do so without a TLS alert\), or it crashed or restarted/;

  /** A client that shows what the server does not know, from files. */
  async function refusing(
    options: MtlsServerOptions = {},
    given: Issued | (() => TlsIdentityPems) = unknown,
  ) {
    const server = await mtlsServer(authority, options);
    const isFunction = typeof given === 'function';
    const [certificate, privateKey] = isFunction
      ? []
      : await Promise.all([fileOf(given.certificate), fileOf(given.key)]);
    const events: ServiceCallEvent[] = [];
    const client = await createServiceClient({
      environment: 'production',
      authentication: 'mtls',
      urls: { baseUrl: server.url },
      appToken: 'a1',
      tls: isFunction
        ? given
        : { certificate: { file: certificate! }, privateKey: { file: privateKey! }, chain: authority.chain },
      http: { timeout: 10_000, onCall: (event) => void events.push(event) },
    });
    closes.push(server.close, client.close);
    const replace = async ({ certificate: pem, key }: Issued): Promise<void> => {
      await Promise.all([writeFile(certificate!, pem), writeFile(privateKey!, key)]);
    };
    return { ...client, server, events, replace };
  }

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'over %s lets the files be read again before a GET is retried',
    async (maxVersion) => {
      const { server, http, events, replace } = await refusing({ maxVersion });
      await replace(known);
      expect(await http.get('/a')).toEqual({});
      expect(server.subjects).toEqual(['known']);
      expect(events).toMatchObject([{ attempts: 2 }]);
    },
  );

  it('gives an error that names both causes, and leaves a POST in doubt; the next call uses the new files', async () => {
    const { server, http, replace } = await refusing();
    await replace(known);
    expect(await rejection(http.post('/a', {}))).toMatchObject({
      code: 'connection_reset',
      outcomeUnknown: true,
      message: expect.stringMatching(BOTH),
      hint: expect.stringMatching(/^The request may have been executed: .* Check tls\.certificate: /),
    });
    expect(await http.post('/a', {})).toEqual({});
    expect(server.subjects).toEqual(['known']);
  });

  it('does not cause a call of the tls function', async () => {
    let calls = 0;
    const { http } = await refusing({}, () => {
      calls += 1;
      return { certificate: unknown.certificate, privateKey: unknown.key, chain: authority.chain };
    });
    expect(await rejection(http.get('/a'))).toMatchObject({ message: expect.stringMatching(BOTH) });
    expect(calls).toBe(1);
  });

  it('is distinguished from a server that crashes after it has sent a session ticket', async () => {
    const { http, auth, server } = await refusing({ onRequest: () => undefined }, known);
    const error = rejection(http.post('/a', {}));
    await until(() => {
      const [socket] = Object.values(auth.httpsAgent.sockets).flat();
      return server.subjects.length === 1 && (socket as TLSSocket).getTLSTicket() !== undefined;
    });
    for (const socket of server.sockets) socket.destroy();
    const { message, hint = '' } = (await error) as ServiceError;
    expect(message + hint).not.toMatch(/certificate/);
  });

  it('gives an error without a word about certificates if none is configured', async () => {
    const { serverChain: cert, server, chain } = authority;
    const options = { cert, key: server.key, ca: chain, requestCert: true, rejectUnauthorized: false };
    const api = await alertingServer(
      'TLSv1.3',
      options,
      () => undefined,
      (end) => end(),
    );
    const { http, close } = await createServiceClient({
      environment: 'sandbox',
      authentication: 'app-token',
      urls: { sandboxUrl: api.url },
      appToken: 'a1',
      tls: { chain },
      http: { retries: 0 },
    });
    closes.push(api.close, close);
    const { code, message, hint = '' } = (await rejection(http.get('/a'))) as ServiceError;
    expect(code).toBe('connection_reset');
    expect(message + hint).not.toMatch(/certificate/);
  });
});

describe('Certificates of the simulator', () => {
  let own: ServiceSimulator;
  const startOwn = simulatorsOfBlock((options) => ServiceSimulator.start(options));
  beforeAll(async () => {
    own = await startOwn();
  });

  const blocks = (pem: string) =>
    (pem.match(/-----BEGIN[^]+?-----END [A-Z ]+-----/g) ?? []).map((each) => new X509Certificate(each));

  it('form a chain of application, intermediate and root', () => {
    const application = new X509Certificate(own.application.certificate);
    const [intermediate, root] = blocks(own.chain);
    expect(application.checkIssued(intermediate)).toBe(true);
    expect(application.verify(intermediate.publicKey)).toBe(true);
    expect(intermediate.verify(root.publicKey)).toBe(true);
    expect(root.verify(root.publicKey)).toBe(true);
    expect([application.ca, intermediate.ca, root.ca]).toEqual([false, true, true]);
    expect(application.checkPrivateKey(createPrivateKey(own.application.privateKey))).toBe(true);
    expect(own.application.subject).toBe('CN=application, O=Simulated Application');
  });

  it('include a server certificate for 127.0.0.1 and localhost, with the intermediate, that verifies with the chain alone', async () => {
    const { port } = new URL(own.urls.sandboxUrl);
    const [intermediate, root] = blocks(own.chain);
    for (const ca of [own.chain, root.toString()]) {
      for (const servername of ['localhost', undefined]) {
        const socket = connect({ host: '127.0.0.1', port: Number(port), ca, servername });
        await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
        expect(socket.authorized).toBe(true);
        const issuer = socket.getPeerX509Certificate()?.issuerCertificate;
        expect(issuer?.fingerprint256).toBe(intermediate.fingerprint256);
        socket.destroy();
      }
    }
    for (const ca of [undefined, (await startOwn()).chain])
      expect(await failCode(sendWithoutClient(own, own.urls.sandboxUrl, { ca }))).toMatch(/CERT|SIGNATURE/);
  });

  it('are issued with the requested name, dates and passphrase', async () => {
    const notBefore = new Date('2030-01-01T00:00:00Z');
    const notAfter = new Date('2031-01-01T00:00:00Z');
    const issued = await own.issueCertificate({
      commonName: 'billing, with comma',
      notBefore,
      notAfter,
      passphrase: 'pass',
    });
    const certificate = new X509Certificate(issued.certificate);
    expect(new Date(certificate.validFrom)).toEqual(notBefore);
    expect(new Date(certificate.validTo)).toEqual(notAfter);
    expect(certificate.subject).toContain('billing\\, with comma');
    expect(issued.fingerprint256).toBe(certificate.fingerprint256);
    expect(issued.chain).toBe(own.chain);
    expect(issued.privateKey).toContain('BEGIN ENCRYPTED PRIVATE KEY');
    expect(() => createPrivateKey(issued.privateKey)).toThrow();
    const key = createPrivateKey({ key: issued.privateKey, passphrase: 'pass' });
    expect(certificate.checkPrivateKey(key)).toBe(true);
  });

  it('can be foreign, with the same form but another root', async () => {
    const foreign = await own.issueCertificate({ foreign: true });
    const [intermediate, root] = blocks(foreign.chain);
    expect(new X509Certificate(foreign.certificate).verify(intermediate.publicKey)).toBe(true);
    expect(root.fingerprint256).not.toBe(blocks(own.chain)[1].fingerprint256);
  });

  it('have the requested lifetime', async () => {
    const short = await startOwn({ certificates: { applicationLifetime: 86_400 } });
    const { validTo } = new X509Certificate(short.application.certificate);
    expect((Date.parse(validTo) - Date.now()) / DAY_MS).toBeCloseTo(1, 2);
  });

  it.each([
    ['foreign', { foreign: true }, /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO/],
    ['expired', { notAfter: new Date(Date.now() - 1000) }, /^CERT_HAS_EXPIRED$/],
    ['for another host', { names: ['elsewhere.example'] }, /^ERR_TLS_CERT_ALTNAME_INVALID$/],
  ])('of the server can be replaced by one that is %s, and restored', async (_, request, code) => {
    const url = `${own.urls.sandboxUrl}/echo/v1`;
    await own.useServerCertificate({ face: 'sandbox', ...request });
    expect(await failCode(sendWithoutClient(own, url))).toMatch(code);
    expect((await sendWithoutClient(own, `${own.urls.authUrl}/x`)).status).toBe(404);
    await own.useServerCertificate();
    expect((await sendWithoutClient(own, url)).status).toBe(401);
  });

  it('need an optional peer dependency, and a clear error says so if it is missing', () => {
    const absent = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    const message: unknown = expect.stringContaining('npm i -D @peculiar/x509');
    expect(explainMissingPeer(absent)).toMatchObject({ message });
    const other = new Error('another fault');
    expect(explainMissingPeer(other)).toBe(other);
  });
});

describe('Client certificates of the simulator', () => {
  const startOne = simulatorsOfBlock();
  const REVOKED = /^ERR_SSL_SSL(V3|\/TLS)_ALERT_CERTIFICATE_REVOKED$/;

  async function serve(options?: SimulatorOptions) {
    const one = await startOne(options);
    const { baseUrl, sandboxMtlsUrl } = one.urls;
    const headers = { 'service-app-token': one.appToken };
    return { one, base: `${baseUrl}/banks/v1`, sandboxMtls: `${sandboxMtlsUrl}/banks/v1`, headers };
  }

  it('are accepted by both mTLS servers, and recorded', async () => {
    const { one, base, sandboxMtls, headers } = await serve();
    const certificate = one.application;
    expect((await sendWithoutClient(one, base, { certificate, headers })).status).toBe(200);
    expect((await sendWithoutClient(one, sandboxMtls, { certificate, headers })).status).toBe(200);
    const seen = {
      certificateSubject: certificate.subject,
      certificateFingerprint256: certificate.fingerprint256,
      status: 200,
    };
    expect(one.requests).toMatchObject([
      { face: 'base', environment: 'production', ...seen },
      { face: 'sandbox-mtls', environment: 'sandbox', ...seen },
    ]);
    expect(one.refusals).toEqual([]);
    const issued = await one.issueCertificate({ passphrase: 'pass word' });
    const withChain = { ...issued, certificate: issued.certificate + issued.chain };
    expect((await sendWithoutClient(one, base, { certificate: withChain, headers })).status).toBe(200);
  });

  it.each([
    ['foreign', { foreign: true }, /^ERR_SSL_TLSV1_ALERT_UNKNOWN_CA$/, 'unknown_ca'],
    [
      'expired',
      { notAfter: new Date(Date.now() - 5000) },
      /^ERR_SSL_SSL(V3|\/TLS)_ALERT_CERTIFICATE_EXPIRED$/,
      'certificate_expired',
    ],
    [
      'not yet valid',
      { notBefore: new Date(Date.now() + 86_400_000) },
      /^ERR_SSL_SSL(V3|\/TLS)_ALERT_BAD_CERTIFICATE$/,
      'bad_certificate',
    ],
  ])('are refused with a TLS alert if they are %s', async (_, request, code, alert) => {
    const { one, base, sandboxMtls, headers } = await serve();
    const certificate = await one.issueCertificate(request);
    expect(await failCode(sendWithoutClient(one, base, { certificate, headers }))).toMatch(code);
    expect(await failCode(sendWithoutClient(one, sandboxMtls, { certificate, headers }))).toMatch(code);
    const certificateFingerprint256 = certificate.fingerprint256;
    expect(one.refusals).toMatchObject([
      { face: 'base', alert, certificateFingerprint256 },
      { face: 'sandbox-mtls', alert, certificateFingerprint256 },
    ]);
    expect(one.handshakes.base).toEqual({ total: 1, resumed: 0, refused: 1 });
    expect(one.requests).toEqual([]);
  });

  it('are refused with other ciphers and without a subject too, and the newest refusals are kept', async () => {
    const { one, base, headers } = await serve({ maxRequests: 2 });
    const { certificate: cert, key } = await issue('');
    for (const ciphers of [undefined, 'TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'])
      expect(await failCode(sendWithoutClient(one, base, { cert, key, headers, ciphers }))).toBe(
        'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
      );
    const { serialNumber } = new X509Certificate(cert);
    const refusal = { certificateSubject: `serial number ${serialNumber}`, alert: 'unknown_ca' };
    expect(one.refusals).toMatchObject([refusal, refusal]);
  });

  it('are required in the handshake on {sandbox_mtls_url}, and on {base_url} with requireClientCertificate', async () => {
    const { one, base, sandboxMtls, headers } = await serve({ requireClientCertificate: true });
    const missing = 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED';
    expect(await failCode(sendWithoutClient(one, sandboxMtls, { headers }))).toBe(missing);
    expect(one.refusals).toMatchObject([{ face: 'sandbox-mtls', alert: 'certificate_required' }]);
    const bearer = { authorization: `Bearer ${await one.issueToken()}` };
    expect(await failCode(sendWithoutClient(one, base, { headers: bearer }))).toBe(missing);
    expect(
      (await sendWithoutClient(one, base, { headers: bearer, certificate: one.application })).status,
    ).toBe(200);
  });

  it('if missing cause an HTML 400 on {base_url}, unless there is a bearer', async () => {
    const { one, base, headers } = await serve();
    const refused = await sendWithoutClient(one, base, { headers });
    expect(refused.status).toBe(400);
    expect(refused.headers['content-type']).toBe('text/html');
    expect(refused.body).toContain('No required SSL certificate was sent');
    const authorization = `Bearer ${await one.issueToken()}`;
    expect((await sendWithoutClient(one, base, { headers: { authorization } })).status).toBe(200);
  });

  it('can be refused with an HTML 400 in place of an alert', async () => {
    const { one, base, sandboxMtls, headers } = await serve({ clientCertificateRefusal: 'http-400' });
    const foreign = await one.issueCertificate({ foreign: true });
    for (const url of [base, sandboxMtls]) {
      for (const [certificate, title] of [
        [foreign, 'The SSL certificate error'],
        [undefined, 'No required SSL certificate'],
      ] as const) {
        const { status, body } = await sendWithoutClient(one, url, { headers, certificate });
        expect([status, body]).toEqual([400, expect.stringContaining(title)]);
      }
    }
  });

  it('over TLS 1.2 are refused with an alert if missing, and with a closed connection if foreign', async () => {
    const { one, sandboxMtls, headers } = await serve({ maxTlsVersion: 'TLSv1.2' });
    expect(await failCode(sendWithoutClient(one, sandboxMtls, { headers }))).toBe('EPROTO');
    const certificate = await one.issueCertificate({ foreign: true });
    expect(await failCode(sendWithoutClient(one, sandboxMtls, { headers, certificate }))).toBe('ECONNRESET');
    expect(
      (await sendWithoutClient(one, sandboxMtls, { headers, certificate: one.application })).status,
    ).toBe(200);
  });

  it('are refused after they were revoked, on new connections, resumed sessions and open connections', async () => {
    const { one, base, headers } = await serve();
    const agent = keptAliveAgent(one, one.application);
    expect((await sendWithoutClient(one, base, { agent, headers })).status).toBe(200);
    one.revokeCertificate();
    expect((await sendWithoutClient(one, base, { agent, headers })).status).toBe(400);
    agent.destroy();
    expect(await failCode(sendWithoutClient(one, base, { agent, headers }))).toMatch(REVOKED);
    expect(one.handshakes.base).toEqual({ total: 2, resumed: 1, refused: 1 });
    const certificate = one.application;
    expect(await failCode(sendWithoutClient(one, base, { headers, certificate }))).toMatch(REVOKED);
    agent.destroy();
    const other = await one.issueCertificate();
    expect((await sendWithoutClient(one, base, { headers, certificate: other })).status).toBe(200);
  });

  it('are requested, but not required, by the token endpoint', async () => {
    const { one } = await serve();
    const url = `${one.urls.authUrl}/oauth2/token`;
    await sendWithoutClient(one, url);
    await sendWithoutClient(one, url, { certificate: one.application });
    const seen = one.tokenRequests.map((request) => request.certificateSubject);
    expect(seen).toEqual([undefined, one.application.subject]);
  });

  it('are visible in the counts of handshakes, resumed sessions and connections', async () => {
    const { one, base, headers } = await serve();
    const agent = keptAliveAgent(one, one.application);
    const first = await sendWithoutClient(one, base, { agent, headers });
    expect(first.headers['keep-alive']).toBe('timeout=5');
    await sendWithoutClient(one, base, { agent, headers });
    expect(one.handshakes.base).toEqual({ total: 1, resumed: 0, refused: 0 });
    expect(one.requests.map((request) => request.connection)).toEqual([1, 1]);
    expect(one.openConnections).toBe(1);
    agent.destroy();
    const again = keptAliveAgent(one, one.application);
    await sendWithoutClient(one, base, { agent: again, headers });
    again.destroy();
    expect((await sendWithoutClient(one, base, { agent: again, headers })).status).toBe(200);
    expect(one.handshakes.base).toEqual({ total: 3, resumed: 1, refused: 0 });
    again.destroy();
  });
});
