import { afterEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  BanksService,
  CustomersService,
  ServiceAuthService,
  ServiceConnectionError,
  ServiceHttpService,
  ServiceModule,
  getServiceToken,
  LinkSdkService,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { type DynamicModule, type INestApplication } from '@nestjs/common';
import { once } from 'node:events';
import { get } from 'node:https';
import { type Server, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { rawServer } from '../helpers/loopback.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';
import { startSimulator } from '../helpers/simulators.js';

describe('shutdown', () => {
  let simulator: ServiceSimulator;

  afterEach(() => simulator.stop());

  async function start(shutdownTimeout: number) {
    simulator = await startSimulator();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options, http: { shutdownTimeout } })],
    }).compile();
    module.useLogger(false);
    await module.init();
    return module;
  }

  it('lets a call in flight end, refuses new ones, and closes every connection', async () => {
    const module = await start(5_000);
    const banks = module.get(BanksService);
    await banks.list();
    simulator.fail({ path: '/banks/v1', fault: { delayMs: 400 } });
    let isUnderWay = true;
    const inFlight = banks.list().finally(() => (isUnderWay = false));
    await simulator.waitForRequest(({ face, status }) => face !== 'token' && status === undefined);
    const closed = module.close();
    // Nest calls other hooks before ours: until then calls are taken.
    let late: unknown;
    while (!(late instanceof Error)) late = await banks.list().catch((error: unknown) => error);
    expect(late).toMatchObject({ kind: 'closed' });
    expect(isUnderWay).toBe(true);
    expect(await inFlight).toBeDefined();
    await closed;
    await expect(banks.list()).rejects.toMatchObject({ kind: 'closed' });
    await expect(module.get(ServiceAuthService).getApiToken()).rejects.toBeInstanceOf(Error);
  });

  it('ends a call that outlasts http.shutdownTimeout', async () => {
    const module = await start(50);
    const banks = module.get(BanksService);
    simulator.fail({ path: '/banks/v1', fault: 'hang' });
    const outcome = banks.list().catch((error: unknown) => error);
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    await module.close();
    expect(await outcome).toBeInstanceOf(ServiceConnectionError);
    expect(await outcome).toMatchObject({ kind: 'closed' });
  });

  it('says of a POST that it ends that it may have been carried out', async () => {
    const module = await start(50);
    simulator.fail({ path: '/customers/v1', fault: { delayMs: 2_000 } });
    const outcome = rejection(module.get(CustomersService).create({ app_user_id: 'u-1' }));
    await simulator.waitForRequest(({ path }) => path === '/customers/v1');
    await module.close();
    expect(await outcome).toMatchObject({
      kind: 'closed',
      outcomeUnknown: true,
      method: 'POST',
      path: '/customers/v1',
    });
  });

  it('gives a call that waits for its token the same time', async () => {
    const module = await start(5_000);
    simulator.fail({ face: 'token', fault: { delayMs: 150 } });
    const waiting = module.get(BanksService).list();
    await simulator.waitForRequest(({ face }) => face === 'token');
    await module.close();
    expect(await waiting).toBeDefined();
  });

  it('ends a running token request', async () => {
    const module = await start(50);
    simulator.fail({ face: 'token', fault: 'hang' });
    const outcome = module
      .get(BanksService)
      .list()
      .catch((error: unknown) => error);
    await simulator.waitForRequest(({ face }) => face === 'token');
    const startedAt = performance.now();
    await module.close();
    expect(await outcome).toBeInstanceOf(Error);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

/** What Nest calls on a shutdown. Nest 11 does it again for each close() and signal, while the first still runs. */
type Hook = 'callBeforeShutdownHook' | 'callShutdownHook';

describe('shutdown hooks in any number and order', () => {
  const BEFORE = 'callBeforeShutdownHook';
  const SHUTDOWN = 'callShutdownHook';
  const ORDERS: Hook[][] = [
    [BEFORE, BEFORE, SHUTDOWN, SHUTDOWN],
    [BEFORE, SHUTDOWN, BEFORE, SHUTDOWN],
    [SHUTDOWN, BEFORE, SHUTDOWN, SHUTDOWN],
  ];
  const ENDINGS = { 'is answered': 600_000, 'is ended': 50 };

  for (const [ending, shutdownTimeout] of Object.entries(ENDINGS)) {
    it.each(ORDERS)(`end with a call that ${ending}: %s, %s, %s, %s`, async (...order) => {
      const simulator = await startSimulator();
      const logger = new CollectingLogger();
      const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
      const { module, banks } = await startModule({ ...options, http: { shutdownTimeout } }, logger);
      await banks.list();
      simulator.fail({ path: '/banks/v1', fault: ending === 'is ended' ? 'hang' : { delayMs: 100 } });
      const outcome = banks.list().then(
        () => 'is answered',
        (error: { kind: string }) => (error.kind === 'closed' ? 'is ended' : error),
      );
      await simulator.waitForRequest(({ path, status }) => path === '/banks/v1' && status === undefined);
      const hooks = module as unknown as Record<Hook, () => Promise<void>>;
      await Promise.all(order.map((hook) => hooks[hook]()));
      expect(await outcome).toBe(ending);
      for (const hook of order) await hooks[hook]();
      await expect(banks.list()).rejects.toMatchObject({ kind: 'closed' });
      const said = logger.lines.filter((line) => /^Shutdown/.test(String(line)));
      expect(said).toHaveLength(ending === 'is ended' ? 1 : 0);
      await module.close();
      await simulator.stop();
    });
  }

  it('starts nothing after the end', async () => {
    const simulator = await startSimulator();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
    const opened: string[] = [];
    const tokenStore = {
      open: async () => void opened.push('open'),
      get: async () => undefined,
      set: async () => undefined,
      delete: async () => undefined,
      close: async () => void opened.push('close'),
    };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options, tokenStore, startupCheck: 'fail' })],
    }).compile();
    module.useLogger(false);
    await (module as unknown as Record<Hook, () => Promise<void>>).callShutdownHook();
    await module.init();
    expect(opened).toEqual([]);
    expect(simulator.requests).toEqual([]);
    await module.close();
    await simulator.stop();
  });
});

describe('shutdown of a web host', () => {
  let simulator: ServiceSimulator;
  let app: INestApplication;
  const logger = new CollectingLogger();
  /** What an inbound request does. */
  let work: () => Promise<unknown>;
  let arrived = 0;

  async function start(http: ServiceModuleOptions['http'], ...others: DynamicModule[]) {
    simulator = await startSimulator();
    logger.lines.length = 0;
    arrived = 0;
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options, http: { timeout: 600_000, ...http } }), ...others],
    })
      .setLogger(logger)
      .compile();
    app = module.createNestApplication();
    app.use((_: unknown, response: ServerResponse) => {
      arrived += 1;
      response.setHeader('connection', 'close');
      work().then(
        () => response.end('done'),
        (error: { code?: string }) => response.end(error.code),
      );
    });
    await app.listen(0, '127.0.0.1');
    return {
      banks: app.get(BanksService),
      http: app.get(ServiceHttpService),
      auth: app.get(ServiceAuthService),
    };
  }

  const inbound = async (): Promise<string> => (await fetch(await app.getUrl())).text();
  /** Nest closes its server after beforeApplicationShutdown. */
  const serverClosing = async (): Promise<void> => {
    while ((app.getHttpServer() as Server).listening) await delay(5);
  };
  const shutdownLines = () => logger.lines.filter((line) => /^Shutdown/.test(String(line)));

  afterEach(() => simulator.stop());

  it('takes the calls that inbound requests begin meanwhile, and waits no longer than for them', async () => {
    const { banks } = await start({ shutdownTimeout: 600_000 });
    const { promise, resolve } = gate();
    work = () => promise.then(() => banks.list());
    const answer = inbound();
    await until(() => arrived === 1);
    const closed = app.close();
    await serverClosing();
    resolve();
    expect(await answer).toBe('done');
    await closed;
    await expect(banks.list()).rejects.toMatchObject({ kind: 'closed' });
    expect(shutdownLines()).toEqual([]);
  });

  it('aborts the remaining calls, logs how many, and refuses a call that a host delayed until then', async () => {
    const { banks, http, auth } = await start({ shutdownTimeout: 50, maxSockets: 1 });
    const { promise, resolve } = gate();
    http.axiosRef.interceptors.request.use(async (config) => {
      if (config.url === '/held') await promise;
      return config;
    });
    await banks.list();
    simulator.fail({ path: '/banks/v1', times: 5, fault: 'hang' });
    simulator.fail({ face: 'token', times: 5, fault: 'hang' });
    const connecting = app
      .get(LinkSdkService)
      .connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    const cut = [banks.list(), banks.list(), auth.getCustomerToken('c-2'), connecting].map(rejection);
    const held = rejection(http.get('/held'));
    work = () => banks.list();
    const answer = inbound();
    await until(
      () => arrived === 1 && simulator.requests.filter(({ status }) => status === undefined).length === 2,
    );
    simulator.fail({ path: '/own', fault: 'hang' });
    const own = once(get(`${simulator.urls.baseUrl}/own`, { agent: auth.httpsAgent }), 'error');
    await simulator.waitForRequest(({ path }) => path === '/own');
    const closed = app.close();
    for (const error of await Promise.all(cut)) expect(error).toMatchObject({ code: 'connection_closed' });
    expect(await answer).toBe('connection_closed');
    expect(await own).toMatchObject([{ code: 'ECONNRESET' }]);
    resolve();
    expect(await held).toMatchObject({ kind: 'closed' });
    await closed;
    expect(shutdownLines()).toEqual([
      'Shutdown: 5 calls were still running after http.shutdownTimeout (50 ms), and aborted.',
    ]);
    await expect(auth.getApiToken()).rejects.toMatchObject({ kind: 'closed' });
    await expect(auth.authorizationHeaders()).rejects.toMatchObject({ kind: 'closed' });
    expect(simulator.requests.filter(({ path }) => path === '/held')).toEqual([]);
  });

  it('aborts at once where the time is 0', async () => {
    const { banks } = await start({ shutdownTimeout: 0 });
    simulator.fail({ path: '/banks/v1', fault: 'hang' });
    work = () => banks.list();
    const answer = inbound();
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    const closed = app.close();
    expect(await answer).toBe('connection_closed');
    await closed;
  });

  it('shares nothing with another module of the application', async () => {
    const other = await ServiceSimulator.start();
    const options = other.moduleOptions({ environment: 'sandbox', authentication: 'app-token' });
    const named = ServiceModule.forRoot({ ...options, name: 'ksa', http: { shutdownTimeout: 600_000 } });
    const { banks } = await start({ shutdownTimeout: 0 }, named);
    const ksa = app.get<BanksService>(getServiceToken(BanksService, 'ksa'));
    const { promise, resolve } = gate();
    simulator.fail({ path: '/banks/v1', fault: 'hang' });
    const cut = rejection(banks.list());
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    work = () => promise.then(() => ksa.list());
    const answer = inbound();
    await until(() => arrived === 1);
    const closed = app.close();
    expect(await cut).toMatchObject({ kind: 'closed' });
    resolve();
    expect(await answer).toBe('done');
    await closed;
    await other.stop();
  });

  it('ends a call that waits for its proxy', async () => {
    const reached = gate();
    const proxy = await rawServer(() => reached.resolve());
    const { banks } = await start({ shutdownTimeout: 50, proxy: `http://127.0.0.1:${proxy.port}` });
    const cut = rejection(banks.list());
    await reached.promise;
    const closed = app.close();
    expect(await cut).toMatchObject({ kind: 'closed' });
    await closed;
    await proxy.close();
  });

  it('ends a call that waits for the certificate to be read again', async () => {
    simulator = await startSimulator();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'mtls' });
    const asked = gate();
    let times = 0;
    const tls = async () => {
      times += 1;
      if (times > 1) {
        asked.resolve();
        await new Promise(() => undefined);
      }
      return options.tls as object;
    };
    const timers = new TimerCount();
    const api = await startModule({ ...options, tls, http: { shutdownTimeout: 50, timeout: 600_000 } });
    const page = '<html>400 No required SSL certificate was sent</html>';
    simulator.fail({
      path: '/banks/v1',
      fault: { status: 400, body: page, headers: { 'content-type': 'text/html' } },
    });
    const cut = rejection(api.banks.list());
    await asked.promise;
    await api.module.close();
    timers.restore();
    expect(await cut).toMatchObject({ code: 'connection_closed', outcomeUnknown: false });
    // Else the process would not end before the function has had its time.
    expect(timers.running).toBe(0);
  });
});

function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5);
}
