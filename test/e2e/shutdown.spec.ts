import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type ArgumentsHost, type DynamicModule, type INestApplication } from '@nestjs/common';
import { HealthIndicatorService } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BanksService,
  CustomersService,
  getServiceToken,
  LinkSdkService,
  ServiceAuthService,
  ServiceExceptionFilter,
  ServiceHttpService,
  ServiceModule,
  type ServiceError,
  type ServiceModuleOptions,
  type TokenStore,
} from 'nestjs-service';
import { ServiceHealthIndicator } from 'nestjs-service/terminus';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { ServiceHealthCheck } from '../../lib/engine/health.js';
import { byRename } from '../helpers/certificate-files.js';
import { partOf } from '../helpers/in-soak.js';
import { rawServer } from '../helpers/loopback.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';
import { type Platform, startHost } from '../helpers/start-host.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';
import { until } from '../helpers/until.js';

const NEVER = 600_000;

function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

/** The shutdown hooks. Nest 11 calls them again for each close() and signal, even while the first shutdown still runs. */
type Hook = 'callBeforeShutdownHook' | 'callShutdownHook';
type Hooks = Record<Hook, () => Promise<void>>;

describe('shutdown of a ServiceModule', () => {
  let simulator: ServiceSimulator;
  const logger = new CollectingLogger();
  const shutdownLines = () => logger.lines.filter((line) => /^Shutdown/.test(String(line)));
  const options = () => simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
  const start = (shutdownTimeout: number) =>
    startModule({ ...options(), http: { timeout: NEVER, shutdownTimeout } }, logger);

  /** Sends the host's own request over the module's agent. Resolves with the HTTP status. */
  async function sendAsHost(path: string, { httpsAgent: agent }: ServiceAuthService): Promise<unknown> {
    const [answer] = (await once(get(simulator.urls.baseUrl + path, { agent }), 'response')) as [
      IncomingMessage,
    ];
    return answer.resume().statusCode;
  }

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  beforeEach(() => void (logger.lines.length = 0));
  afterEach(() => {
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  it('the shutdown waits for a call in flight, rejects new calls and leaves no connection', async () => {
    const { module, banks, auth } = await start(NEVER);
    await banks.list();
    simulator.fail({ path: '/banks/v1', fault: { delayMs: 400 } });
    let isInFlight = true;
    const inFlight = banks.list().finally(() => (isInFlight = false));
    await simulator.waitForRequest(({ path, status }) => path === '/banks/v1' && status === undefined);
    const closed = module.close();
    // Nest calls other hooks before ours. Until then the module still accepts calls.
    let late: unknown;
    while (!(late instanceof Error)) late = await banks.list().catch((error: unknown) => error);
    expect(late).toMatchObject({ kind: 'closed' });
    expect(isInFlight).toBe(true);
    expect(await inFlight).toHaveLength(10);
    await closed;
    await until(() => simulator.openConnections === 0);
    for (const call of [banks.list(), auth.getApiToken(), auth.authorizationHeaders()])
      await expect(call).rejects.toMatchObject({ kind: 'closed' });
    await expect(sendAsHost('/own', auth)).rejects.toMatchObject({ code: 'ERR_AGENT_CLOSED' });
  });

  it("the shutdown waits for a call that still needs its token, and for the host's own request", async () => {
    const { module, banks, auth } = await start(NEVER);
    simulator.fail({ face: 'token', fault: { delayMs: 150 } });
    simulator.fail({ path: '/own', fault: { delayMs: 400 } });
    const own = sendAsHost('/own', auth);
    const waiting = banks.list();
    await simulator.waitForRequest(({ face }) => face === 'token');
    await simulator.waitForRequest(({ path }) => path === '/own');
    await module.close();
    expect(await waiting).toHaveLength(10);
    // 400, because the host's request has no credentials.
    expect(await own).toBe(400);
  });

  it('a POST that the shutdown aborts rejects with outcomeUnknown: true and is not retried', async () => {
    const { module } = await start(50);
    simulator.fail({ path: '/customers/v1', fault: 'hang' });
    const outcome = rejection(module.get(CustomersService).create({ app_user_id: 'u-1' }));
    await simulator.waitForRequest(({ path }) => path === '/customers/v1');
    await module.close();
    const expected = { kind: 'closed', outcomeUnknown: true, method: 'POST', path: '/customers/v1' };
    expect(await outcome).toMatchObject(expected);
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it.each(['request', 'response'] as const)(
    "the shutdown aborts a call in which the application's own %s interceptor hangs",
    async (which) => {
      const { module, banks } = await start(50);
      let reached = false;
      const { interceptors } = module.get(ServiceHttpService).axiosRef;
      interceptors[which].use(() => {
        reached = true;
        return new Promise<never>(() => undefined);
      });
      const outcome = rejection(banks.list());
      await until(() => reached);
      await module.close();
      expect(await outcome).toMatchObject({ kind: 'closed', outcomeUnknown: false });
      expect(simulator.apiRequests).toHaveLength(which === 'request' ? 0 : 1);
    },
  );

  const BEFORE = 'callBeforeShutdownHook';
  const SHUTDOWN = 'callShutdownHook';
  it.each<[ending: string, ...Hook[]]>([
    ['gets its response', BEFORE, SHUTDOWN, BEFORE, SHUTDOWN],
    ['is aborted', BEFORE, BEFORE, SHUTDOWN, SHUTDOWN],
    ['is aborted', SHUTDOWN, BEFORE, SHUTDOWN, SHUTDOWN],
  ])(
    'the shutdown runs once and a call in flight %s if Nest calls the hooks %s, %s, %s, %s',
    async (ending, ...order) => {
      const isEnded = ending === 'is aborted';
      const { module, banks } = await start(isEnded ? 50 : NEVER);
      await banks.list();
      simulator.fail({ path: '/banks/v1', fault: isEnded ? 'hang' : { delayMs: 100 } });
      const outcome = banks.list().then(
        () => 'gets its response',
        (error: { kind: string }) => (error.kind === 'closed' ? 'is aborted' : error),
      );
      await simulator.waitForRequest(({ path, status }) => path === '/banks/v1' && status === undefined);
      const hooks = module as unknown as Hooks;
      await Promise.all(order.map((hook) => hooks[hook]()));
      expect(await outcome).toBe(ending);
      for (const hook of order) await hooks[hook]();
      await expect(banks.list()).rejects.toMatchObject({ kind: 'closed' });
      expect(shutdownLines()).toHaveLength(isEnded ? 1 : 0);
      await module.close();
    },
  );

  it('a module that is shut down before its start sends no request', async () => {
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options(), startupCheck: 'fail' })],
    }).compile();
    module.useLogger(false);
    await (module as unknown as Hooks).callShutdownHook();
    await module.init();
    expect(simulator.requests).toEqual([]);
    await module.close();
  });

  it('the shutdown aborts a call that waits for the tls function to be called again', async () => {
    const { tls: pems, ...others } = simulator.moduleOptions({ authentication: 'mtls' });
    const secondCallStarted = gate();
    let times = 0;
    const tls = async () => {
      times += 1;
      if (times > 1) {
        secondCallStarted.resolve();
        await new Promise(() => undefined);
      }
      return pems;
    };
    const timers = new TimerCount();
    const { module, banks } = await startModule({
      ...others,
      tls,
      http: { shutdownTimeout: 50, timeout: NEVER },
    });
    const page = '<html>400 No required SSL certificate was sent</html>';
    const fault = { status: 400, body: page, headers: { 'content-type': 'text/html' } };
    simulator.fail({ path: '/banks/v1', fault });
    const cut = rejection(banks.list());
    await secondCallStarted.promise;
    await module.close();
    timers.restore();
    expect(await cut).toMatchObject({ code: 'connection_closed', outcomeUnknown: false });
    // A timer left here would keep the process running until the timeout of the function.
    expect(timers.running).toBe(0);
  });

  describe('shutdown of a web host', () => {
    let app: INestApplication;
    /** The work that an inbound request does before its response. */
    let work: () => Promise<unknown>;
    let arrived = 0;

    async function listen(http: ServiceModuleOptions['http'], ...others: DynamicModule[]) {
      arrived = 0;
      const module = await Test.createTestingModule({
        imports: [ServiceModule.forRoot({ ...options(), http: { timeout: NEVER, ...http } }), ...others],
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
      return { banks: app.get(BanksService), http: app.get(ServiceHttpService) };
    }

    const inbound = async (): Promise<string> => (await fetch(await app.getUrl())).text();
    /** Nest closes its server after beforeApplicationShutdown. */
    const serverClosing = () => until(() => !(app.getHttpServer() as Server).listening);

    it('inbound requests may still start calls during the shutdown, which ends as soon as those calls have ended', async () => {
      const { banks } = await listen({ shutdownTimeout: NEVER });
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

    it('the shutdown aborts the calls that still run after http.shutdownTimeout and logs how many', async () => {
      const { banks, http } = await listen({ shutdownTimeout: 50, maxSockets: 1 });
      const auth = app.get(ServiceAuthService);
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
      const own = rejection(sendAsHost('/own', auth));
      await simulator.waitForRequest(({ path }) => path === '/own');
      const closed = app.close();
      for (const error of await Promise.all(cut)) expect(error).toMatchObject({ code: 'connection_closed' });
      expect(await answer).toBe('connection_closed');
      expect(await own).toMatchObject({ code: 'ECONNRESET' });
      expect(await held).toMatchObject({ kind: 'closed' });
      resolve();
      await closed;
      expect(shutdownLines()).toEqual([
        'Shutdown: 6 calls were still running after http.shutdownTimeout (50 ms), and aborted.',
      ]);
      expect(simulator.requests.filter(({ path }) => path === '/held')).toEqual([]);
    });

    it('http.shutdownTimeout: 0 aborts calls at once, but not those of another ServiceModule of the application', async () => {
      await using other = await startSimulator();
      const ofOther = other.moduleOptions({ environment: 'sandbox', authentication: 'app-token' });
      const named = ServiceModule.forRoot({ ...ofOther, name: 'ksa', http: { shutdownTimeout: NEVER } });
      const { banks } = await listen({ shutdownTimeout: 0 }, named);
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
    });

    it('the shutdown aborts a call that waits for its proxy', async () => {
      const reached = gate();
      const proxy = await rawServer(() => reached.resolve());
      const { banks } = await listen({ shutdownTimeout: 50, proxy: `http://127.0.0.1:${proxy.port}` });
      const cut = rejection(banks.list());
      await reached.promise;
      const closed = app.close();
      expect(await cut).toMatchObject({ kind: 'closed' });
      await closed;
      await proxy.close();
    });
  });
});

describe('inbound requests whose calls a shutdown aborts', () => {
  let simulator: ServiceSimulator;
  afterEach(() => simulator.stop());

  it.each<Platform>(['express', 'fastify'])(
    'callers of a host on %s get 503 if the shutdown aborts their call, and 502 if a change may have been executed',
    async (platform) => {
      simulator = await startSimulator();
      const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
      const http = { timeout: 600_000, shutdownTimeout: 50 };
      const host = await startHost(ServiceModule.forRoot({ ...options, http }), platform);
      simulator.fail({ path: /banks|customers/, times: 9, fault: 'hang' });
      simulator.fail({ when: ({ form }) => form?.scope === 'customer.c-1', times: 9, fault: 'hang' });
      const session = { customer_id: 'c-1', permissions: ['identity'] };
      const answers = [
        host.request('GET', '/banks'),
        host.request('POST', '/link-session', session),
        host.request('POST', '/customers', { app_user_id: 'u-1' }),
      ];
      for (const path of [/^\/banks/, /^\/customers/])
        await simulator.waitForRequest((request) => path.test(request.path));
      await simulator.waitForRequest(({ form }) => form?.scope === 'customer.c-1');
      await host.close();
      const [list, connect, create] = await Promise.all(answers);
      for (const { headers } of [list, connect, create]) {
        expect([headers.get('connection'), headers.get('retry-after')]).toEqual(['close', null]);
      }
      const unavailable = 'The service cannot be reached at the moment.';
      for (const { status, body } of [list, connect]) {
        expect(status).toBe(503);
        expect(body).toEqual({ statusCode: 503, message: unavailable, code: 'connection_closed' });
      }
      expect(create.status).toBe(502);
      expect(create.body).toEqual({
        statusCode: 502,
        message: 'The service failed to answer this call. The request may have been executed all the same.',
        code: 'connection_closed',
      });
    },
  );
});

const fail = (): never => {
  throw new Error('of the host');
};
const LOGGERS: [string, () => unknown][] = [
  ['throws', fail],
  ['returns a promise that rejects', () => Promise.reject(new Error('of the host'))],
];

/** A logger that accepts the lines of Nest but fails at each line of the module, as pino does after its stream has ended. */
function failingLogger(how: () => unknown) {
  const failed: string[] = [];
  const lines = new EventEmitter();
  const take = (line: string, ...more: unknown[]): unknown => {
    if (!String(more.at(-1)).startsWith('Service')) return undefined;
    failed.push(line);
    lines.emit('line', line);
    return how();
  };
  /** Resolves once a new line contains this text. */
  const logged = (part: string): Promise<void> =>
    new Promise((resolve) => lines.on('line', (line: string) => line.includes(part) && resolve()));
  return { logger: { log: take, warn: take, error: take, debug: take }, failed, logged };
}

// Jest itself fails a test for an unhandled rejection.
describe('host logger that fails', () => {
  let simulator: ServiceSimulator;

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterAll(() => simulator.stop());

  it.each(partOf(LOGGERS, 2))(
    'a logger that %s affects neither the start with an expiring certificate nor two rotations of its files',
    async (_, how) => {
      const folder = await mkdtemp(join(tmpdir(), 'throwing-host-'));
      const { logger, failed, logged } = failingLogger(how);
      const notAfter = new Date(Date.now() + 5 * 86_400_000);
      const [first, second, third] = await Promise.all([
        simulator.issueCertificate({ commonName: 'first', notBefore: new Date(0), notAfter }),
        simulator.issueCertificate({ commonName: 'second' }),
        simulator.issueCertificate({ commonName: 'third' }),
      ]);
      await byRename(folder, first);
      const tls = {
        certificate: { file: join(folder, 'tls.crt') },
        privateKey: { file: join(folder, 'tls.key') },
        chain: simulator.chain,
      };
      const { banks, auth, module } = await startModule({ ...simulator.moduleOptions(), tls }, logger);
      // The file watcher reloads the certificate by itself: an error thrown there would end the process.
      const followed = logged('is in use: "CN=second"');
      await byRename(folder, second);
      await followed;
      await byRename(folder, third);
      expect(await auth.reloadCertificate()).toBe(true);
      await banks.list();
      expect(simulator.requests.at(-1)).toMatchObject({ certificateSubject: 'CN=third', status: 200 });
      expect(failed).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/calls go to/),
          expect.stringMatching(/CN=first.* expires in [45] days/),
          expect.stringMatching(/new client identity is in use.*CN=third/),
        ]),
      );
      await module.close();
      await rm(folder, { recursive: true });
    },
  );

  it.each(LOGGERS)(
    'a logger that %s does not affect token requests, retries, failed calls, the exception filter or the health indicator',
    async (_, how) => {
      const { logger, failed } = failingLogger(how);
      const down = () => Promise.reject(new Error('down'));
      const tokenStore: TokenStore = { get: down, set: down, delete: down };
      const options = simulator.moduleOptions({ authentication: 'oauth' });
      // http.requestId throws too, so that the calls are sent without an id.
      const { auth, banks, http, module } = await startModule(
        { ...options, tokenStore, http: { requestId: fail } },
        logger,
      );
      expect(await auth.getApiToken()).toMatchObject({ scope: 'api' });
      expect(failed.at(-1)).toMatch(/^The token store has failed/);
      simulator.fail({ path: /banks/, fault: { status: 503 } });
      await banks.list();
      simulator.fail({ path: /odd/, fault: { status: 409 } });
      await expect(http.get('/odd/v1')).rejects.toMatchObject({ status: 409 });
      expect(failed.slice(-2)).toEqual([
        'GET /banks/v1: 503; another attempt follows',
        expect.stringMatching(/^GET \/odd\/v1: 409 after/),
      ]);
      simulator.fail({ path: /banks/, times: 2, fault: { status: 403 } });
      const refused = (await rejection(banks.list())) as ServiceError;
      const host = { getType: () => 'graphql' } as unknown as ArgumentsHost;
      expect(() => new ServiceExceptionFilter().catch(refused, host)).toThrow(
        expect.objectContaining({ extensions: { code: 'api_error', statusCode: 502 } }),
      );
      expect(failed.at(-1)).toMatch(/^502: api_error/);
      const health = new ServiceHealthIndicator(new HealthIndicatorService(), module.get(ServiceHealthCheck));
      expect(await health.isHealthy('service', { ping: true })).toMatchObject({
        service: { status: 'down', ping: { code: 'api_error 403' } },
      });
      expect(failed.at(-1)).toMatch(/^The health check could not list the banks/);
      await module.close();
    },
  );
});
