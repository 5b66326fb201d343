import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, Module, type INestApplication } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test, type TestingModule } from '@nestjs/testing';
import { type AddressInfo } from 'node:net';
import { type Server } from 'node:http';
import {
  InjectService,
  ServiceAuthService,
  ServiceModule,
  ServiceRequestError,
  type IdentityStatus,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceHealthIndicator, type ServiceHealthOptions } from 'nestjs-service/terminus';
import { serviceErrors, ServiceSimulator, stubService, type ServiceDoubles } from 'nestjs-service/testing';

const SILENT = { log: () => {}, warn: () => {}, error: () => {}, debug: () => {} };

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
      () => this.ksa.isHealthy('ksa'),
    ]);
  }
}

describe('ServiceHealthIndicator', () => {
  let simulator: ServiceSimulator;
  let other: ServiceSimulator;
  let module: TestingModule;
  let app: INestApplication | undefined;

  beforeAll(async () => {
    [simulator, other] = await Promise.all([ServiceSimulator.start(), ServiceSimulator.start()]);
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
    module = await Test.createTestingModule({ imports: [HealthModule] })
      .setLogger(SILENT)
      .compile();
    app = module.createNestApplication();
    await app.init();
    return module.get(ServiceHealthIndicator);
  }

  /** The same with doubles: what a certificate of another age would say. */
  async function startStub(auth: ServiceDoubles['auth']): Promise<ServiceHealthIndicator> {
    const builder = Test.createTestingModule({
      imports: [TerminusModule, ServiceModule.forRoot()],
      providers: [ServiceHealthIndicator],
    }).setLogger(SILENT);
    stubService(builder, { auth });
    module = await builder.compile();
    app = module.createNestApplication();
    await app.init();
    return module.get(ServiceHealthIndicator);
  }

  const mtls = () => simulator.moduleOptions({ environment: 'production', authentication: 'mtls' });
  const oauth = () => simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });

  it('answers for each module by its own, over HTTP', async () => {
    await start(mtls(), other.moduleOptions({ environment: 'sandbox', authentication: 'oauth' }));
    await app?.listen(0, '127.0.0.1');
    const { port } = (app?.getHttpServer() as Server).address() as AddressInfo;
    const health = () => fetch(`http://127.0.0.1:${port}/health`);
    const answer = await health();
    expect(answer.status).toBe(200);
    const { details } = (await answer.json()) as { details: object };
    expect(details).toEqual({
      service: {
        status: 'up',
        certificate: { validTo: expect.stringMatching(/^\d{4}-.*Z$/), daysLeft: expect.any(Number) },
        ping: { ok: true, checkedAt: expect.any(String) },
      },
      ksa: { status: 'up', token: { ok: true, checkedAt: expect.any(String) } },
    });
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/banks/v1']);
    expect(other.requests.map(({ path }) => path)).toEqual(['/oauth2/token']);
    expect((await health()).status).toBe(200);
    expect([simulator.requests.length, other.requests.length]).toEqual([1, 1]);
  });

  it('says 503 where a module is not healthy, and which', async () => {
    await start(mtls());
    simulator.fail({ path: '/banks/v1', fault: { status: 500 } });
    await app?.listen(0, '127.0.0.1');
    const { port } = (app?.getHttpServer() as Server).address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/health`);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({
      error: {
        service: {
          status: 'down',
          message: 'The service does not answer as it should (api_error 500).',
          ping: { ok: false, code: 'api_error 500' },
        },
      },
      info: { ksa: { status: 'up' } },
    });
  });

  it('takes a token from the cache, without a request and while it is renewed', async () => {
    const indicator = await start(oauth());
    const auth = module.get(ServiceAuthService);
    await auth.getApiToken();
    simulator.fail({ face: 'token', fault: 'hang', times: 99 });
    for (let probe = 0; probe < 20; probe += 1) {
      expect(await indicator.isHealthy('s')).toEqual({ s: { status: 'up', token: { ok: true } } });
    }
    expect(simulator.tokenRequests).toHaveLength(1);
  });

  it('asks a failing token endpoint once, however many probes come, and notices a token that others got', async () => {
    const indicator = await start(oauth());
    const fault = simulator.fail({ face: 'token', fault: { status: 503 }, times: 99 });
    const down = {
      status: 'down',
      token: { ok: false, code: 'token_unavailable', checkedAt: expect.any(String) },
    };
    const probes = await Promise.all(Array.from({ length: 20 }, () => indicator.isHealthy('s')));
    for (const probe of probes) expect(probe).toMatchObject({ s: down });
    for (let probe = 0; probe < 20; probe += 1)
      expect(await indicator.isHealthy('s')).toMatchObject({ s: down });
    expect(simulator.tokenRequests).toHaveLength(1);
    fault.stop();
    await module.get(ServiceAuthService).getApiToken();
    expect(await indicator.isHealthy('s')).toMatchObject({ s: { status: 'up', token: { ok: true } } });
    expect(simulator.tokenRequests).toHaveLength(2);
  });

  it('leaves callers their further attempts, where they wait for the same request', async () => {
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

  it('ends within its time', async () => {
    const indicator = await start(oauth());
    simulator.fail({ face: 'token', fault: 'hang' });
    simulator.fail({ path: '/banks/v1', fault: 'hang' });
    expect(await indicator.isHealthy('s', { ping: true, timeout: 50 })).toMatchObject({
      s: {
        status: 'down',
        message:
          'No token can be had (connection_timeout). The service does not answer as it should (connection_timeout).',
      },
    });
  });

  it('says that it is unhealthy at and after a shutdown, without a request', async () => {
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
  const lastReloadFault = { at: new Date(Date.UTC(2030, 5, 1)), faults: [fault] };
  const validTo = '2031-01-01T00:00:00.000Z';

  it.each<[string, IdentityStatus, ServiceHealthOptions, object]>([
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
          'The client certificate, or one that is sent with it, expires in 9 days, and there should be 10 left.',
      },
    ],
    ['one that ends today', { healthy: true, certificate, daysLeft: 0 }, {}, { status: 'up' }],
    [
      'one that has expired',
      { healthy: false, certificate, daysLeft: -1 },
      {},
      { status: 'down', message: 'The client certificate, or one that is sent with it, has expired.' },
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
  ])('tells %s, and nothing that is not for everybody', async (_, identityStatus, options, expected) => {
    const indicator = await startStub({ identityStatus });
    const { s } = await indicator.isHealthy('s', options);
    expect(s).toMatchObject(expected);
    expect(JSON.stringify(s)).not.toMatch(/secret|CN=|AB:CD|stub-token/);
  });

  it('works with the doubles of a test', async () => {
    const indicator = await startStub({
      getApiToken: () => {
        throw serviceErrors.token('token_refused');
      },
    });
    expect(await indicator.isHealthy('s', { ping: true })).toMatchObject({
      s: { status: 'down', token: { ok: false, code: 'token_refused' }, ping: { ok: true } },
    });
    // Also once the token of the stub is at hand.
    expect(await indicator.isHealthy('s')).toMatchObject({ s: { status: 'down' } });
  });

  it.each([{ minCertificateDays: NaN }, { minCertificateDays: '7' }, { timeout: -1 }])(
    'refuses %j',
    async (options) => {
      const indicator = await startStub({});
      const refusal: unknown = await indicator
        .isHealthy('s', options as object)
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(ServiceRequestError);
      expect(String(refusal)).toContain(Object.keys(options)[0]);
    },
  );
});
