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
  type TlsIdentityPems,
} from 'nestjs-service';
import { ServiceSimulator, type IssuedCertificate, type SimulatorOptions } from 'nestjs-service/testing';
import { byRename, bySymlinkSwap } from '../helpers/certificate-files.js';
import { onlyInSoak, partOf } from '../helpers/in-soak.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';
import { steadyLoad, type SteadyLoad } from '../helpers/steady-load.js';

/** Real time and load. */
const soakIt = onlyInSoak(it);
// A busy machine needs longer.
jest.setTimeout(60_000);

const quiet = () => undefined;
const SILENT = { log: quiet, warn: quiet, error: quiet };

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

async function simulate(options?: SimulatorOptions): Promise<void> {
  simulator = await ServiceSimulator.start(options);
}

async function start(
  tls: ServiceModuleOptions['tls'],
  mode: Parameters<ServiceSimulator['moduleOptions']>[0] = {},
  logger: Parameters<typeof startModule>[1] = SILENT,
): Promise<StartedModule> {
  const started = await startModule({ ...simulator.moduleOptions(mode), tls }, logger);
  modules.push(started);
  return started;
}

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

async function until(condition: () => boolean, timeoutMs = 10_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`It did not come to that within ${timeoutMs} ms`);
    await sleep(10);
  }
}

describe('Certificate and key are replaced while calls run', () => {
  soakIt(
    'a pair that does not match for a while: the last good one stays, identityStatus says why, it is logged once',
    async () => {
      await simulate();
      const errors: string[] = [];
      const logger = { ...SILENT, error: (message: string) => void errors.push(message) };
      const [first, second] = await Promise.all([issue('first'), issue('second')]);
      await byRename(folder, first);
      const { banks, auth } = await start(filesIn(folder), {}, logger);
      const load = loadOf(banks);
      await writeFile(join(folder, 'tls.crt'), second.certificate);
      await until(() => auth.identityStatus.lastReloadFault !== undefined);
      expect(await auth.reloadCertificate()).toBe(false);
      expect(auth.identityStatus).toMatchObject({
        healthy: true,
        certificate: { subject: 'CN=first' },
        lastReloadFault: {
          at: expect.any(Date),
          faults: [
            { option: 'tls.privateKey', message: expect.stringMatching(/key of another certificate/) },
          ],
        },
      });
      expect(errors).toEqual([
        expect.stringMatching(/one before stays in use:\n {2}- tls\.privateKey: the file/),
      ]);
      expect(new Set(subjects())).toEqual(new Set(['CN=first']));

      await writeFile(join(folder, 'tls.key'), second.privateKey);
      await until(() => auth.certificate?.subject === 'CN=second');
      expect(auth.identityStatus.lastReloadFault).toBeUndefined();
      await simulator.waitForRequest(({ certificateSubject }) => certificateSubject === 'CN=second');
      await load.stop();
      expect(load.failures).toEqual([]);
      expect(statuses()).toEqual(new Set([200]));
    },
  );
});

it('files are followed in the async context of the start, whoever calls meanwhile', async () => {
  await simulate();
  const context = new AsyncLocalStorage<string>();
  const told: [string, string | undefined][] = [];
  const logger = { ...SILENT, log: (line: string) => void told.push([line, context.getStore()]) };
  const [first, second, third] = await Promise.all([issue('first'), issue('second'), issue('third')]);
  await byRename(folder, first);
  const { banks, auth } = await context.run('start', () => start(filesIn(folder), {}, logger));
  await context.run('call', () => Promise.all([banks.list(), auth.reloadCertificate()]));
  const contextOf = (subject: string) => told.find(([line]) => line.includes(`in use: "${subject}"`))?.[1];
  for (const next of [second, third]) {
    await byRename(folder, next);
    await until(() => contextOf(next.subject) !== undefined);
    expect(contextOf(next.subject)).toBe('start');
  }
});

describe('A function as the source', () => {
  soakIt(
    'is called by reloadCertificate(); no call fails, and other clients use the new certificate too',
    async () => {
      await simulate();
      let current = await issue('vault-0');
      let asked = 0;
      const { banks, auth } = await start(async () => {
        asked += 1;
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
      expect(asked).toBe(11);
    },
  );

  it('that fails, or returns nothing, leaves the last good certificate in use', async () => {
    await simulate();
    let answer: () => Promise<TlsIdentityPems> = async () => pemsOf(simulator.application);
    const { banks, auth } = await start(() => answer());
    const reasons: [() => Promise<TlsIdentityPems>, RegExp][] = [
      [async () => ({}), /returned none, and there was one before/],
      [async () => ({ chain: simulator.chain }), /returned none, and there was one before/],
      [() => Promise.reject(new TypeError('no vault')), /the function failed \(TypeError: no vault\)/],
    ];
    for (const [bad, expected] of reasons) {
      answer = bad;
      expect(await auth.reloadCertificate()).toBe(false);
      expect(auth.identityStatus.lastReloadFault?.faults).toEqual(
        expect.arrayContaining([expect.objectContaining({ message: expect.stringMatching(expected) })]),
      );
      await banks.list();
    }
    answer = async () => pemsOf(simulator.application);
    expect(await auth.reloadCertificate()).toBe(false);
    expect(auth.identityStatus.lastReloadFault).toBeUndefined();
    expect(new Set(subjects())).toEqual(new Set([simulator.application.subject]));
  });
});

describe('Tokens, where OAuth and mTLS are combined', () => {
  const environments = ['production', 'sandbox'] as const;
  const BOUND = { authentication: 'oauth', clientCertificate: true, oauthMtls: true } as const;

  it.each(partOf(environments, 2))(
    '%s: those bound to the old certificate are dropped with it; calls go on',
    async (environment) => {
      await simulate({ certificateBoundTokens: true });
      let current = await issue('bound-0');
      const { banks, auth } = await start(async () => pemsOf(current), { environment, ...BOUND });
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

  soakIt.each(environments)(
    '%s: no call fails while the certificate changes under load',
    async (environment) => {
      await simulate({ certificateBoundTokens: true });
      let current = await issue('load-0');
      const { banks, auth } = await start(async () => pemsOf(current), { environment, ...BOUND });
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
    '%s: those not bound to it (no oauth.mtls) are kept, with the API called by certificate',
    async (environment) => {
      await simulate({ certificateBoundTokens: true });
      let current = await issue('free-0');
      const mode = { environment, authentication: 'oauth', clientCertificate: true } as const;
      const { banks, auth } = await start(async () => pemsOf(current), mode);
      await banks.list();
      current = await issue('free-1');
      await auth.reloadCertificate();
      await banks.list();
      expect(simulator.apiRequests.map(({ certificateSubject }) => certificateSubject)).toEqual([
        'CN=free-0',
        'CN=free-1',
      ]);
      expect(simulator.tokenRequests).toHaveLength(1);
      expect(statuses()).toEqual(new Set([200]));
    },
  );
});

describe('Connections', () => {
  soakIt(
    '500 calls at concurrency 20 use at most 20 handshakes; after idle closing, sessions are resumed',
    async () => {
      await simulate({ keepAliveTimeoutMs: 2_500 });
      const { banks } = await start(pemsOf(simulator.application));
      let left = 500;
      const worker = async () => {
        while (left > 0) {
          left -= 1;
          await banks.list();
        }
      };
      await Promise.all(Array.from({ length: 20 }, worker));
      const { total } = simulator.handshakes.base;
      expect(simulator.requests).toHaveLength(500);
      expect(total).toBeLessThanOrEqual(20);

      await until(() => simulator.openConnections === 0);
      const before = simulator.handshakes.base;
      await Promise.all(Array.from({ length: 20 }, () => banks.list()));
      const after = simulator.handshakes.base;
      expect(after.total).toBeGreaterThan(before.total);
      expect(after.resumed - before.resumed).toBe(after.total - before.total);
      expect(statuses()).toEqual(new Set([200]));
    },
  );
});

describe('The server refuses our certificate while the application runs', () => {
  /** Connections open now would be answered, not refused. */
  async function revoke(certificate: IssuedCertificate): Promise<void> {
    simulator.revokeCertificate(certificate);
    simulator.dropConnections();
    await until(() => simulator.openConnections === 0);
  }

  it('and the files were already replaced: they are read again, and the call succeeds', async () => {
    await simulate();
    const [first, second] = await Promise.all([issue('first'), issue('second')]);
    await bySymlinkSwap(folder, first);
    const logger = new CollectingLogger();
    const { banks, customers, auth } = await start(filesIn(folder), {}, logger);
    await banks.list();
    await revoke(first);
    await bySymlinkSwap(folder, second);
    // A POST too: a request on a refused connection was never read.
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

  it.each(
    partOf(
      [
        [403, 'text/html', '<h1>403 Forbidden</h1>'],
        [401, 'text/html', '<h1>401 Unauthorized</h1>'],
        [496, 'text/plain', ''],
      ] as const,
      3,
    ),
  )("by a proxy's %i: the same for a GET", async (status, type, body) => {
    await simulate();
    const [first, second] = await Promise.all([issue('first'), issue('second')]);
    await bySymlinkSwap(folder, first);
    const { banks } = await start(filesIn(folder));
    const fault = { status, body, headers: { 'content-type': type } };
    simulator.fail({ when: (request) => request.certificateSubject === 'CN=first', times: Infinity, fault });
    await bySymlinkSwap(folder, second);
    await banks.list();
    expect(simulator.apiRequests.map((request) => [request.status, request.certificateSubject])).toEqual([
      [status, 'CN=first'],
      [200, 'CN=second'],
    ]);
  });

  it.each(['GET', 'POST'])(
    "by a proxy's HTML 400 on an open connection: a GET is sent again, no POST is sent twice: %s",
    async (method) => {
      await simulate();
      const [first, second] = await Promise.all([issue('first'), issue('second')]);
      await bySymlinkSwap(folder, first);
      const { http, banks, customers } = await start(filesIn(folder));
      await banks.list();
      // The connection stays open: the simulator answers its calls as nginx does.
      simulator.revokeCertificate(first);
      await bySymlinkSwap(folder, second);
      const call = http.request('/banks/v1', { method });
      if (method === 'GET') await call;
      else expect(await rejection(call)).toMatchObject({ status: 400, credentialFault: true });
      await customers.create({ app_user_id: 'u-1' });
      expect(
        simulator.apiRequests.map(({ status, certificateSubject }) => [status, certificateSubject]),
      ).toEqual([
        [200, 'CN=first'],
        [400, 'CN=first'],
        ...(method === 'GET' ? [[200, 'CN=second']] : []),
        [201, 'CN=second'],
      ]);
    },
  );

  it('and there is nothing new: a typed error for each call, the files are read once for all', async () => {
    await simulate();
    let asked = 0;
    const { banks, auth } = await start(async () => {
      asked += 1;
      return pemsOf(simulator.application);
    });
    await banks.list();
    await revoke(simulator.application);
    const before = simulator.handshakes.base.total;
    const errors = await Promise.all(Array.from({ length: 20 }, () => rejection(banks.list())));
    const { fingerprint256 } = simulator.application;
    for (const error of errors) {
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect(error).toMatchObject({ code: 'certificate_refused', certificate: auth.certificate });
      expect((error as Error).message).toContain(fingerprint256);
    }
    expect(asked).toBe(2);
    expect(simulator.handshakes.base.total - before).toBeLessThanOrEqual(20);
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it('works again with the next certificate', async () => {
    await simulate();
    let current = simulator.application;
    const { banks, auth } = await start(async () => pemsOf(current));
    await revoke(current);
    expect(await rejection(banks.list())).toBeInstanceOf(ServiceCertificateError);
    current = await issue('renewed');
    await auth.reloadCertificate();
    await banks.list();
    expect(subjects()).toEqual(['CN=renewed']);
  });
});
