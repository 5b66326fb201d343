import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ServiceModule } from 'nestjs-service';
import { ServiceSimulator, type FaultRule } from 'nestjs-service/testing';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startHost, type Host, type Platform } from '../helpers/start-host.js';

const DOUBT = ' The request may have been carried out all the same.';
const UNAVAILABLE = 'The service cannot be reached at the moment.';
const FAILED = 'The service failed to answer this call.';
const own = (status: number): FaultRule => ({
  fault: { status, json: { status: 'X', message: 'said by the service' } },
});
const page = (status: number, text: string): FaultRule => ({
  fault: { status, body: `<html>${text}</html>`, headers: { 'content-type': 'text/html' } },
});

describe.each<Platform>(['express', 'fastify'])('ServiceExceptionFilter on %s', (platform) => {
  let simulator: ServiceSimulator;
  let host: Host;
  const logger = new CollectingLogger();
  const errorLines = () => logger.lines.filter((line) => /^5\d\d: /.test(String(line)));

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
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

  it.each<[string, FaultRule, number, string, string]>([
    ['400', own(400), 400, 'said by the service', 'api_error'],
    ['404 for a path without an id', own(404), 502, FAILED, 'api_error'],
    ['409', own(409), 409, 'said by the service', 'api_error'],
    ['422', own(422), 422, 'said by the service', 'api_error'],
    ['403', own(403), 502, FAILED, 'api_error'],
    ['418', own(418), 502, FAILED, 'api_error'],
    ['500', own(500), 502, FAILED + DOUBT, 'api_error'],
    ['503', own(503), 502, FAILED + DOUBT, 'api_error'],
    ['200 with HTML', { fault: 'html' }, 502, FAILED + DOUBT, 'invalid_response'],
    ['a reset', { fault: 'reset' }, 502, FAILED + DOUBT, 'connection_reset'],
    [
      'no answer',
      { fault: 'hang' },
      504,
      `The service did not answer in time.${DOUBT}`,
      'connection_timeout',
    ],
  ])('maps %s', async (_, rule, statusCode, message, code) => {
    simulator.fail({ path: '/customers/v1', ...rule });
    const { status, body } = await host.request('POST', '/customers', { app_user_id: 'u-1' });
    expect(body).toEqual({ statusCode, message, code });
    expect(status).toBe(statusCode);
  });

  it.each<[string, FaultRule]>([
    ['401 of the service', own(401)],
    ['403 of the service', own(403)],
    ["a proxy's page about the client certificate", page(400, 'No required SSL certificate was sent')],
    ["a proxy's status for a refused certificate", page(495, 'x')],
    ["a proxy's page that does not say why", page(403, 'Forbidden')],
  ])('maps %s, which no caller can correct, to 502 and logs what to check', async (_, rule) => {
    simulator.fail({ path: '/banks/v1', times: 2, ...rule });
    const { status, body } = await host.request('GET', '/banks');
    expect({ status, body }).toEqual({
      status: 502,
      body: { statusCode: 502, message: FAILED, code: 'api_error' },
    });
    expect(errorLines()).toEqual([
      expect.stringMatching(/^502: api_error: GET \/banks\/v1: HTTP \d.*check /i),
    ]);
  });

  it('passes on what the service said of a 400, and nothing of ours', async () => {
    simulator.fail({ path: '/banks/v1', fault: { status: 400, json: { said: 'both are required' } } });
    const { body } = await host.request('GET', '/banks');
    expect(body).toEqual({ statusCode: 400, message: 'The service answered 400.', code: 'api_error' });
    expect(errorLines()).toEqual([]);
  });

  it('maps 429 to 503 and keeps Retry-After', async () => {
    simulator.fail({ path: '/banks/v1', fault: { status: 429, headers: { 'retry-after': '17' } } });
    const { status, headers, body } = await host.request('GET', '/banks');
    expect({ status, body }).toEqual({
      status: 503,
      body: { statusCode: 503, message: 'The service is busy at the moment.', code: 'api_error' },
    });
    expect(headers.get('retry-after')).toBe('17');
  });

  it.each([400, 409, 422, 429])(
    'says the doubt of a lost attempt, also where the next is answered %d',
    async (status) => {
      const { request, close } = await startHost(
        ServiceModule.forRoot({
          ...simulator.moduleOptions(),
          http: { retries: 1, idempotencyHeader: 'Idempotency-Key' },
        }),
        platform,
      );
      simulator.clearRequests();
      simulator.fail({ path: '/customers/v1', fault: 'reset' });
      simulator.fail({
        path: '/customers/v1',
        fault: { status, json: { message: 'theirs' }, headers: { 'retry-after': '9' } },
      });
      const answer = await request('POST', '/customers', { app_user_id: 'u-1' });
      await close();
      expect(simulator.apiRequests).toHaveLength(2);
      expect(answer).toMatchObject({
        status: 502,
        body: { statusCode: 502, message: FAILED + DOUBT, code: 'api_error' },
      });
      expect(answer.headers.get('retry-after')).toBeNull();
    },
  );

  it('passes on no Retry-After of over a day', async () => {
    simulator.fail({ path: '/banks/v1', fault: { status: 429, headers: { 'retry-after': '9999999' } } });
    expect((await host.request('GET', '/banks')).headers.get('retry-after')).toBe('86400');
  });

  it('maps a failing token endpoint to 503', async () => {
    simulator.fail({ face: 'token', times: 3, fault: { status: 400, json: { error: 'invalid_scope' } } });
    const { status, body } = await host.request('POST', '/link-session', {
      customer_id: 'c-9',
      permissions: ['identity'],
    });
    expect(status).toBe(503);
    expect(body).toEqual({ statusCode: 503, message: UNAVAILABLE, code: 'token_refused' });
  });

  it('ends an answer that had begun', async () => {
    const response = await fetch(`${await host.app.getUrl()}/begun`);
    await expect(
      Promise.race([response.text(), new Promise((_, reject) => setTimeout(reject, 3_000).unref())]),
    ).resolves.toBe('begun');
  });

  it("maps input that the module itself refuses to 400, as the host's ValidationPipe does", async () => {
    const { status, body } = await host.request('POST', '/link-session', {
      customer_id: '../x',
      permissions: [],
    });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toMatch(/customer_id/);
  });
});
