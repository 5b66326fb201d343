import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ServiceModule, ServiceConfigurationError, type ServiceModuleOptions } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { modulesOfBlock, rejection, startModule } from '../helpers/start-module.js';

const manifest = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
const OWN = `nestjs-service/${(JSON.parse(manifest) as { version: string }).version}`;

describe('User-Agent', () => {
  let simulator: ServiceSimulator;
  let options: ServiceModuleOptions;
  const { start, setVariables } = modulesOfBlock();

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
    options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
  });
  afterEach(() => {
    simulator.clearRequests();
    simulator.clearFaults();
  });
  afterAll(() => simulator.stop());

  const sent = () =>
    simulator.requests.map(({ method, path, headers }) => [method, path, headers['user-agent']]);

  it('goes to the token endpoint and with each attempt of a call', async () => {
    const { module, banks } = await startModule(options);
    simulator.fail({ path: '/banks/v1', fault: { status: 503, headers: { 'retry-after': '0' } } });
    simulator.fail({ path: '/banks/v1', fault: { status: 401 } });
    await banks.list();
    expect(sent()).toEqual([
      ['POST', '/oauth2/token', OWN],
      ['GET', '/banks/v1', OWN],
      ['GET', '/banks/v1', OWN],
      ['POST', '/oauth2/token', OWN],
      ['GET', '/banks/v1', OWN],
    ]);
    await module.close();
  });

  it("follows the application's own, from code or from its variable, in the start-up check too", async () => {
    const inCode = { ...options, startupCheck: 'fail' as const };
    for (const own of ['acme-banking/2.1 (team@acme.example; (eu) \\(1\\))', 'acme']) {
      setVariables({ SERVICE_HTTP_USER_AGENT: ` ${own} ` });
      await start({ imports: [ServiceModule.forRoot(inCode)] });
      await start({ imports: [ServiceModule.forRoot({ ...inCode, http: { userAgent: own } })] });
      expect(sent()).toHaveLength(4);
      expect(new Set(sent().map(([, , agent]) => agent))).toEqual(new Set([`${own} ${OWN}`]));
      simulator.clearRequests();
    }
  });

  it("is the call's own where that has one", async () => {
    const { module, banks, http } = await startModule({ ...options, http: { userAgent: 'acme/1' } });
    await banks.list({ headers: { 'User-Agent': 'job/7' } });
    await http.axiosRef.get('/banks/v1', { headers: { 'user-agent': 'job/8' } });
    http.axiosRef.defaults.headers.common['User-Agent'] = 'job/9';
    await http.get('/banks/v1');
    expect(sent().map(([, , agent]) => agent)).toEqual([`acme/1 ${OWN}`, 'job/7', 'job/8', 'job/9']);
    await module.close();
  });

  describe('beside the 403 page of a firewall', () => {
    const page = { status: 403, body: '<html>Denied</html>', headers: { 'content-type': 'text/html' } };

    it.each(['oauth', 'mtls'] as const)('%s: its hint names one', async (authentication) => {
      const api = await startModule(simulator.moduleOptions({ environment: 'production', authentication }));
      simulator.fail({ path: '/banks/v1', fault: page });
      expect(await rejection(api.banks.list())).toMatchObject({
        message: expect.stringMatching(/a proxy or firewall before it/),
        hint: expect.stringMatching(/firewall.*ask who runs it.*tls\.certificate/),
      });
      await api.module.close();
    });

    it.each(['oauth', 'mtls'] as const)('%s: the start-up check names one, and sends it', async (mode) => {
      simulator.fail({ path: '/banks/v1', times: 9, fault: page });
      const given = simulator.moduleOptions({ environment: 'production', authentication: mode });
      const error = await rejection(startModule({ ...given, startupCheck: 'fail' }));
      expect(error).toMatchObject({
        faults: [
          {
            option: expect.stringMatching(/^urls\./),
            message: expect.stringMatching(/a proxy or firewall before/),
          },
        ],
      });
      expect(sent().length).toBeGreaterThan(0);
      expect(new Set(sent().map(([, , agent]) => agent))).toEqual(new Set([OWN]));
    });

    it('of the token endpoint: its error names one', async () => {
      const api = await startModule(options);
      simulator.fail({ face: 'token', times: 9, fault: page });
      expect(await rejection(api.banks.list())).toMatchObject({
        code: 'token_refused',
        hint: expect.stringMatching(/firewall.*ask who runs it.*oauth\.mtls/),
      });
      await api.module.close();
    });
  });

  it.each([
    'acme/2.1\r\nX-Injected: 1',
    'acme/2.1\n',
    'acme (open',
    'acme close)',
    'acme, Inc.',
    '(only a comment)',
    'acme/2/1',
    'bänk/1',
    '',
    ' ',
    7,
    'a'.repeat(257),
  ])('what is none is refused at start: row %#', async (userAgent) => {
    const given = { ...options, http: { userAgent: userAgent as string } };
    const error = await rejection(startModule(given));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect((error as ServiceConfigurationError).faults).toEqual([
      {
        option: 'http.userAgent',
        variable: 'SERVICE_HTTP_USER_AGENT',
        message: expect.stringMatching(/^must be product tokens .* RFC 9110, 10\.1\.5/),
      },
    ]);
  });
});
