import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, type INestApplication, Module, Post, Req } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ServiceExceptionFilter, ServiceHttpService, ServiceModule } from 'nestjs-service';
import { type FaultRule, type ServiceSimulator } from 'nestjs-service/testing';
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { type Host, type Platform, startHost } from '../helpers/start-host.js';
import { startSimulator } from '../helpers/simulators.js';

const DOUBT = ' The request may have been carried out all the same.';
const UNAVAILABLE = 'The service cannot be reached at the moment.';
const FAILED = 'The service failed to answer this call.';
const API = /^\/(banks|customers)\/v1$/;
const own = (status: number): FaultRule => ({
  path: API,
  fault: { status, json: { status: 'X', message: 'said by the service' } },
});
const noToken: FaultRule = {
  face: 'token',
  times: 3,
  fault: { status: 400, json: { error: 'invalid_scope' } },
};

/** One row for each kind; test/unit/http/service-exception.filter.spec.ts has the whole table. */
describe.each<Platform>(['express', 'fastify'])('ServiceExceptionFilter on %s', (platform) => {
  let simulator: ServiceSimulator;
  let host: Host;
  const logger = new CollectingLogger();
  const errorLines = () => logger.lines.filter((line) => /^5\d\d: /.test(String(line)));

  beforeAll(async () => {
    simulator = await startSimulator();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
    host = await startHost(
      ServiceModule.forRoot({ ...options, http: { retries: 0, timeout: 1_500 } }),
      platform,
      logger,
    );
  });
  afterEach(() => {
    simulator.clearFaults();
    logger.lines.length = 0;
  });
  afterAll(async () => {
    await host.close();
    await simulator.stop();
  });

  const customer = { app_user_id: 'u-1' };
  const session = { customer_id: 'c-9', permissions: ['identity'] };

  it.each<[string, FaultRule, string, object, number, string, string]>([
    ['the service says is wrong', own(409), '/customers', customer, 409, 'said by the service', 'api_error'],
    ['the service may have done', own(500), '/customers', customer, 502, FAILED + DOUBT, 'api_error'],
    [
      'no answer came to',
      { path: API, fault: 'reset' },
      '/customers',
      customer,
      502,
      FAILED + DOUBT,
      'connection_reset',
    ],
    ['needs a token that is refused', noToken, '/link-session', session, 503, UNAVAILABLE, 'token_refused'],
  ])('answers what %s', async (_, rule, path, input, statusCode, message, code) => {
    simulator.fail(rule);
    const { status, body } = await host.request('POST', path, input);
    expect({ status, body }).toEqual({ status: statusCode, body: { statusCode, message, code } });
  });

  it('answers 502 to what no caller can correct, and logs what to check', async () => {
    simulator.fail({ times: 2, ...own(403) });
    const { status, body } = await host.request('GET', '/banks');
    expect({ status, body }).toEqual({
      status: 502,
      body: { statusCode: 502, message: FAILED, code: 'api_error' },
    });
    expect(errorLines()).toEqual([
      expect.stringMatching(/^502: api_error: GET \/banks\/v1: HTTP 403.*check /i),
    ]);
  });

  it('answers 503 to 429, and keeps Retry-After', async () => {
    simulator.fail({ path: API, fault: { status: 429, headers: { 'retry-after': '17' } } });
    const { status, headers, body } = await host.request('GET', '/banks');
    expect({ status, body }).toEqual({
      status: 503,
      body: { statusCode: 503, message: 'The service is busy at the moment.', code: 'api_error' },
    });
    expect(headers.get('retry-after')).toBe('17');
  });

  it("passes on the service's name of the case, and a 403 or 429 of a case in passOn", async () => {
    const { request, close } = await startHost(
      ServiceModule.forRoot({ ...simulator.moduleOptions(), http: { retries: 0 } }),
      platform,
      undefined,
      new ServiceExceptionFilter({ passOn: ['CONSENT_EXPIRED'] }),
    );
    const json = { status: 'CONSENT_EXPIRED', message: 'Ask for consent again.' };
    const headers = { 'retry-after': '17' };
    for (const status of [409, 403, 429]) simulator.fail({ path: API, fault: { status, json, headers } });
    const answers = [];
    for (let call = 0; call < 3; call += 1) answers.push(await request('POST', '/customers', customer));
    await close();
    const body = { message: json.message, code: 'api_error', serviceStatus: json.status };
    expect(answers.map(({ status, body, headers }) => [status, body, headers.get('retry-after')])).toEqual([
      [409, { statusCode: 409, ...body }, null],
      [403, { statusCode: 403, ...body }, null],
      [429, { statusCode: 429, ...body }, '17'],
    ]);
  });

  it('says the doubt of a lost attempt, also where the next is answered 429', async () => {
    const http = { retries: 1 };
    const { app, request, close } = await startHost(
      ServiceModule.forRoot({ ...simulator.moduleOptions(), http }),
      platform,
    );
    simulator.clearRequests();
    const { axiosRef } = app.get(ServiceHttpService);
    axiosRef.interceptors.request.use((config) => Object.assign(config, { idempotencyKey: true }));
    simulator.fail({ path: API, fault: 'reset' });
    simulator.fail({ path: API, fault: { status: 429, headers: { 'retry-after': '9' } } });
    const answer = await request('POST', '/customers', customer);
    await close();
    expect(simulator.apiRequests).toHaveLength(2);
    expect(answer).toMatchObject({
      status: 502,
      body: { statusCode: 502, message: FAILED + DOUBT, code: 'api_error' },
    });
    expect(answer.headers.get('retry-after')).toBeNull();
  });

  it('ends an answer that had begun', async () => {
    const response = await fetch(`${await host.app.getUrl()}/begun`);
    await expect(
      Promise.race([response.text(), new Promise((_, reject) => setTimeout(reject, 3_000).unref())]),
    ).resolves.toBe('begun');
  });

  it("answers 400 to input that the module itself refuses, as the host's ValidationPipe does", async () => {
    const { status, body } = await host.request('POST', '/link-session', {
      customer_id: '../x',
      permissions: [],
    });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toMatch(/customer_id/);
  });
});

describe('an inbound request that is passed on', () => {
  @Controller()
  class UploadController {
    constructor(private readonly http: ServiceHttpService) {}

    @Post('upload')
    upload(@Req() inbound: IncomingMessage): Promise<unknown> {
      return this.http.post('/documents/v1', inbound, { headers: { 'content-type': 'application/pdf' } });
    }

    @Post('upload-by-axios')
    async uploadByAxios(@Req() inbound: IncomingMessage): Promise<unknown> {
      return (await this.http.axiosRef.post<unknown>('/documents/v1', inbound)).data;
    }
  }

  let simulator: ServiceSimulator;
  let app: INestApplication;
  beforeAll(async () => {
    simulator = await startSimulator();
    @Module({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'mtls' }))],
      controllers: [UploadController],
    })
    class Host {}
    const testing = await Test.createTestingModule({ imports: [Host] }).compile();
    app = testing.createNestApplication({ logger: false });
    app.useGlobalFilters(new ServiceExceptionFilter());
    await app.listen(0, '127.0.0.1');
  });
  afterAll(async () => {
    await app.close();
    await simulator.stop();
  });

  it.each(['upload', 'upload-by-axios'])(
    'a controller that forwards its inbound request (%s): the client gets a 400, over a connection that goes on',
    async (path) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const url = `${await app.getUrl()}/${path}`;
      const upload = () =>
        new Promise<{ status?: number; body: string; reused: boolean; port?: number }>((resolve, reject) => {
          const headers = { 'content-type': 'application/pdf' };
          const outgoing = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
            const port = response.socket.localPort;
            let body = '';
            response.setEncoding('utf8').on('data', (text: string) => (body += text));
            response.on('end', () =>
              resolve({ status: response.statusCode, body, reused: outgoing.reusedSocket, port }),
            );
            response.on('error', reject);
          });
          outgoing.on('error', reject).end(Buffer.alloc(200_000, 'x'));
        });
      const first = await upload();
      expect(first).toMatchObject({ status: 400, body: expect.stringContaining('invalid_request') });
      expect(await upload()).toMatchObject({ status: 400, reused: true, port: first.port });
      expect(simulator.apiRequests).toHaveLength(0);
      agent.destroy();
    },
  );
});
