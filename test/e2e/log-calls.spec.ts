import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { CollectingLogger, secretsIn } from '../helpers/secret-scan.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

describe('http.logCalls', () => {
  let simulator: ServiceSimulator;
  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(() => simulator.clearFaults());
  afterAll(() => simulator.stop());

  /** The lines about calls, without their milliseconds. */
  async function linesOf(authentication: 'mtls' | 'oauth' | 'app-token', http: ServiceModuleOptions['http']) {
    const environment = authentication === 'app-token' ? 'sandbox' : 'production';
    const options = simulator.moduleOptions({ authentication, environment });
    const logger = new CollectingLogger();
    const api = await startModule({ ...options, http: { ...options.http, ...http } }, logger);
    simulator.fail({ path: /banks/, times: 1, fault: { status: 503 } });
    await api.banks.list({ headers: { 'x-correlation-id': 'own-1' } });
    await api.customers.create({ app_user_id: randomUUID() });
    await rejection(api.http.get('/orders/v1/o-42'));
    await api.module.close();
    const { appToken, clientSecret } = simulator;
    expect(secretsIn(logger.lines.join('\n'), { appToken, clientSecret })).toEqual([]);
    const calls = logger.linesOf('ServiceModule').filter((line) => / after \d+ ms/.test(line));
    return calls.map((line) => line.replace(/ \d+ ms/, ' N ms'));
  }

  it.each([
    ['mtls', 'app token, client certificate'],
    ['oauth', 'bearer'],
    ['app-token', 'app token'],
  ] as const)(
    'says of each call with %s: what, how it ended, and what authenticated it',
    async (mode, kinds) => {
      expect(await linesOf(mode, { logCalls: true })).toEqual([
        `GET /banks/v1: 200 after N ms, 2 attempts, with ${kinds}, correlation id own-1`,
        `POST /customers/v1: 201 after N ms, 1 attempt, with ${kinds}`,
        `GET /orders/v1: 404 after N ms, 1 attempt, with ${kinds}`,
      ]);
    },
  );

  it('is off by default: then only calls that fail have a line', async () => {
    expect(await linesOf('mtls', {})).toEqual(['GET /orders/v1: 404 after N ms']);
  });
});
