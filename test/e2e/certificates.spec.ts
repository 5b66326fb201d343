import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type INestApplication, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import axios from 'axios';
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  BanksService,
  ServiceAuthService,
  ServiceCertificateError,
  ServiceModule,
  type PemValue,
  type ServiceTlsOptions,
} from 'nestjs-service';
import { ServiceSimulator, type IssuedCertificate } from 'nestjs-service/testing';
import { createAuthority, withoutPaths } from '../helpers/certificates.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';

const DAY_MS = 86_400_000;
const KEYS = ['certificate', 'privateKey', 'passphrase', 'chain'] as const;
type Key = (typeof KEYS)[number];
/** The content of an input; a path, where the row is about the file itself. */
type Content = string | Buffer | { path: string };

const VARIABLES: Record<Key, string> = {
  certificate: 'SERVICE_TLS_CERTIFICATE',
  privateKey: 'SERVICE_TLS_PRIVATE_KEY',
  passphrase: 'SERVICE_TLS_PASSPHRASE',
  chain: 'SERVICE_TLS_CHAIN',
};

type Way = 'option, as text' | 'option, as a file' | 'variable' | 'variable _FILE';

interface Row {
  way: Way;
  fault: string;
  /** Replaces the valid inputs. undefined leaves one out. */
  given: () => Partial<Record<Key, Content | undefined>>;
  /** Where the fault is reported. */
  at: Key;
  says: RegExp;
  /** What to do. */
  remedy: RegExp;
}

let simulator: ServiceSimulator;
let app: IssuedCertificate;
let issued: Record<'other' | 'expired' | 'encrypted', IssuedCertificate>;
let folder: string;
const before = { ...process.env };
const started: INestApplication[] = [];

beforeAll(async () => {
  [simulator, folder] = await Promise.all([
    ServiceSimulator.start(),
    mkdtemp(join(tmpdir(), 'certificates-')),
  ]);
  const ago = (days: number) => new Date(Date.now() - days * DAY_MS);
  const [other, expired, encrypted] = await Promise.all([
    simulator.issueCertificate({ commonName: 'other' }),
    simulator.issueCertificate({ commonName: 'expired', notBefore: ago(400), notAfter: ago(2) }),
    simulator.issueCertificate({ commonName: 'encrypted', passphrase: 'open sesame' }),
  ]);
  issued = { other, expired, encrypted };
  app = simulator.application;
});
afterEach(async () => {
  for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
  for (const each of started.splice(0)) await each.close();
  simulator.clearRequests();
});
afterAll(async () => {
  await simulator.stop();
  await rm(folder, { recursive: true });
});

const good = (): Partial<Record<Key, Content | undefined>> => ({
  certificate: app.certificate,
  privateKey: app.privateKey,
  chain: simulator.chain,
});
const cut = (text: string) => text.slice(0, text.length - 60);

/** One for each way; test/unit/tls/material has a row for each fault. */
const ROWS: Row[] = [
  {
    way: 'option, as a file',
    fault: 'missing file',
    given: () => ({ certificate: { path: join(folder, 'nowhere.crt') } }),
    at: 'certificate',
    says: /cannot be read/,
    remedy: /nowhere\.crt cannot be read \(ENOENT\)/,
  },
  {
    way: 'option, as text',
    fault: 'key of another certificate',
    given: () => ({ privateKey: issued.other.privateKey }),
    at: 'privateKey',
    says: /holds the key of another certificate, not of "CN=.*SHA-256/,
    remedy: /Take key and certificate from the same download/,
  },
  {
    way: 'variable',
    fault: 'certificate without key',
    given: () => ({ privateKey: undefined }),
    at: 'privateKey',
    says: /is missing: tls\.certificate is set/,
    remedy: /Set the key, or leave out both/,
  },
  {
    way: 'variable _FILE',
    fault: 'encrypted key with a wrong passphrase',
    given: () => ({ ...pair(issued.encrypted), passphrase: 'open barley' }),
    at: 'passphrase',
    says: /the passphrase does not open the private key/,
    remedy: /it is wrong, the key is damaged/,
  },
];

const pair = ({ certificate, privateKey }: IssuedCertificate) => ({ certificate, privateKey });

async function start(tls: ServiceTlsOptions | undefined, logger: LoggerService | false = false) {
  const { tls: _, ...rest } = simulator.moduleOptions();
  const application = await NestFactory.create(
    {
      module: class Host {},
      imports: [ServiceModule.forRoot({ ...rest, tls, linkSdk: { includeAppToken: true } })],
    },
    { logger, abortOnError: false },
  );
  started.push(application);
  await application.init();
  return application;
}

let files = 0;
async function fileOf(content: Content): Promise<string> {
  if (typeof content === 'object' && 'path' in content) return content.path;
  const path = join(folder, `input-${(files += 1)}.pem`);
  await writeFile(path, content);
  return path;
}

/** Binary content has no other way into a string. */
function textOf(content: Content): string {
  if (typeof content === 'string') return content;
  if (Buffer.isBuffer(content)) return content.toString('base64');
  throw new Error('A path cannot be given as text');
}

/** Starts an application with the inputs given in one of the four ways; the paths are those of the files used. */
async function startWith(given: Partial<Record<Key, Content | undefined>>, way: Way) {
  const options: Partial<Record<Key, PemValue>> = {};
  const paths: Partial<Record<Key, string>> = {};
  for (const key of KEYS) {
    const content = given[key];
    if (content === undefined) continue;
    if (way === 'option, as text') options[key] = textOf(content);
    else if (way === 'variable') process.env[VARIABLES[key]] = textOf(content);
    else {
      const file = (paths[key] = await fileOf(content));
      if (way === 'option, as a file') options[key] = { file };
      else process.env[`${VARIABLES[key]}_FILE`] = file;
    }
  }
  const isOption = way.startsWith('option');
  return { paths, application: start(isOption ? options : undefined) };
}

async function expectFault({ way, given, at, says, remedy }: Row): Promise<void> {
  const { paths, application } = await startWith({ ...good(), ...given() }, way);
  const error = await application.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ServiceCertificateError);
  const { message, faults } = error as ServiceCertificateError;
  const asFile = way.endsWith('file') || way.endsWith('_FILE');
  const variable = VARIABLES[at] + (asFile ? '_FILE' : '');
  expect(faults).toEqual([{ option: `tls.${at}`, variable, message: expect.any(String) }]);
  expect(message).toContain(`  - tls.${at} (${variable}): `);
  expect(message).toMatch(says);
  expect(message).toMatch(remedy);
  const path = paths[at];
  // A wrong passphrase is reported with the path of the key that it does not open.
  if (path) expect(message).toContain(at === 'passphrase' ? paths.privateKey : path);
  // No content of the inputs.
  expect(withoutPaths(message, folder)).not.toMatch(/[A-Za-z0-9+/]{40}|open sesame|open barley/);
}

describe('A bad certificate, key or chain ends the start of an application', () => {
  it.each(ROWS)('$fault ($way)', (row) => expectFault(row));

  it('an empty chain given as text is an option that is malformed; an empty variable is one not set', async () => {
    const { application } = await startWith({ ...good(), chain: ' ' }, 'option, as text');
    await expect(application).rejects.toThrow(
      /tls\.chain \(SERVICE_TLS_CHAIN\): must be text or \{ file: path \}, and not empty/,
    );
  });

  it('a path where PEM text belongs (variable)', async () => {
    const { application } = await startWith({ ...good(), privateKey: '/run/secrets/key.pem' }, 'variable');
    await expect(application).rejects.toThrow(
      /tls\.privateKey \(SERVICE_TLS_PRIVATE_KEY\): .*It looks like a path.*whose name ends in _FILE/,
    );
  });

  it('all that is wrong at once', async () => {
    const chain = cut(simulator.chain);
    const given = { ...pair(issued.expired), privateKey: app.privateKey, chain };
    const { application } = await startWith(given, 'variable _FILE');
    const error = await application.catch((reason: unknown) => reason);
    const faults = (error as ServiceCertificateError).faults.map(({ variable }) => variable);
    expect(faults.sort()).toEqual([
      'SERVICE_TLS_CERTIFICATE_FILE',
      'SERVICE_TLS_CHAIN_FILE',
      'SERVICE_TLS_PRIVATE_KEY_FILE',
    ]);
  });

  it('a tls function that fails or returns nothing', async () => {
    const { tls: _, ...rest } = simulator.moduleOptions();
    const withSource = (source: () => Promise<never>) =>
      NestFactory.create(ServiceModule.forRoot({ ...rest, tls: source }), {
        logger: false,
        abortOnError: false,
      });
    const sealed = Object.assign(new Error('token s.1234 refused'), { code: 'VAULT_SEALED' });
    await expect(withSource(() => Promise.reject(sealed))).rejects.toThrow(
      /tls: the function failed \(VAULT_SEALED: token s\.1234 refused\)\. Look at its vault or store\.$/,
    );
    await expect(withSource(async () => ({}) as never)).rejects.toThrow(
      /tls\.certificate.* is missing: 'mtls' needs it, and the tls function returned none/,
    );
  });
});

describe('Forms that are accepted', () => {
  const forms: [Way, string, (text: string) => string][] = [
    ['option, as text', 'CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ['option, as a file', 'a byte order mark', (text) => `\uFEFF${text}`],
    ['variable', 'newlines escaped', (text) => text.replaceAll('\n', '\\n')],
    ['variable _FILE', 'base64', (text) => Buffer.from(text).toString('base64')],
  ];
  it.each(forms)('%s: %s', async (way, _name, form) => {
    const given = {
      certificate: form(app.certificate + simulator.chain),
      privateKey: form(app.privateKey),
      chain: form(simulator.chain),
    };
    const { application } = await startWith(given, way);
    await (await application).get(BanksService).list();
    expect(simulator.requests.at(-1)?.certificateSubject).toBe(app.subject);
  });
});

it('takes certificate, chain and key from one file that both variables name', async () => {
  const file = await fileOf(app.privateKey + app.certificate + simulator.chain);
  process.env.SERVICE_TLS_CERTIFICATE_FILE = process.env.SERVICE_TLS_PRIVATE_KEY_FILE = file;
  process.env.SERVICE_TLS_CHAIN_FILE = await fileOf(simulator.chain);
  await (await start(undefined)).get(BanksService).list();
  expect(simulator.requests.at(-1)?.certificateSubject).toBe(app.subject);
});

const openssl = findPeer('openssl');
itWith(openssl, 'a server that knows its root alone')(
  'a server that knows its root alone refuses ours: the hint names the issuer, whose certificate helps after ours',
  async () => {
    const [authority, ours] = await Promise.all([createAuthority(), createAuthority('Our')]);
    const client = await ours.client('ours');
    const [ca, cert, key] = await Promise.all(
      [ours.root.certificate, authority.serverChain, authority.server.key].map(fileOf),
    );
    // Node's own servers end the connection without an alert.
    const server = spawn(requirePeer(openssl), [
      ...['s_server', '-accept', '127.0.0.1:0', '-cert', cert, '-cert_chain', cert, '-key', key],
      ...['-CAfile', ca, '-Verify', '3', '-verify_return_error', '-www'],
    ]);
    try {
      let said = '';
      for await (const chunk of server.stdout) if ((said += String(chunk)).includes('ACCEPT')) break;
      const baseUrl = `https://localhost:${/ACCEPT [^\n]*:(\d+)/.exec(said)?.[1]}`;
      const refusal = async (certificate: string) => {
        const { urls, ...rest } = simulator.moduleOptions();
        const tls = { certificate, privateKey: client.key, chain: authority.chain };
        const module = ServiceModule.forRoot({
          ...rest,
          urls: { ...urls, baseUrl },
          tls,
          http: { retries: 0 },
        });
        const host = await NestFactory.createApplicationContext(module, {
          logger: false,
          abortOnError: false,
        });
        const listed = host.get(BanksService).list();
        return listed.catch((error: unknown) => error).finally(() => host.close());
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
      server.kill();
      await once(server, 'exit');
    }
  },
);

describe('The certificate in use', () => {
  const lines: string[] = [];
  const logger = {
    log: () => undefined,
    warn: (message: string) => void lines.push(`warn: ${message}`),
    error: (message: string) => void lines.push(`error: ${message}`),
  };
  afterEach(() => void (lines.length = 0));

  it('is shown with subject, issuer, fingerprint and dates, and is healthy', async () => {
    const auth = (await start(simulator.moduleOptions().tls as ServiceTlsOptions, logger)).get(
      ServiceAuthService,
    );
    const { subject, issuer, fingerprint256, validFrom, validTo } = new X509Certificate(app.certificate);
    expect(auth.certificate).toEqual({
      subject: subject.replace('\n', ', '),
      issuer,
      fingerprint256,
      validFrom: new Date(validFrom),
      validTo: new Date(validTo),
    });
    expect(auth.identityStatus).toEqual({
      healthy: true,
      certificate: auth.certificate,
      daysLeft: expect.any(Number),
    });
    expect(lines).toEqual([]);
  });

  it.each([
    [20, 'ends in 19 days'],
    [0.5, 'ends in 0 days'],
  ])('that ends in %d days is warned of with the date, through the host logger', async (days, within) => {
    const notAfter = new Date(Math.floor((Date.now() + days * DAY_MS) / 1000) * 1000);
    const soon = await simulator.issueCertificate({ commonName: 'soon', notAfter });
    const auth = (await start({ ...pair(soon), chain: simulator.chain }, logger)).get(ServiceAuthService);
    const date = notAfter.toISOString().replace('.000Z', 'Z');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^warn: tls\.certificate: "CN=soon"/);
    expect(lines[0]).toContain(`${within}, on ${date}`);
    expect(lines[0]).toMatch(/Generate a new one in the developer portal/);
    expect(auth.identityStatus).toMatchObject({ healthy: true, daysLeft: Math.ceil(days) - 1 });
  });

  it('that ends while the application runs is not healthy any more', async () => {
    // Late enough for a start on a busy machine.
    const notAfter = new Date(Math.ceil((Date.now() + 5_000) / 1000) * 1000);
    const brief = await simulator.issueCertificate({ commonName: 'brief', notAfter });
    const auth = (await start({ ...pair(brief), chain: simulator.chain }, logger)).get(ServiceAuthService);
    expect(auth.identityStatus).toMatchObject({ healthy: true, daysLeft: 0 });
    await sleep(notAfter.getTime() - Date.now() + 20);
    expect(auth.identityStatus).toMatchObject({ healthy: false, daysLeft: -1 });
  }, 15_000);

  it('serves other clients with the same identity: node:https and axios', async () => {
    const auth = (await start(simulator.moduleOptions().tls as ServiceTlsOptions)).get(ServiceAuthService);
    const url = `${simulator.urls.baseUrl}/banks/v1`;
    const headers = await auth.authorizationHeaders();
    const status = await new Promise((resolve, reject) => {
      get(url, { agent: auth.httpsAgent, headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      }).on('error', reject);
    });
    expect(status).toBe(200);
    expect((await axios.get(url, { httpsAgent: auth.httpsAgent, headers })).status).toBe(200);
    expect(simulator.requests.map(({ certificateSubject }) => certificateSubject)).toEqual([
      app.subject,
      app.subject,
    ]);
    // One pool for all of them.
    expect(new Set(simulator.requests.map(({ connection }) => connection)).size).toBe(1);
  });
});
