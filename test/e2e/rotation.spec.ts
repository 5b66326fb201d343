import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import axios from 'axios';
import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type BanksService,
  ServiceCertificateError,
  type ServiceModuleOptions,
  ServiceTokenError,
  type TlsIdentityPems,
} from 'nestjs-service';
import { ServiceSimulator, type IssuedCertificate } from 'nestjs-service/testing';
import { byRename, bySymlinkSwap, inPlace } from '../helpers/certificate-files.js';
import { onlyInSoak, partOf, soakOr } from '../helpers/in-soak.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';
import { steadyLoad, type SteadyLoad } from '../helpers/steady-load.js';
import { until } from '../helpers/until.js';

// The soak run takes long, and longer on a busy machine.
jest.setTimeout(soakOr(600_000, 60_000));

let simulator: ServiceSimulator;
let folder: string;
let modules: StartedModule[];
let loads: SteadyLoad[];

beforeEach(async () => {
  modules = [];
  loads = [];
  folder = await mkdtemp(join(tmpdir(), 'rotation-'));
});
afterEach(async () => {
  await Promise.all(loads.map((load) => load.stop()));
  for (const { module } of modules) await module.close();
  await simulator.stop();
  await rm(folder, { recursive: true });
});

async function start(
  options: ServiceModuleOptions,
  logger?: Parameters<typeof startModule>[1],
): Promise<StartedModule> {
  const started = await startModule(options, logger);
  modules.push(started);
  return started;
}

/** Starts a module with these tls options, in production unless a mode is given. */
const startWith = (
  tls: ServiceModuleOptions['tls'],
  mode?: Parameters<ServiceSimulator['moduleOptions']>[0],
  logger?: Parameters<typeof startModule>[1],
) => start({ ...simulator.moduleOptions(mode), tls }, logger);

function loadOf(banks: BanksService): SteadyLoad {
  const load = steadyLoad(() => banks.list(), { perSecond: 200, concurrency: 20 });
  loads.push(load);
  return load;
}

const issue = (commonName: string) => simulator.issueCertificate({ commonName });
const pemsOf = ({ certificate, privateKey }: IssuedCertificate): TlsIdentityPems => ({
  certificate,
  privateKey,
  chain: simulator.chain,
});
const filesIn = (where: string) => ({
  certificate: { file: join(where, 'tls.crt') },
  privateKey: { file: join(where, 'tls.key') },
  chain: simulator.chain,
});
const statuses = () => new Set(simulator.requests.map(({ status }) => status));
const subjects = () => simulator.requests.map(({ certificateSubject }) => certificateSubject);
const exchanges = () =>
  simulator.apiRequests.map(({ status, certificateSubject }) => [status, certificateSubject]);

/** Revokes a certificate and drops open connections, because the simulator refuses it only in a new handshake. */
async function revoke(certificate: IssuedCertificate): Promise<void> {
  simulator.revokeCertificate(certificate);
  simulator.dropConnections();
  await until(() => simulator.openConnections === 0);
}

it('relative paths of certificate and secret files stay relative to the working directory of the start', async () => {
  simulator = await startSimulator();
  const before = process.cwd();
  await inPlace(folder, await issue('relative-0'));
  await writeFile(join(folder, 'client-secret'), simulator.clientSecret);
  process.chdir(folder);
  try {
    const options = simulator.moduleOptions({ oauth: true });
    const oauth = { ...options.oauth, clientSecret: { file: 'client-secret' } };
    const files = { certificate: { file: 'tls.crt' }, privateKey: { file: './tls.key' } };
    const tls = { ...files, chain: simulator.chain };
    const { auth, banks } = await start({ ...options, oauth, tls }, new CollectingLogger());
    process.chdir(tmpdir());
    const next = await issue('relative-1');
    await inPlace(folder, next);
    simulator.rotateClientSecret('another-secret');
    await writeFile(join(folder, 'client-secret'), 'another-secret');
    await auth.reloadCertificate();
    await banks.list();
    expect(subjects()).toEqual([next.subject]);
    expect((await auth.getCustomerToken('c-1')).scope).toBe('customer.c-1');
    await rm(join(folder, 'tls.key'));
    await auth.reloadCertificate();
    const message = `the file ${join(folder, 'tls.key')} cannot be read (ENOENT).`;
    expect(auth.identityStatus.lastReloadFault?.faults).toMatchObject([
      { option: 'tls.privateKey', message },
    ]);
  } finally {
    process.chdir(before);
  }
});

describe('replacement of certificate and key during calls', () => {
  const REPLACEMENTS = soakOr(10, 1);
  const LASTS_MS = soakOr(30_000, 0);

  it('certificate files that are overwritten, renamed or swapped by symlink come into use, and no call fails', async () => {
    // Responses take some time, so that calls are in flight at each change.
    simulator = await startSimulator({ delayMs: 20 });
    const context = new AsyncLocalStorage<string>();
    const followed: [string, unknown][] = [];
    const note = (line: string) => void followed.push([line, context.getStore()]);
    // Nest has one logger for all modules, so one logger records the async context of the lines of all three.
    const logger = { log: note, warn: note, error: note };
    const rotate = async (way: string, replace: typeof inPlace): Promise<void> => {
      const where = await mkdtemp(join(folder, `${way}-`));
      await replace(where, await issue(`${way}-0`));
      const { banks, auth } = await context.run('start', () => startWith(filesIn(where), {}, logger));
      await context.run('call', () => Promise.all([banks.list(), auth.reloadCertificate()]));
      const begun = performance.now();
      const load = context.run('call', () => loadOf(banks));
      const used = [`CN=${way}-0`];
      for (let count = 1; count <= REPLACEMENTS; count += 1) {
        const next = await issue(`${way}-${count}`);
        await replace(where, next);
        await simulator.waitForRequest((seen) => seen.certificateSubject === next.subject, 60_000);
        expect(auth.certificate?.subject).toBe(next.subject);
        used.push(next.subject);
      }
      await sleep(Math.max(0, begun + LASTS_MS - performance.now()));
      await load.stop();
      expect(load.failures).toEqual([]);
      expect(auth.identityStatus.lastReloadFault).toBeUndefined();
      const seen = subjects().filter((subject) => subject?.startsWith(`CN=${way}-`));
      expect([...new Set(seen)]).toEqual(used);
      expect(seen.at(-1)).toBe(used.at(-1));
      expect(seen).toHaveLength(load.done + 1);
      const changes = followed.filter(([line]) => line.includes(` is in use: "CN=${way}-`));
      expect(changes.map(([, startedIn]) => startedIn)).toEqual(used.slice(1).map(() => 'start'));
    };
    await Promise.all([
      rotate('in-place', inPlace),
      rotate('rename', byRename),
      rotate('symlink', bySymlinkSwap),
    ]);
    expect(statuses()).toEqual(new Set([200]));
    expect(simulator.refusals).toEqual([]);
  });

  it('reloadCertificate() replaces the certificate for calls and for users of httpsAgent, and no call fails', async () => {
    simulator = await startSimulator();
    let current = await issue('vault-0');
    let tlsFunctionCalls = 0;
    const { banks, auth } = await startWith(async () => {
      tlsFunctionCalls += 1;
      return pemsOf(current);
    });
    const agent = auth.httpsAgent;
    const load = loadOf(banks);
    for (let count = 1; count <= 5; count += 1) {
      current = await issue(`vault-${count}`);
      expect(await auth.reloadCertificate()).toBe(true);
      expect(await auth.reloadCertificate()).toBe(false);
      const { subject } = current;
      await simulator.waitForRequest(({ certificateSubject }) => certificateSubject === subject);
      await axios.get(`${simulator.urls.baseUrl}/banks/v1?other-client`, {
        httpsAgent: agent,
        headers: await auth.authorizationHeaders(),
      });
      const other = simulator.requests.filter(({ path }) => path.endsWith('other-client'));
      expect(other.at(-1)?.certificateSubject).toBe(subject);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(statuses()).toEqual(new Set([200]));
    expect(auth.httpsAgent).toBe(agent);
    expect(tlsFunctionCalls).toBe(11);
  });
});

describe('tokens with OAuth and mTLS combined', () => {
  const environments = ['production', 'sandbox'] as const;
  const BOUND = { authentication: 'oauth', clientCertificate: true, oauthMtls: true } as const;

  it.each(partOf(environments, 2))(
    'in %s, tokens bound to the old certificate are dropped with it, and calls succeed with new ones',
    async (environment) => {
      simulator = await startSimulator({ certificateBoundTokens: true });
      let current = await issue('bound-0');
      const { banks, auth } = await startWith(async () => pemsOf(current), { environment, ...BOUND });
      await banks.list();
      const customer = await auth.getCustomerToken('c-1');
      for (let count = 1; count <= 3; count += 1) {
        current = await issue(`bound-${count}`);
        expect(await auth.reloadCertificate()).toBe(true);
        await Promise.all(Array.from({ length: 20 }, () => banks.list()));
      }
      const tokens = simulator.tokenRequests.filter(({ form }) => form?.scope === 'api');
      expect(tokens.map(({ certificateSubject }) => certificateSubject)).toEqual(
        [0, 1, 2, 3].map((count) => `CN=bound-${count}`),
      );
      // No call was sent with a token of the old certificate.
      expect(statuses()).toEqual(new Set([200]));
      expect((await auth.getCustomerToken('c-1')).accessToken).not.toBe(customer.accessToken);
    },
  );

  onlyInSoak(it).each(environments)(
    'in %s, no call fails while the certificate of bound tokens changes under load',
    async (environment) => {
      simulator = await startSimulator({ certificateBoundTokens: true });
      let current = await issue('load-0');
      const { banks, auth } = await startWith(async () => pemsOf(current), { environment, ...BOUND });
      const load = loadOf(banks);
      for (let count = 1; count <= 5; count += 1) {
        current = await issue(`load-${count}`);
        await auth.reloadCertificate();
        const { subject } = current;
        await simulator.waitForRequest(
          ({ certificateSubject, face }) => face !== 'token' && certificateSubject === subject,
        );
      }
      await load.stop();
      expect(load.failures).toEqual([]);
    },
  );

  it.each(partOf(environments, 2))(
    'in %s without oauth.mtls, a new certificate keeps the tokens, which are not bound to it',
    async (environment) => {
      simulator = await startSimulator({ certificateBoundTokens: true });
      let current = await issue('free-0');
      const mode = { environment, authentication: 'oauth', clientCertificate: true } as const;
      const { banks, auth } = await startWith(async () => pemsOf(current), mode);
      await banks.list();
      current = await issue('free-1');
      await auth.reloadCertificate();
      await banks.list();
      expect(exchanges()).toEqual([
        [200, 'CN=free-0'],
        [200, 'CN=free-1'],
      ]);
      expect(simulator.tokenRequests).toHaveLength(1);
    },
  );

  it('a client secret that was refused with the old certificate is tried again with the new one', async () => {
    simulator = await startSimulator();
    let current = await issue('unknown');
    const { banks, auth } = await startWith(async () => pemsOf(current), BOUND);
    simulator.fail({ face: 'token', fault: { status: 401, json: { error: 'invalid_client' } } });
    for (let call = 0; call < 2; call += 1)
      expect(await rejection(banks.list())).toMatchObject({ code: 'token_refused' });
    expect(simulator.tokenRequests).toHaveLength(1);
    current = await issue('known');
    await auth.reloadCertificate();
    await banks.list();
    expect(simulator.tokenRequests).toHaveLength(2);
  });

  it('a call whose certificate is refused is replayed with the new certificate and a token bound to it', async () => {
    simulator = await ServiceSimulator.start({ certificateBoundTokens: true });
    const [first, second] = await Promise.all([issue('first'), issue('second')]);
    let current = first;
    const { banks } = await startWith(async () => pemsOf(current), BOUND);
    await banks.list();
    current = second;
    await revoke(first);
    await banks.list();
    expect(exchanges()).toEqual([
      [200, 'CN=first'],
      [200, 'CN=second'],
    ]);
  });
});

describe('refusal of the client certificate by the server', () => {
  let first: IssuedCertificate;
  let second: IssuedCertificate;

  /** Starts a module that watches files with the first certificate. */
  async function startWithFirst(logger?: CollectingLogger): Promise<StartedModule> {
    simulator = await ServiceSimulator.start();
    [first, second] = await Promise.all([issue('first'), issue('second')]);
    await bySymlinkSwap(folder, first);
    return startWith(filesIn(folder), {}, logger);
  }

  it('after a refused certificate, the replaced files are read again and the call succeeds', async () => {
    const logger = new CollectingLogger();
    const { banks, customers, auth } = await startWithFirst(logger);
    await banks.list();
    await revoke(first);
    await bySymlinkSwap(folder, second);
    // The POST is replayed too, because the server never reads a request on a connection whose certificate it refuses.
    await Promise.all([
      ...Array.from({ length: 10 }, () => banks.list()),
      customers.create({ app_user_id: 'u-1' }),
    ]);
    expect(auth.certificate?.subject).toBe('CN=second');
    expect(simulator.customers).toHaveLength(1);
    expect(subjects().slice(1)).toEqual(Array.from({ length: 11 }, () => 'CN=second'));
    const refused = 'POST /customers/v1: tls, the client certificate was refused; another attempt follows';
    expect(logger.lines).toContain(refused);
  });

  it('after a refused certificate, calls wait for the new files without sending, and none fails', async () => {
    const { banks, customers, auth } = await startWithFirst();
    await banks.list();
    await revoke(first);
    const calls: Promise<unknown>[] = [];
    const load = loadOf(banks);
    await until(() => simulator.refusals.length > 0);
    calls.push(customers.create({ app_user_id: 'u-1' }));
    await sleep(300);
    await bySymlinkSwap(folder, second);
    await Promise.all(calls);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(auth.certificate?.subject).toBe('CN=second');
    expect(simulator.customers).toHaveLength(1);
    // At most the 20 calls of the load and the POST had been sent before the first refusal arrived. Without the wait, 200 calls
    // a second would follow.
    expect(simulator.refusals.length).toBeLessThanOrEqual(21);
  });

  it('after a refused certificate without new files, calls fail after 2 s or their timeout, and later calls at once', async () => {
    const { banks } = await startWithFirst();
    await banks.list();
    await revoke(first);
    const begun = performance.now();
    const durationOf = async (call: Promise<unknown>) => {
      expect(await rejection(call)).toMatchObject({ code: 'certificate_refused' });
      return performance.now() - begun;
    };
    const [whole, short] = await Promise.all([
      durationOf(banks.list()),
      durationOf(banks.list({ timeout: 600 })),
    ]);
    expect(whole).toBeGreaterThanOrEqual(2_000);
    expect(short).toBeLessThan(whole - 500);
    const later = await durationOf(banks.list());
    expect(later - whole).toBeLessThan(900);
  });

  it('calls fail at once if a refused certificate has never worked', async () => {
    const { banks } = await startWithFirst();
    await revoke(first);
    const begun = performance.now();
    expect(await rejection(banks.list())).toMatchObject({ code: 'certificate_refused' });
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  it("a GET that a proxy's 403 page refuses is replayed with the certificate from the replaced files", async () => {
    const { banks } = await startWithFirst();
    const fault = { status: 403, body: '<h1>403 Forbidden</h1>', headers: { 'content-type': 'text/html' } };
    simulator.fail({ when: (request) => request.certificateSubject === 'CN=first', times: Infinity, fault });
    await bySymlinkSwap(folder, second);
    await banks.list();
    expect(exchanges()).toEqual([
      [403, 'CN=first'],
      [200, 'CN=second'],
    ]);
  });

  it.each(['GET', 'POST'])(
    "after a proxy's HTML 400 on an open connection, only a GET is replayed with the new certificate: %s",
    async (method) => {
      const { http, banks, customers } = await startWithFirst();
      await banks.list();
      // The connection stays open: the simulator answers its calls as nginx does.
      simulator.revokeCertificate(first);
      await bySymlinkSwap(folder, second);
      const call = http.request('/banks/v1', { method });
      if (method === 'GET') await call;
      else expect(await rejection(call)).toMatchObject({ status: 400, credentialFault: true });
      await customers.create({ app_user_id: 'u-1' });
      expect(exchanges()).toEqual([
        [200, 'CN=first'],
        [400, 'CN=first'],
        ...(method === 'GET' ? [[200, 'CN=second']] : []),
        [201, 'CN=second'],
      ]);
    },
  );

  it('calls with a refused certificate share one read of the tls function and each reject with certificate_refused', async () => {
    simulator = await ServiceSimulator.start();
    let current = simulator.application;
    let tlsFunctionCalls = 0;
    const { banks, auth } = await startWith(async () => {
      tlsFunctionCalls += 1;
      return pemsOf(current);
    });
    await banks.list();
    await revoke(current);
    const before = simulator.handshakes.base.total;
    const errors = await Promise.all(Array.from({ length: 20 }, () => rejection(banks.list())));
    for (const error of errors) {
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect(error).toMatchObject({ code: 'certificate_refused', certificate: auth.certificate });
      expect((error as Error).message).toContain(current.fingerprint256);
    }
    expect(tlsFunctionCalls).toBe(2);
    expect(simulator.handshakes.base.total - before).toBeLessThanOrEqual(20);
    expect(simulator.apiRequests).toHaveLength(1);
    current = await issue('renewed');
    await auth.reloadCertificate();
    await banks.list();
    expect(subjects().slice(1)).toEqual(['CN=renewed']);
  });
});

it('a tls function that hangs delays calls once by 2 s, if one of two servers behind an address refuses the certificate, and what it returns later is used', async () => {
  simulator = await ServiceSimulator.start();
  let returned = (pems: TlsIdentityPems): void => void pems;
  let tlsFunctionCalls = 0;
  const { banks, auth } = await startWith(async () => {
    tlsFunctionCalls += 1;
    if (tlsFunctionCalls === 1) return pemsOf(simulator.application);
    return new Promise((resolve) => (returned = resolve));
  });
  const body = '<html><title>400 The SSL certificate error</title></html>';
  let requests = 0;
  const rule = simulator.fail({
    times: Infinity,
    when: () => (requests += 1) % 2 === 0,
    fault: { status: 400, headers: { 'content-type': 'text/html' }, body },
  });
  const durations: number[] = [];
  let failures = 0;
  for (let call = 0; call < 40; call += 1) {
    const begun = performance.now();
    await banks.list().catch(() => (failures += 1));
    durations.push(performance.now() - begun);
  }
  const slow = durations.filter((ms) => ms > 1_500);
  expect([slow.length, tlsFunctionCalls, failures]).toEqual([1, 2, 20]);
  expect(slow[0]).toBeLessThan(4_000);
  rule.stop();
  const next = await issue('late');
  returned(pemsOf(next));
  await until(() => auth.certificate?.subject === next.subject);
  await banks.list();
  expect(subjects().at(-1)).toBe(next.subject);
});

describe('replacement of the client secret during calls', () => {
  const [ROTATIONS, ROUNDS, PAUSE_MS] = soakOr([6, 15, 200], [2, 2, 0]);

  const startOAuth = (clientSecret?: NonNullable<ServiceModuleOptions['oauth']>['clientSecret']) => {
    const { oauth, ...options } = simulator.moduleOptions({ authentication: 'oauth' });
    return start({ ...options, oauth: { ...oauth, ...(clientSecret && { clientSecret }) } });
  };

  it.each(['a function', 'a file'] as const)(
    'no call fails while the client secret from %s is replaced, even if it ends with a line break',
    async (source) => {
      // Short enough for several renewals in a long run, each of which needs the secret that is valid then.
      simulator = await startSimulator({ tokenLifetime: 10 });
      const file = join(folder, 'client-secret');
      await writeFile(file, `${simulator.clientSecret}\n`);
      const secret = source === 'a file' ? { file } : () => `${simulator.clientSecret}\n`;
      const { banks, auth } = await startOAuth(secret);
      const outcomes: Promise<unknown>[] = [];
      for (let rotation = 0; rotation <= ROTATIONS; rotation += 1) {
        if (rotation > 0) await writeFile(file, `${simulator.rotateClientSecret()}\n`);
        for (let round = 0; round < ROUNDS; round += 1) {
          const calls = Array.from({ length: 10 }, () => banks.list());
          outcomes.push(...calls, auth.getCustomerToken(`c-${rotation}-${round}`));
          await sleep(PAUSE_MS);
        }
        // A request that runs when its secret is replaced is refused once, and is made again with the new secret.
        await Promise.allSettled(outcomes);
      }
      const failed = (await Promise.allSettled(outcomes)).filter(({ status }) => status === 'rejected');
      expect(failed).toEqual([]);
      const granted = simulator.tokenRequests.filter(({ status }) => status === 200);
      expect(new Set(granted.map(({ form }) => form?.client_secret)).size).toBe(ROTATIONS + 1);
    },
  );

  it('calls wait for the new client secret if its file is written after the endpoint has switched, and none fails', async () => {
    simulator = await startSimulator({ tokenLifetime: 1 });
    const file = join(folder, 'client-secret');
    await writeFile(file, simulator.clientSecret);
    const { auth } = await startOAuth({ file });
    await auth.getApiToken();
    const secret = simulator.rotateClientSecret();
    const isRefused = () => simulator.tokenRequests.some(({ status }) => status === 401);
    const calls: Promise<unknown>[] = [];
    await until(() => {
      if (calls.length < 1_000) calls.push(auth.getApiToken(), auth.getCustomerToken(`c-${calls.length}`));
      return isRefused();
    });
    calls.push(auth.getApiToken(), auth.getCustomerToken('c-last'));
    await sleep(300);
    await writeFile(file, secret);
    await Promise.all(calls);
  });

  it('a client secret given as text that the service replaces causes at most two token requests, and errors say what to check', async () => {
    simulator = await startSimulator();
    const { banks } = await startOAuth();
    await banks.list();
    simulator.rotateClientSecret();
    await banks.list();
    simulator.revokeTokens();
    simulator.clearRequests();
    const errors = await Promise.all(Array.from({ length: 100 }, () => rejection(banks.list())));
    const tokenErrors = errors.filter((error) => error instanceof ServiceTokenError);
    expect(tokenErrors.length).toBeGreaterThan(0);
    for (const error of tokenErrors) {
      expect(error).toMatchObject({ code: 'token_refused', error: 'invalid_client', status: 401 });
      expect(error.hint).toMatch(/the previous one is invalid/);
    }
    // These calls got their 401 after the limit on forced renewals was reached.
    for (const error of errors)
      if (!tokenErrors.includes(error as never)) expect(error).toMatchObject({ status: 401 });
    expect(simulator.tokenRequests.length).toBeLessThanOrEqual(2);
  });

  it('a 401, 403 or 425 of a gateway does not count as a refused client secret, and the token request is retried', async () => {
    simulator = await startSimulator();
    const { banks } = await startOAuth();
    const page = { status: 403, headers: { 'content-type': 'text/html' }, body: '<h1>403 Forbidden</h1>' };
    for (const fault of [page, { status: 401, json: { message: 'Unauthorized' } }, { status: 425 }]) {
      simulator.revokeTokens();
      simulator.clearRequests();
      simulator.fail({ face: 'token', times: 2, fault });
      await banks.list();
      expect(simulator.tokenRequests.map(({ status }) => status)).toEqual([fault.status, fault.status, 200]);
    }
  });

  it('the error names the file if the file of the client secret is missing', async () => {
    simulator = await startSimulator();
    const file = join(folder, 'client-secret');
    await writeFile(file, simulator.clientSecret);
    const { auth } = await startOAuth({ file });
    await rm(file);
    expect(await rejection(auth.getCustomerToken('c-1'))).toMatchObject({
      code: 'client_secret_unavailable',
      message: expect.stringContaining(`oauth.clientSecret: the file ${file} cannot be read (ENOENT).`),
    });
  });
});
