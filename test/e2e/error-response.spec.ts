import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type ServiceApiError, type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { gzipSync } from 'node:zlib';
import { CollectingLogger, everyForm } from '../helpers/secret-scan.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

describe('the response of a ServiceApiError', () => {
  let simulator: ServiceSimulator;
  let options: ServiceModuleOptions & { appToken: string };
  let api: StartedModule;
  const logger = new CollectingLogger();

  beforeAll(async () => {
    simulator = await startSimulator();
    const mode = { environment: 'production', authentication: 'oauth', clientCertificate: true } as const;
    options = { ...simulator.moduleOptions(mode), http: { retries: 0 } };
    api = await startModule(options, logger);
  });
  afterEach(() => simulator.clearFaults());
  afterAll(async () => {
    await api.module.close();
    await simulator.stop();
  });

  const list = (): Promise<unknown> => api.banks.list();
  const errorOf = async (fault: SimulatorFault, call = list) => {
    simulator.fail({ path: /v1/, fault });
    return (await rejection(call())) as ServiceApiError;
  };

  it('keeps what the service said, and the error shows it nowhere', async () => {
    const json = {
      error_code: 'VALIDATION_FAILED',
      message: 'It is taken',
      errors: [{ field: 'app_user_id', reason: 'taken', by: 'Jane Roe' }],
    };
    const fault = { status: 422, json, headers: { 'X-Trace': 'Jane Roe', 'Set-Cookie': 'session=Jane Roe' } };
    const create = () => api.customers.create({ app_user_id: 'u-1' });
    const error = await errorOf(fault, create);
    expect(error.response).toEqual({
      status: 422,
      headers: expect.objectContaining({
        'x-trace': 'Jane Roe',
        'content-type': expect.stringContaining('json'),
      }),
      data: json,
    });
    expect(error.response?.headers).not.toHaveProperty('set-cookie');
    expect(everyForm(error) + everyForm(logger.lines)).not.toMatch(/Jane|VALIDATION_FAILED/);
  });

  it('has the members of problem details, and what calls on axiosRef got', async () => {
    const json = { type: 'about:blank', title: 'Out of credit', detail: 'Balance 30', balance: 30 };
    const headers = { 'content-type': 'application/problem+json' };
    const direct = () => api.http.axiosRef.get('/orders/v1', { responseType: 'arraybuffer' });
    const { response } = await errorOf({ status: 403, json, headers }, direct);
    expect(response).toMatchObject({ data: json, headers });
  });

  it("has a 429's own headers", async () => {
    const headers = { 'retry-after': '7', 'ratelimit-reset': '60', 'ratelimit-policy': '100;w=60' };
    const { response, retryAfter } = await errorOf({ status: 429, headers });
    expect(response).toMatchObject({ status: 429, headers });
    expect(retryAfter).toBe(7);
  });

  it('has no data of a body that is too long, compressed or not, or that is no JSON', async () => {
    const long = JSON.stringify({ message: 'x'.repeat(70_000) });
    const bodies: SimulatorFault[] = [
      { status: 422, body: long, headers: { 'content-type': 'application/json' } },
      { status: 422, body: gzipSync(long) as never, headers: { 'content-encoding': 'gzip' } },
      { status: 422, body: '<html>no</html>', headers: { 'content-type': 'text/html' } },
      { status: 200, body: '<html>no</html>', headers: { 'content-type': 'text/html' } },
      { status: 422, body: '' },
    ];
    for (const fault of bodies) {
      const { response, status } = await errorOf(fault);
      expect(response).toMatchObject({ status, headers: { date: expect.any(String) } });
      expect(response?.data).toBeUndefined();
    }
  });

  it('shows no bearer that the service sends back, in no place; the app token is no secret of an answer', async () => {
    const { accessToken } = await api.auth.getApiToken();
    const json = { kept: 'said', application: options.appToken };
    const headers = {
      authorization: `Bearer ${accessToken}`,
      'x-echo': accessToken,
      'service-app-token': options.appToken,
    };
    const bodies = [
      { ...json, headers: { authorization: `Bearer ${accessToken}` } },
      { ...json, url: `/?t=${encodeURIComponent(accessToken)}` },
      { ...json, [accessToken]: 1 },
    ];
    for (const body of bodies) {
      const { response } = await errorOf({ status: 400, json: body, headers });
      expect(response?.data).toBeUndefined();
      expect(JSON.stringify(response)).not.toContain(accessToken);
      expect(Object.keys(response?.headers ?? {})).not.toEqual(
        expect.arrayContaining([expect.stringMatching(/^(authorization|service-app-token|x-echo)$/)]),
      );
    }
    expect((await errorOf({ status: 400, json })).response?.data).toEqual(json);
  });

  it("is what the host's interceptors see, and no transformation of the host changes it", async () => {
    const seen: unknown[] = [];
    const { interceptors, defaults } = api.http.axiosRef;
    defaults.transformResponse = () => {
      throw new Error('of the host');
    };
    const id = interceptors.response.use(undefined, (error: ServiceApiError) => {
      seen.push(error.response?.data);
      throw error;
    });
    const json = { errors: [1] };
    const error = await errorOf({ status: 409, json });
    expect(seen).toEqual([json]);
    expect(Object.keys(error.response ?? {})).toEqual(['status', 'headers', 'data']);

    defaults.transformResponse = undefined;
    interceptors.response.eject(id);
    interceptors.response.clear();
    expect((await errorOf({ status: 409, json })).response?.data).toEqual(json);
  });

  it('keeps the body that parse refused, and shows it nowhere', async () => {
    const json = { status: 'PENDING', results_id: 'Jane Roe' };
    const refused = (more: object) => () =>
      api.http.get('/orders/v1', { parse: () => JSON.parse('{') as unknown, ...more });
    const error = await errorOf({ status: 200, json }, refused({}));
    expect(error).toMatchObject({ code: 'invalid_response', status: 200 });
    expect(error.response).toMatchObject({ status: 200, headers: { date: expect.any(String) }, data: json });
    expect(everyForm(error) + everyForm(logger.lines)).not.toMatch(/Jane|PENDING/);
    const text = await errorOf({ status: 200, json }, refused({ responseType: 'text' }));
    expect(text.response?.data).toBe(JSON.stringify(json));
    const bytes = await errorOf({ status: 200, json }, refused({ responseType: 'bytes' }));
    expect(bytes.response?.data).toBeUndefined();
    const { accessToken } = await api.auth.getApiToken();
    const echo = await errorOf({ status: 200, json: { ...json, accessToken } }, refused({}));
    expect(echo.response).toMatchObject({ status: 200 });
    expect(echo.response?.data).toBeUndefined();
  });
});
