import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Logger, Module, type INestApplication } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import {
  createServiceClient,
  InjectService,
  ServiceApiError,
  ServiceAuthService,
  type ServiceClient,
  ServiceConnectionError,
  ServiceModule,
  ServiceRequestError,
  ServiceTokenError,
  type IdentityStatus,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceHealthIndicator, type ServiceHealthOptions } from 'nestjs-service/terminus';
import { serviceErrors, ServiceSimulator, stubService, type ServiceDoubles } from 'nestjs-service/testing';
import { CachedCheck } from '../../lib/engine/health.js';
import { SILENT } from '../../lib/telemetry/telemetry.js';
import { FakeClock, settle } from '../helpers/fake-clock.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly service: ServiceHealthIndicator,
    @InjectService(ServiceHealthIndicator, 'ksa') private readonly ksa: ServiceHealthIndicator,
  ) {}

  @Get()
  check() {
    return this.health.check([
      () => this.service.isHealthy('service', { ping: true }),
      () => this.ksa.isHealthy('ksa', { ping: true }),
    ]);
  }
}

describe('CachedCheck', () => {
  let clock: FakeClock;
  let requests: { timeoutMs: number; resolve: () => void; reject: (error: unknown) => void }[];
  let lines: string[];
  let check: { getOutcome: (timeoutMs: number) => ReturnType<CachedCheck['getOutcome']> };

  beforeEach(() => {
    clock = new FakeClock({ start: Date.UTC(2030, 0, 1) });
    requests = [];
    lines = [];
    const request = (timeoutMs: number) =>
      new Promise<void>((resolve, reject) => requests.push({ timeoutMs, resolve, reject }));
    const cached = new CachedCheck(clock, 'It failed', request);
    const log = { ...SILENT, warn: (line: string) => void lines.push(line) };
    check = { getOutcome: (timeoutMs) => cached.getOutcome(timeoutMs, log) };
  });

  it('makes one request for all checks within a minute, and another one afterwards', async () => {
    const first = [check.getOutcome(3_000), check.getOutcome(3_000)];
    await settle();
    requests[0].resolve();
    const ok = { ok: true, checkedAt: '2030-01-01T00:00:00.000Z' };
    expect(await Promise.all(first)).toEqual([ok, ok]);
    await clock.advance(59_999);
    expect(await check.getOutcome(3_000)).toEqual(ok);
    expect(requests).toHaveLength(1);
    await clock.advance(1);
    const next = check.getOutcome(2_000);
    await settle();
    expect(requests.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000, 10_000]);
    requests[1].resolve();
    expect(await next).toEqual({ ok: true, checkedAt: '2030-01-01T00:01:00.000Z' });
    expect(clock.timers).toBe(0);
  });

  it.each([
    ['token_refused', new ServiceTokenError({ code: 'token_refused', status: 400, message: 'secret' })],
    ['connection_refused', new ServiceConnectionError({ kind: 'refused', message: 'secret' })],
    ['api_error 503', new ServiceApiError({ status: 503, message: 'secret', method: 'GET', path: '/' })],
    ['unknown', new Error('secret')],
  ])(
    'repeats the request 10 s after a failure, logs it once a minute, and shows only its code: %s',
    async (code, error) => {
      const outcome = check.getOutcome(3_000);
      await settle();
      requests[0].reject(error);
      const failed = { ok: false, code, checkedAt: '2030-01-01T00:00:00.000Z' };
      expect(await outcome).toEqual(failed);
      await clock.advance(9_999);
      expect(await check.getOutcome(3_000)).toEqual(failed);
      expect(requests).toHaveLength(1);
      await clock.advance(1);
      const next = check.getOutcome(3_000);
      await settle();
      requests[1].reject(error);
      expect(await next).toMatchObject({ ok: false, code });
      expect(lines).toEqual([expect.stringMatching(/^It failed: .*secret/)]);
      await clock.advance(50_000);
      const later = check.getOutcome(3_000);
      await settle();
      requests[2].reject(error);
      await later;
      expect(lines).toHaveLength(2);
    },
  );

  it('logs a different failure at once', async () => {
    for (const [index, kind] of (['refused', 'dns'] as const).entries()) {
      const outcome = check.getOutcome(3_000);
      await settle();
      requests[index].reject(new ServiceConnectionError({ kind, message: 'secret' }));
      await outcome;
      await clock.advance(10_000);
    }
    expect(lines).toHaveLength(2);
  });

  it('lets each caller wait only as long as it wants, while the request goes on for the others', async () => {
    const hasty = check.getOutcome(100);
    const patient = check.getOutcome(3_000);
    await clock.advance(100);
    expect(await hasty).toEqual({ ok: false, code: 'connection_timeout' });
    requests[0].resolve();
    expect(await patient).toMatchObject({ ok: true });
    expect(await check.getOutcome(100)).toMatchObject({ ok: true });
    expect(requests).toHaveLength(1);
  });
});

describe('ServiceHealthIndicator', () => {
  let simulator: ServiceSimulator;
  let other: ServiceSimulator;
  let module: TestingModule;
  let app: INestApplication | undefined;
  let logger: CollectingLogger;

  beforeAll(async () => {
    [simulator, other] = await Promise.all([startSimulator(), ServiceSimulator.start()]);
  });
  beforeEach(() => {
    logger = new CollectingLogger();
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
    simulator.clearFaults();
    simulator.clearRequests();
    other.clearRequests();
  });
  afterAll(() => Promise.all([simulator.stop(), other.stop()]));

  async function start(
    options: ServiceModuleOptions,
    ksa?: ServiceModuleOptions,
  ): Promise<ServiceHealthIndicator> {
    @Module({
      imports: [
        TerminusModule,
        ServiceModule.forRoot({ http: { retries: 0, shutdownTimeout: 200 }, ...options }),
        ServiceModule.forRoot({ name: 'ksa', ...(ksa ?? other.moduleOptions({ environment: 'sandbox' })) }),
      ],
      controllers: [HealthController],
      providers: [ServiceHealthIndicator, ServiceHealthIndicator.forModule('ksa')],
    })
    class HealthModule {}
    return indicatorOf(Test.createTestingModule({ imports: [HealthModule] }));
  }

  async function indicatorOf(builder: TestingModuleBuilder): Promise<ServiceHealthIndicator> {
    module = await builder.setLogger(logger).compile();
    app = await module.createNestApplication().init();
    return module.get(ServiceHealthIndicator);
  }

  async function health() {
    await app?.listen(0, '127.0.0.1');
    const response = await fetch(`${await app?.getUrl()}/health`);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  /** The same with doubles: what a certificate of another age would say. */
  async function startStub(auth: ServiceDoubles['auth']): Promise<ServiceHealthIndicator> {
    const builder = Test.createTestingModule({
      imports: [TerminusModule, ServiceModule.forRoot()],
      providers: [ServiceHealthIndicator],
    });
    stubService(builder, { auth });
    return indicatorOf(builder);
  }

  const mtls = () => simulator.moduleOptions({ environment: 'production', authentication: 'mtls' });
  const oauth = () => simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });

  it('reports each module by its own name, over HTTP', async () => {
    await start(mtls(), other.moduleOptions({ environment: 'sandbox', authentication: 'oauth' }));
    const { status, body } = await health();
    expect(status).toBe(200);
    const checked = { ok: true, checkedAt: expect.any(String) };
    expect(body.details).toEqual({
      service: {
        status: 'up',
        certificate: { validTo: expect.stringMatching(/^\d{4}-.*Z$/), daysLeft: expect.any(Number) },
        ping: checked,
      },
      ksa: { status: 'up', token: checked, ping: checked },
    });
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/banks/v1']);
    expect(other.requests.map(({ path }) => path)).toEqual(['/oauth2/token', '/banks/v1']);
    const again = await fetch(`${await app?.getUrl()}/health`);
    expect(again.status).toBe(200);
    expect([simulator.requests.length, other.requests.length]).toEqual([1, 2]);
  });

  it('answers 503 if a module is not healthy, and names it', async () => {
    await start(mtls());
    simulator.fail({ path: '/banks/v1', fault: { status: 500 } });
    const { status, body } = await health();
    expect(status).toBe(503);
    expect(body).toMatchObject({
      error: {
        service: {
          status: 'down',
          message: 'Listing the banks fails (api_error 500).',
          ping: { ok: false, code: 'api_error 500' },
        },
      },
      info: { ksa: { status: 'up' } },
    });
    expect(logger.linesOf('ServiceHealthIndicator')).toEqual([
      expect.stringMatching(
        /^The health check could not list the banks: api_error: GET \/banks\/v1: HTTP 500/,
      ),
    ]);
  });

  it('uses a token from the cache, without a request and during its renewal', async () => {
    const indicator = await start(oauth());
    const auth = module.get(ServiceAuthService);
    await auth.getApiToken();
    simulator.fail({ face: 'token', fault: 'hang', times: 99 });
    for (let probe = 0; probe < 20; probe += 1) {
      expect(await indicator.isHealthy('s')).toEqual({ s: { status: 'up', token: { ok: true } } });
    }
    expect(simulator.tokenRequests).toHaveLength(1);
  });

  it('sends one request to a failing token endpoint, however many probes come, and notices a token that others got', async () => {
    const indicator = await start(oauth());
    const fault = simulator.fail({ face: 'token', fault: { status: 503 }, times: 99 });
    const down = {
      status: 'down',
      token: { ok: false, code: 'token_unavailable', checkedAt: expect.any(String) },
    };
    const probe20 = (ping: boolean) => Array.from({ length: 20 }, () => indicator.isHealthy('s', { ping }));
    for (const probe of await Promise.all([...probe20(false), ...probe20(true)]))
      expect(probe).toMatchObject({ s: down });
    for (let probe = 0; probe < 20; probe += 1)
      expect(await indicator.isHealthy('s')).toMatchObject({ s: down });
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(logger.linesOf('ServiceHealthIndicator')).toEqual([
      expect.stringMatching(/^The health check could not obtain a token: token_unavailable: .*503/),
      expect.stringMatching(/^The health check could not list the banks: token_unavailable: .*503/),
    ]);
    fault.stop();
    await module.get(ServiceAuthService).getApiToken();
    expect(await indicator.isHealthy('s')).toMatchObject({ s: { status: 'up', token: { ok: true } } });
    expect(simulator.tokenRequests).toHaveLength(2);
  });

  it('does not take further attempts from callers that wait for the same request', async () => {
    const indicator = await start(oauth());
    simulator.fail({ face: 'token', fault: { status: 503 }, times: 2 });
    const [probe, token] = await Promise.all([
      indicator.isHealthy('s'),
      module.get(ServiceAuthService).getApiToken(),
    ]);
    expect(token.scope).toBe('api');
    expect(probe).toMatchObject({ s: { status: 'up' } });
    expect(simulator.tokenRequests).toHaveLength(3);
  });

  it('ends within its timeout', async () => {
    const indicator = await start(oauth());
    simulator.fail({ face: 'token', fault: 'hang' });
    simulator.fail({ path: '/banks/v1', fault: 'hang' });
    expect(await indicator.isHealthy('s', { ping: true, timeout: 50 })).toMatchObject({
      s: {
        status: 'down',
        message:
          'No token can be obtained (connection_timeout). Listing the banks fails (connection_timeout).',
      },
    });
  });

  it('shares its outcomes with the indicator that another module of the application provides', async () => {
    @Module({
      providers: [ServiceHealthIndicator],
      exports: [ServiceHealthIndicator],
      imports: [TerminusModule],
    })
    class OtherModule {}
    @Module({
      imports: [TerminusModule, ServiceModule.forRoot({ isGlobal: true, ...oauth() }), OtherModule],
      providers: [ServiceHealthIndicator],
    })
    class HealthModule {}
    await indicatorOf(Test.createTestingModule({ imports: [HealthModule] }));
    const indicators = [HealthModule, OtherModule].map((each) =>
      module.select(each).get(ServiceHealthIndicator, { strict: true }),
    );
    expect(new Set(indicators).size).toBe(2);
    for (const each of indicators)
      expect(await each.isHealthy('s', { ping: true })).toMatchObject({ s: { status: 'up' } });
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/oauth2/token', '/banks/v1']);
  });

  it('sends one request for a ping, without retries', async () => {
    const indicator = await start({ ...oauth(), http: { retries: 2 } });
    simulator.fail({ path: '/banks/v1', fault: { status: 503 }, times: 9 });
    expect(await indicator.isHealthy('s', { ping: true })).toMatchObject({ s: { status: 'down' } });
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it('is unhealthy during and after a shutdown, without a request', async () => {
    const indicator = await start(oauth());
    expect(await indicator.isHealthy('s', { ping: true })).toMatchObject({ s: { status: 'up' } });
    const seen = simulator.requests.length;
    await app?.close();
    expect(await indicator.isHealthy('s', { ping: true })).toEqual({
      s: { status: 'down', message: 'The application is shutting down.' },
    });
    expect(simulator.requests).toHaveLength(seen);
  });

  const certificate = {
    subject: 'CN=secret-subject',
    issuer: 'CN=issuer',
    fingerprint256: 'AB:CD',
    validFrom: new Date(Date.UTC(2030, 0, 1)),
    validTo: new Date(Date.UTC(2031, 0, 1)),
  };
  const fault = { option: 'tls.certificate', message: '/run/secrets/tls.crt is empty' };
  const lastReloadFault = { at: new Date(Date.UTC(2030, 5, 1)), faults: [fault, fault] };
  const validTo = '2031-01-01T00:00:00.000Z';

  it.each<[string, IdentityStatus, ServiceHealthOptions, object]>([
    ['no certificate', { healthy: true }, { minCertificateDays: 10 }, { status: 'up' }],
    [
      'a good certificate',
      { healthy: true, certificate, daysLeft: 10 },
      { minCertificateDays: 10 },
      { status: 'up', certificate: { validTo, daysLeft: 10 } },
    ],
    [
      'one that ends soon',
      { healthy: true, certificate, daysLeft: 9 },
      { minCertificateDays: 10 },
      {
        status: 'down',
        certificate: { validTo, daysLeft: 9 },
        message:
          'The client certificate, or a chain certificate that is sent with it, expires in 9 days. The health check requires 10 (minCertificateDays).',
      },
    ],
    [
      'one that ends today',
      { healthy: true, certificate, daysLeft: 0 },
      {},
      { status: 'up', certificate: { validTo, daysLeft: 0 } },
    ],
    [
      'one that has expired',
      { healthy: false, certificate, daysLeft: -1 },
      {},
      {
        status: 'down',
        certificate: { validTo, daysLeft: -1 },
        message: 'The client certificate, or a chain certificate that is sent with it, has expired.',
      },
    ],
    [
      'one that is not valid yet',
      { healthy: false, certificate, daysLeft: 40 },
      {},
      {
        status: 'down',
        certificate: { validTo, daysLeft: 40 },
        message: 'The client certificate, or a chain certificate that is sent with it, is not valid yet.',
      },
    ],
    [
      'a new one that cannot be used',
      { healthy: true, certificate, daysLeft: 10, lastReloadFault },
      {},
      {
        status: 'up',
        certificate: {
          validTo,
          daysLeft: 10,
          lastReloadFault: { at: '2030-06-01T00:00:00.000Z', options: ['tls.certificate'] },
        },
      },
    ],
  ])('reports %s, and nothing confidential', async (_, identityStatus, options, expected) => {
    const indicator = await startStub({ identityStatus });
    const { s } = await indicator.isHealthy('s', options);
    expect(s).toEqual({ token: { ok: true, checkedAt: expect.any(String) }, ...expected });
    expect(JSON.stringify(s)).not.toMatch(/secret|CN=|AB:CD|stub-token/);
  });

  it('works with stubService', async () => {
    const indicator = await startStub({
      getApiToken: () => {
        throw serviceErrors.token('token_refused');
      },
    });
    expect(await indicator.isHealthy('s', { ping: true })).toMatchObject({
      s: { status: 'down', token: { ok: false, code: 'token_refused' }, ping: { code: 'token_refused' } },
    });
    // Also once the token of the stub is at hand.
    expect(await indicator.isHealthy('s')).toMatchObject({ s: { status: 'down' } });
  });

  it.each<[object, RegExp]>([
    [{ minCertificateDays: NaN }, /minCertificateDays must be a number of days from 0$/],
    [{ minCertificateDays: '7' }, /minCertificateDays must .*; it is a string: use Number\(\)$/],
    [{ timeout: -1 }, /timeout must be milliseconds/],
  ])('refuses %j', async (options, message) => {
    const indicator = await startStub({});
    const refused = { code: 'invalid_request', message: expect.stringMatching(message) };
    await expect(indicator.isHealthy('s', options)).rejects.toMatchObject(refused);
  });
});

describe('client.health()', () => {
  let simulator: ServiceSimulator;
  let client: ServiceClient;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    simulator = await startSimulator();
  });
  beforeEach(async () => {
    const mode = { environment: 'production', authentication: 'oauth', clientCertificate: true } as const;
    client = await createServiceClient(simulator.moduleOptions(mode));
  });
  afterEach(async () => {
    await client.close();
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  it('shows the certificate, the token and the ping, and is down once the client is closed', async () => {
    const checked = { ok: true, checkedAt: expect.any(String) };
    const certificate = { validTo: expect.stringMatching(/^\d{4}-.*Z$/), daysLeft: expect.any(Number) };
    const up = { status: 'up', certificate, token: checked, ping: checked };
    expect(await client.health({ ping: true })).toEqual(up);
    expect(await client.health({ ping: true })).toEqual({ ...up, token: { ok: true } });
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/oauth2/token', '/banks/v1']);
    expect(await client.health({ minCertificateDays: 1e6 })).toMatchObject({ status: 'down' });
    await client.close();
    expect(await client.health()).toEqual({ status: 'down', message: 'The application is shutting down.' });
  });

  it('resolves with the reason, and logs it once, if the service fails; rejects only for invalid options', async () => {
    const logger = new CollectingLogger();
    Logger.overrideLogger(logger);
    simulator.fail({ face: 'token', fault: { status: 401, json: { error: 'invalid_client' } }, times: 9 });
    const down = {
      status: 'down',
      message: 'No token can be obtained (token_refused).',
      token: { ok: false, code: 'token_refused' },
    };
    for (let probe = 0; probe < 3; probe += 1) expect(await client.health()).toMatchObject(down);
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(logger.linesOf('ServiceClient')).toEqual([
      expect.stringMatching(/^The health check could not obtain a token: token_refused/),
    ]);
    Logger.overrideLogger(false);
    await expect(client.health({ timeout: -1 })).rejects.toBeInstanceOf(ServiceRequestError);
  });
});
