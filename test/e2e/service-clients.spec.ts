import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  getServiceToken,
  ServiceCertificateError,
  ServiceClients,
  ServiceConfigurationError,
  ServiceModule,
  ServiceStartupError,
  type ServiceClientOptions,
} from 'nestjs-service';
import { ServiceSimulator, ServiceTestingModule, stubService } from 'nestjs-service/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { onlyInSoak } from '../helpers/in-soak.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { modulesOfBlock, rejection } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';

describe('ServiceClients', () => {
  let simulator: ServiceSimulator;
  let other: ServiceSimulator;
  let folder: string;
  const { start, setVariables } = modulesOfBlock();

  beforeAll(async () => {
    [simulator, other] = await Promise.all([ServiceSimulator.start(), ServiceSimulator.start()]);
    folder = await mkdtemp(join(tmpdir(), 'service-clients-'));
  });
  afterEach(() => {
    for (const each of [simulator, other]) {
      each.clearFaults();
      each.clearRequests();
    }
  });
  afterAll(async () => {
    await Promise.all([simulator.stop(), other.stop(), rm(folder, { recursive: true })]);
  });

  /** A host that has no client of its own. */
  const startClients = async (logger: LoggerService | false = false) => {
    const module = await start({ providers: [ServiceClients] }, logger);
    const clients = module.get(ServiceClients);
    clients.allowFiles = true;
    return { module, clients };
  };

  /** mTLS with certificate files that are followed, and OAuth credentials. */
  async function tenant(name: string, of = simulator): Promise<ServiceClientOptions> {
    const options = of.moduleOptions({ environment: 'production', oauth: true });
    const [certificate, privateKey] = ['certificate', 'key'].map((part) => join(folder, `${name}.${part}`));
    await writeFile(certificate, options.tls.certificate ?? '');
    await writeFile(privateKey, options.tls.privateKey ?? '');
    const tls = { ...options.tls, certificate: { file: certificate }, privateKey: { file: privateKey } };
    return { ...options, name, tls };
  }

  /** Clients of one tenant that differ in their client secret, and are checked at the start. */
  async function startWithSecrets() {
    const { clients } = await startClients();
    const { oauth, ...options } = simulator.moduleOptions({
      environment: 'production',
      authentication: 'oauth',
    });
    const create = (clientSecret: string) =>
      clients.create({ ...options, name: 'acme', oauth: { ...oauth, clientSecret }, startupCheck: 'fail' });
    return { create };
  }

  it('make clients with tokens, connections and certificates of their own, named in the log', async () => {
    const logger = new CollectingLogger();
    const { clients } = await startClients(logger);
    const [a, b] = await Promise.all([
      clients.create(await tenant('acme')),
      clients.create(await tenant('bolt', other)),
    ]);
    for (const [client, of] of [
      [a, simulator],
      [b, other],
    ] as const) {
      expect(await client.banks.list()).toHaveLength(10);
      await client.customers.create({ app_user_id: 'u-1' });
      await client.http.get('/banks/v1');
      await client.sdk.connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
      expect(client.auth.certificate?.fingerprint256).toBe(of.application.fingerprint256);
      expect(of.apiRequests.map(({ certificateFingerprint256 }) => certificateFingerprint256)).toEqual(
        Array(3).fill(of.application.fingerprint256),
      );
      expect(of.tokenRequests).toHaveLength(1);
    }
    expect(a.auth.httpsAgent).not.toBe(b.auth.httpsAgent);
    expect(Object.keys(a).sort()).toEqual(['auth', 'banks', 'close', 'customers', 'http', 'sdk']);
    for (const name of ['acme', 'bolt']) {
      expect(logger.linesOf(`ServiceModule:${name}`)[0]).toMatch(/^production, mtls: calls go to/);
    }
  });

  it('read no variable, and name none in their errors', async () => {
    setVariables({ SERVICE_APP_TOKEN: 'of-another', SERVICE_ACME_APP_TOKEN: 'of-another' });
    const { clients } = await startClients();
    const { appToken: _, ...options } = simulator.moduleOptions({ environment: 'sandbox' });
    const error = (await rejection(
      clients.create({ ...options, name: 'acme' }),
    )) as ServiceConfigurationError;
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect(error.message).toMatch(
      /^The configuration of ServiceModule:acme is not usable:\n {2}- appToken: is missing/,
    );
    expect(error.message).not.toMatch(/SERVICE_|ConfigModule/);
    await expect(clients.create({ name: 'acme' })).rejects.toThrow(/urls\.sandboxUrl: is missing/);
  });

  it('check options as the module does, certificates and the start-up check too', async () => {
    const { clients } = await startClients();
    const options = simulator.moduleOptions({ environment: 'production' });
    const tls = { ...options.tls, privateKey: other.application.privateKey };
    expect(await rejection(clients.create({ ...options, name: 'a', tls }))).toBeInstanceOf(
      ServiceCertificateError,
    );
    await expect(clients.create({ ...options, name: 'a', isGlobal: true } as never)).rejects.toThrow(
      /isGlobal/,
    );
    const wrong = { ...options, name: 'a', appToken: 'wrong', startupCheck: 'fail' as const };
    expect(await rejection(clients.create(wrong))).toBeInstanceOf(ServiceStartupError);
    for (const name of [undefined, '', 'a\nb', 'x'.repeat(129), 7]) {
      await expect(clients.create({ ...options, name } as never)).rejects.toThrow(/name: must be given/);
    }
    await expect(clients.create(undefined as never)).rejects.toThrow(/name: must be given/);
  });

  it('remember a refused secret where no client can be made: it is not sent with each try', async () => {
    const { create } = await startWithSecrets();
    for (let inbound = 0; inbound < 40; inbound += 1) {
      expect(await rejection(create('wrong'))).toBeInstanceOf(ServiceStartupError);
    }
    expect(simulator.tokenRequests).toHaveLength(1);
    // Another secret, or that of another tenant, is tried at once.
    await (await create(simulator.clientSecret)).close();
    expect(simulator.tokenRequests).toHaveLength(2);
  });

  it('send a wrong secret once, also where many clients are made with it at once', async () => {
    const { create } = await startWithSecrets();
    const wrong = Array.from({ length: 40 }, () => rejection(create('wrong at once')));
    // Those of another tenant are not held up or refused.
    const right = Array.from({ length: 5 }, () => create(simulator.clientSecret));
    for (const error of await Promise.all(wrong)) expect(error).toBeInstanceOf(ServiceStartupError);
    for (const client of await Promise.all(right)) await client.close();
    const refused = simulator.tokenRequests.filter(({ status }) => status !== 200);
    expect([refused.length, simulator.tokenRequests.length]).toEqual([1, 6]);
  });

  it('read no file that options name, unless that is allowed', async () => {
    const { clients } = await startClients();
    clients.allowFiles = false;
    const file = join(folder, 'secret-of-the-server');
    await writeFile(file, simulator.appToken);
    const { tls, ...options } = simulator.moduleOptions({ environment: 'production', oauth: true });
    const named = { ...options, name: 'acme', appToken: { file } };
    const pems = Object.fromEntries(
      ['certificate', 'privateKey', 'passphrase', 'chain'].map((key) => [key, { file }]),
    );
    const oauth = { ...options.oauth, clientSecret: { file } };
    const error = await rejection(clients.create({ ...named, oauth, tls: pems }));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect((error as ServiceConfigurationError).faults.map(({ option }) => option).sort()).toEqual([
      'appToken',
      'oauth.clientSecret',
      'tls.certificate',
      'tls.chain',
      'tls.passphrase',
      'tls.privateKey',
    ]);
    expect((error as Error).message).toMatch(
      /appToken: names a file\..* injected ServiceClients: clients\.allowFiles = true/,
    );
    expect(simulator.requests).toEqual([]);

    // A function is code of the host.
    const { name: _, ...files } = await tenant('function');
    const made = await clients.create({ ...files, name: 'function', tls: () => files.tls as object });
    await made.banks.list();
    clients.allowFiles = true;
    const client = await clients.create({ ...named, tls });
    expect(await client.banks.list()).toHaveLength(10);
  });

  it('follow their files by one timer', async () => {
    const timers = new TimerCount();
    try {
      const { clients } = await startClients();
      const before = timers.running;
      const tenants = await Promise.all(['one', 'two', 'three'].map((name) => tenant(name)));
      const [first, ...others] = await Promise.all(
        tenants.map((options) => clients.create({ ...options, tls: { ...options.tls, reload: false } })),
      );
      // Of the dates of each certificate.
      const each = timers.running - before;
      await Promise.all([first, ...others].map((client) => client.close()));
      expect(timers.running).toBe(before);
      const followed = await Promise.all(tenants.map((options) => clients.create(options)));
      expect(timers.running - before).toBe(each + 1);
      await Promise.all(followed.map((client) => client.close()));
      expect(timers.running).toBe(before);
    } finally {
      timers.restore();
    }
  });

  it('are limited in number, and a closed client makes room', async () => {
    const { clients } = await startClients();
    expect(clients.limit).toBe(1_000);
    clients.limit = 2;
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    await expect(clients.create({ ...options, name: 'a', appToken: '' })).rejects.toThrow();
    const made = await Promise.allSettled(
      ['a', 'b', 'c'].map((name) => clients.create({ ...options, name })),
    );
    expect(made.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect((made[2] as PromiseRejectedResult).reason).toMatchObject({
      code: 'invalid_configuration',
      message: expect.stringMatching(
        /ServiceClients makes no more clients:\n {2}- limit: is 2, and 2 are open/,
      ),
    });
    const [first] = made as PromiseFulfilledResult<Awaited<ReturnType<ServiceClients['create']>>>[];
    await Promise.all([first.value.close(), first.value.close()]);
    await expect(first.value.banks.list()).rejects.toThrow(/^The client is closed, or its application is/);
    const third = await clients.create({ ...options, name: 'c' });
    await expect(clients.create({ ...options, name: 'd' })).rejects.toThrow(/limit/);
    await third.close();
    await clients.create({ ...options, name: 'd' });
    clients.limit = NaN;
    await expect(clients.create({ ...options, name: 'e' })).rejects.toThrow(/limit: is NaN, and 2 are open/);
  });

  it('warn once for all of what is probably a mistake', async () => {
    const logger = new CollectingLogger();
    const { clients } = await startClients(logger);
    const { tls, ...sandbox } = simulator.moduleOptions({ environment: 'sandbox', authentication: 'mtls' });
    const withoutChain = { ...sandbox, tls: { ...tls, chain: undefined } };
    const production = simulator.moduleOptions({ environment: 'production' });
    for (const name of ['acme', 'bolt']) {
      await clients.create({ ...withoutChain, name });
      const { sdk } = await clients.create({ ...production, name: `${name}-live` });
      await sdk.connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    }
    const [said, doubted, line] = [/^production, mtls: /, /app token to browsers/, /^sandbox, mtls: /].map(
      (words) => expect.stringMatching(words),
    );
    expect(logger.linesOf('ServiceModule:acme')).toEqual([
      line,
      expect.stringMatching(/^tls\.chain is not set/),
    ]);
    expect(logger.linesOf('ServiceModule:acme-live')).toEqual([said, doubted]);
    expect(logger.linesOf('ServiceModule:bolt')).toEqual([line]);
    expect(logger.linesOf('ServiceModule:bolt-live')).toEqual([said]);
  });

  onlyInSoak(it)(
    'leave nothing after close(): no timer, socket, listener or memory',
    async () => {
      const { clients } = await startClients();
      const timers = new TimerCount();
      try {
        const listeners = () => process.eventNames().map((name) => process.listenerCount(name));
        const before = { timers: timers.running, listeners: listeners() };
        const options = { ...(await tenant('acme')), http: { retries: 0 } };
        const round = async (calls: boolean) => {
          const client = await clients.create(options);
          if (calls) {
            await client.banks.list();
            await client.auth.getCustomerToken('c-1');
          }
          await client.close();
          await expect(client.banks.list()).rejects.toMatchObject({ kind: 'closed' });
        };
        const rounds = Array.from(Array(500).keys());
        for (const index of rounds.slice(0, 25)) await round(index % 5 === 0);
        const used = heapUsed();
        for (const index of rounds) await round(index % 40 === 0);
        // A client that stays has some 250 kB.
        expect(heapUsed() - used).toBeLessThan(1_000_000 + 20_000 * rounds.length);
        expect({ timers: timers.running, listeners: listeners() }).toEqual(before);
        while (simulator.openConnections > 0) await new Promise((resolve) => setImmediate(resolve));
      } finally {
        timers.restore();
      }
    },
    300_000,
  );

  it('end with the application: in its time, after which no client is made', async () => {
    const { module, clients } = await startClients();
    const options = { ...(await tenant('acme')), http: { shutdownTimeout: 200, retries: 0 } };
    const [patient, cut] = await Promise.all([clients.create(options), clients.create(options)]);
    simulator.fail({ path: '/slow', fault: { delayMs: 100 } });
    simulator.fail({ path: '/hangs', fault: 'hang' });
    const slow = rejection(patient.http.get('/slow'));
    const hangs = rejection(cut.http.get('/hangs'));
    for (const path of ['/slow', '/hangs'])
      await simulator.waitForRequest((request) => request.path === path);
    const opening = rejection(clients.create(options));
    const closed = module.close();
    expect(await opening).toMatchObject({ kind: 'closed' });
    await closed;
    expect(await slow).toMatchObject({ status: 404 });
    expect(await hangs).toMatchObject({ kind: 'closed' });
    await expect(patient.banks.list()).rejects.toMatchObject({ kind: 'closed' });
    expect(await rejection(clients.create(options))).toMatchObject({ code: 'connection_closed' });
  });

  it('reject a client whose start-up check the shutdown ends', async () => {
    const { module, clients } = await startClients();
    simulator.fail({ path: '/banks/v1', fault: 'hang' });
    const http = { shutdownTimeout: 50, retries: 0 };
    const checking = rejection(clients.create({ ...(await tenant('acme')), startupCheck: 'warn', http }));
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    await module.close();
    expect(await checking).toMatchObject({ code: 'connection_closed' });
  });

  it('are one for each module, and of a named one by its token', async () => {
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    const named = await start({ imports: [ServiceModule.forRoot({ ...options, name: 'ksa' })] });
    const clients = named.get(getServiceToken(ServiceClients, 'ksa'));
    expect(clients).toBeInstanceOf(ServiceClients);
    const plain = await start({ imports: [ServiceModule.forRoot(options)] });
    expect(plain.get(ServiceClients)).not.toBe(clients);
  });

  describe('in tests', () => {
    @Injectable()
    class Tenants {
      constructor(private readonly clients: ServiceClients) {}

      async banksOf(name: string): Promise<unknown> {
        const client = await this.clients.create({ name });
        return client.banks.list().finally(() => client.close());
      }
    }
    @Module({ imports: [ServiceModule.forRoot()], providers: [Tenants] })
    class OwnModule {}
    @Module({ providers: [Tenants, ServiceClients] })
    class TenantsModule {}

    for (const Host of [OwnModule, TenantsModule]) {
      it(`make doubles: stubService, ${Host.name}`, async () => {
        const builder = Test.createTestingModule({ imports: [Host] });
        const stub = stubService(builder, { clients: { acme: { banks: { list: () => ['Acme Bank'] } } } });
        const module = await builder.compile();
        await module.init();
        expect(await module.get(Tenants).banksOf('acme')).toEqual(['Acme Bank']);
        expect(await module.get(Tenants).banksOf('bolt')).toHaveLength(2);
        stub.use({ clients: { bolt: { banks: { list: () => [] } } } });
        expect(await module.get(Tenants).banksOf('bolt')).toEqual([]);
        expect(stub.calls.map(({ method, module: name }) => `${name} ${method}`)).toEqual([
          'acme banks.list',
          'bolt banks.list',
          'bolt banks.list',
        ]);
        expect(stub.callsOf('banks.list', 'bolt')).toHaveLength(2);
        stub.reset();
        expect(await module.get(Tenants).banksOf('bolt')).toHaveLength(2);
        await module.close();
      });
    }

    it('make doubles: ServiceTestingModule', async () => {
      const clients = { acme: { banks: { list: () => ['Acme Bank'] } } };
      const module = await start({
        imports: [ServiceTestingModule.forRoot({ clients })],
        providers: [Tenants],
      });
      expect(await module.get(Tenants).banksOf('acme')).toEqual(['Acme Bank']);
      expect(() =>
        ServiceTestingModule.forRoot({ clients: { acme: { banks: { lists: () => [] } as never } } }),
      ).toThrow(/lists/);
    });
  });
});

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
