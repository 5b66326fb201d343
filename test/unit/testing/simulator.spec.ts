import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createServer, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { inspect } from 'node:util';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { freePort } from '../../helpers/loopback.js';
import { TimerCount } from '../../helpers/timer-count.js';
import { call, failCode, keptAliveAgent } from '../../helpers/plain-client.js';

describe('starting and stopping ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  afterEach(() => simulator.stop());

  const sockets = () => process.getActiveResourcesInfo().filter((name) => /TCP|TLS/.test(name)).length;

  it('stop() ends connections, hanging calls and timers, leaves nothing, and may be called again', async () => {
    const socketsBefore = sockets();
    const timers = new TimerCount();
    simulator = await ServiceSimulator.start({ delayMs: { 'sandbox-mtls': 60_000 } });
    const agent = keptAliveAgent(simulator, simulator.application);
    await call(simulator, `${simulator.urls.sandboxUrl}/echo/v1`, { agent });
    simulator.fail({ fault: 'hang' });
    const hanging = failCode(call(simulator, `${simulator.urls.baseUrl}/echo/v1`));
    await simulator.waitForRequest((request) => request.face === 'base');
    simulator.fail({ fault: { trickleMs: 10 } });
    const trickling = failCode(call(simulator, `${simulator.urls.baseUrl}/echo/v1`));
    const delayed = failCode(
      call(simulator, `${simulator.urls.sandboxMtlsUrl}/echo/v1`, { certificate: simulator.application }),
    );
    await simulator.waitForRequest((request) => request.face === 'sandbox-mtls');
    await simulator.waitForRequest((request) => request.status === undefined);
    const waiting = simulator.waitForRequest(() => false).catch((error: Error) => error.message);
    expect(simulator.openConnections).toBeGreaterThanOrEqual(3);
    simulator.fail({ face: 'sandbox', fault: { tlsAlert: 'unknown_ca' } });
    expect(await failCode(call(simulator, simulator.urls.sandboxUrl))).toContain('UNKNOWN_CA');
    // Those of the late answer, of the trickle, of who waits for a request, and of the alert.
    expect(timers.running).toBeGreaterThanOrEqual(4);

    await Promise.all([simulator.stop(), simulator.stop()]);
    await simulator.stop();
    agent.destroy();
    expect(await hanging).toBe('ECONNRESET');
    expect(await trickling).toBe('ECONNRESET');
    expect(await delayed).toBe('ECONNRESET');
    expect(await waiting).toBe('The simulator was stopped');
    expect(simulator.openConnections).toBe(0);
    expect(timers.running).toBe(0);
    timers.restore();
    // Node closes them in its own time, and those of earlier spec files of the same process too.
    while (sockets() > socketsBefore) await new Promise(setImmediate);
    expect(await failCode(call(simulator, simulator.urls.baseUrl))).toBe('ECONNREFUSED');
    expect(simulator.requests.length).toBeGreaterThan(0);
  });

  it('is disposable', async () => {
    simulator = await ServiceSimulator.start();
    await simulator[Symbol.asyncDispose]();
    expect(await failCode(call(simulator, simulator.urls.baseUrl))).toBe('ECONNREFUSED');
  });

  it('start() uses the ports and credentials given', async () => {
    const port = await freePort();
    const server = createServer().listen(port, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const taken = ServiceSimulator.start({ ports: { sandboxUrl: port } });
    await expect(taken).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await new Promise((resolve) => server.close(resolve));

    const clientId = '7d6e7a5e-58a5-4f6d-9d29-02c2cf0a2d0f';
    const given = { clientId, clientSecret: 'secret', appToken: 'token' };
    simulator = await ServiceSimulator.start({ ports: { sandboxUrl: port }, ...given });
    expect(simulator.urls.sandboxUrl).toBe(`https://127.0.0.1:${port}`);
    expect(simulator).toMatchObject(given);
    await simulator.stop();
  });

  it('start() listens where other hosts reach it, by the names of its certificate', async () => {
    simulator = await ServiceSimulator.start({ host: '0.0.0.0', serverNames: ['service.test', '10.9.8.7'] });
    const { sandboxUrl } = simulator.urls;
    expect(sandboxUrl).toMatch(/^https:\/\/service\.test:\d+$/);
    expect(simulator.env().SERVICE_SANDBOX_URL).toBe(sandboxUrl);
    const lookup = ((_name, _options, found) =>
      found(null, [{ address: '127.0.0.2', family: 4 }])) as LookupFunction;
    expect((await call(simulator, sandboxUrl, { lookup })).status).toBe(401);
    for (const name of ['127.0.0.1', 'localhost']) {
      expect((await call(simulator, sandboxUrl.replace('service.test', name))).status).toBe(401);
    }
    const other = call(simulator, sandboxUrl, { lookup, servername: 'other.test' });
    expect(await failCode(other)).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    await simulator.useServerCertificate({ notAfter: new Date(Date.now() + 1e6) });
    expect((await call(simulator, sandboxUrl, { lookup })).status).toBe(401);
  });

  const hasIPv6 = Object.values(networkInterfaces())
    .flat()
    .some((each) => each?.address === '::1');
  it.each([
    ['127.0.0.2', '127.0.0.2'],
    ...(hasIPv6 ? [['::1', '[::1]'] as const, ['::', '127.0.0.1'] as const] : []),
  ])('start() with host %s has addresses that can be called', async (host, inAddresses) => {
    simulator = await ServiceSimulator.start({ host });
    const { sandboxUrl } = simulator.urls;
    expect(sandboxUrl).toMatch(`https://${inAddresses}:`);
    expect((await call(simulator, sandboxUrl)).status).toBe(401);
    const elsewhere = failCode(call(simulator, sandboxUrl.replace(/\/\/.*:/, '//127.0.0.3:')));
    expect(await elsewhere).toBe(host === '::' ? 'ERR_TLS_CERT_ALTNAME_INVALID' : 'ECONNREFUSED');
  });

  it.each([{ host: 'localhost' }, { serverNames: ['a', 'one,two'] }])(
    'start() refuses %j',
    async (options) => {
      await expect(ServiceSimulator.start(options)).rejects.toThrow(
        /^(host|serverNames).* not '(localhost|one,two)'\./,
      );
    },
  );

  it('clients of two hosts may have the same port', async () => {
    simulator = await ServiceSimulator.start();
    const agents = [keptAliveAgent(simulator), keptAliveAgent(simulator)];
    const localPort = await freePort();
    for (const [index, localAddress] of ['127.0.0.1', '127.0.0.2'].entries()) {
      const options = { agent: agents[index], localAddress, localPort };
      expect((await call(simulator, simulator.urls.sandboxUrl, options)).status).toBe(401);
    }
    expect(simulator.openConnections).toBe(2);
    agents[0]?.destroy();
    await simulator.stop();
    agents[1]?.destroy();
  });

  it('two simulators share nothing', async () => {
    const [one, two] = await Promise.all([ServiceSimulator.start(), ServiceSimulator.start()]);
    const headers = { authorization: `Bearer ${await one.issueToken()}` };
    expect((await call(two, `${two.urls.baseUrl}/banks/v1`, { headers })).status).toBe(401);
    expect([one.requests.length, two.requests.length]).toEqual([0, 1]);
    expect(one.clientId).not.toBe(two.clientId);
    expect(one.appToken).not.toBe(two.appToken);
    await Promise.all([one.stop(), two.stop()]);
  });

  it('waitForRequest() finds past and future requests, and gives up', async () => {
    simulator = await ServiceSimulator.start();
    const coming = simulator.waitForRequest(({ path }) => path === '/second');
    await call(simulator, `${simulator.urls.sandboxUrl}/first`);
    await call(simulator, `${simulator.urls.sandboxUrl}/second`);
    expect((await coming).path).toBe('/second');
    expect((await simulator.waitForRequest(({ path }) => path === '/first')).status).toBe(401);
    const never = simulator.waitForRequest(() => false, 10);
    await expect(never).rejects.toThrow(
      'No such request within 10 ms. The last ones: sandbox GET /first, sandbox GET /second',
    );
    await simulator.stop();
  });

  it('goes on if a callback throws, and tells of it', async () => {
    const mistake = () => {
      throw new Error('mistake of the test');
    };
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    simulator = await ServiceSimulator.start({
      onRequest: mistake,
      onRefusal: mistake,
    });
    const { urls } = simulator;
    const waiting = simulator.waitForRequest(mistake);
    const refused = expect(waiting).rejects.toThrow('mistake of the test');
    expect((await call(simulator, `${urls.sandboxUrl}/banks/v1`)).status).toBe(401);
    await refused;
    await expect(simulator.waitForRequest(mistake)).rejects.toThrow('mistake of the test');
    expect(await failCode(call(simulator, urls.sandboxMtlsUrl))).toContain('CERTIFICATE_REQUIRED');
    for (const name of ['onRequest', 'onRefusal']) {
      const text = `${name} of ServiceSimulator threw: Error: mistake of the test`;
      while (!warned.mock.calls.some(([warning]) => String(warning).startsWith(text))) {
        await new Promise(setImmediate);
      }
    }
    warned.mockRestore();
  });

  it('keeps a bounded record, live and as it arrived', async () => {
    simulator = await ServiceSimulator.start({ maxRequests: 4 });
    const { requests } = simulator;
    for (const path of ['/1', '/2', '/3', '/4', '/5?q=%20']) {
      await call(simulator, simulator.urls.sandboxUrl + path, { headers: { 'X-Mixed': 'Case' } });
    }
    expect(requests.map(({ path }) => path)).toEqual(['/3', '/4', '/5?q=%20']);
    expect(requests[0].headers['x-mixed']).toBe('Case');
    expect(requests[0].rawHeaders).toContain('X-Mixed');
    simulator.clearRequests();
    expect(requests).toEqual([]);
    await simulator.stop();
  });

  it('does not print its keys, beyond the application certificate it hands out', async () => {
    simulator = await ServiceSimulator.start();
    const printed = inspect(simulator, { depth: 20, showHidden: true });
    expect(printed).not.toContain(simulator.clientSecret);
    expect(printed.match(/PRIVATE KEY/g)?.length ?? 0).toBeLessThanOrEqual(2);
    await simulator.stop();
  });
});

describe('moduleOptions() and env() of ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
  });
  afterAll(() => simulator.stop());

  it('are complete for production mTLS by default', () => {
    const { certificate, privateKey } = simulator.application;
    expect(simulator.moduleOptions()).toEqual({
      environment: 'production',
      authentication: 'mtls',
      urls: simulator.urls,
      appToken: simulator.appToken,
      tls: { certificate, privateKey, chain: simulator.chain },
    });
    expect(new Set(Object.values(simulator.urls)).size).toBe(6);
  });

  it.each([
    [{ environment: 'sandbox' }, 'app-token', false, false],
    [{ environment: 'sandbox', authentication: 'mtls' }, 'mtls', false, true],
    [{ environment: 'sandbox', authentication: 'oauth' }, 'oauth', true, false],
    [{ environment: 'sandbox', authentication: 'oauth', clientCertificate: true }, 'oauth', true, true],
    [{ environment: 'production', oauth: true }, 'mtls', true, true],
    [{ environment: 'production', authentication: 'oauth' }, 'oauth', true, false],
  ] as const)('fit the mode %j', (mode, authentication, oauth, certificate) => {
    const options = simulator.moduleOptions(mode);
    expect(options).toMatchObject({ environment: mode.environment, authentication });
    const { clientId, clientSecret } = simulator;
    expect(options.oauth).toEqual(oauth ? { clientId, clientSecret } : undefined);
    expect(Object.keys(options.tls).sort()).toEqual(
      certificate ? ['certificate', 'chain', 'privateKey'] : ['chain'],
    );
  });

  it('take another certificate, the token endpoint over mTLS, and leave {oauth_base_url} out', async () => {
    const certificate = await simulator.issueCertificate({ passphrase: 'pass' });
    const options = simulator.moduleOptions({
      authentication: 'oauth',
      certificate,
      oauthMtls: true,
      oauthBaseUrl: false,
    });
    expect(options.tls).toEqual({
      certificate: certificate.certificate,
      privateKey: certificate.privateKey,
      passphrase: 'pass',
      chain: simulator.chain,
    });
    expect(options.oauth).toMatchObject({ mtls: true });
    expect(options.urls).not.toHaveProperty('oauthBaseUrl');
  });

  it('contain the current client secret', () => {
    const secret = simulator.rotateClientSecret();
    expect(simulator.moduleOptions({ oauth: true }).oauth?.clientSecret).toBe(secret);
  });

  it('are the same as variables, each on one line', () => {
    const options = simulator.moduleOptions({ oauth: true });
    const env = simulator.env();
    expect(env).toEqual({
      SERVICE_ENVIRONMENT: 'production',
      SERVICE_AUTHENTICATION: 'mtls',
      SERVICE_BASE_URL: options.urls.baseUrl,
      SERVICE_SANDBOX_URL: options.urls.sandboxUrl,
      SERVICE_SANDBOX_MTLS_URL: options.urls.sandboxMtlsUrl,
      SERVICE_AUTH_URL: options.urls.authUrl,
      SERVICE_SANDBOX_AUTH_URL: options.urls.sandboxAuthUrl,
      SERVICE_APP_TOKEN: simulator.appToken,
      SERVICE_CLIENT_ID: simulator.clientId,
      SERVICE_CLIENT_SECRET: simulator.clientSecret,
      SERVICE_TLS_CERTIFICATE: options.tls.certificate?.replaceAll('\n', '\\n'),
      SERVICE_TLS_PRIVATE_KEY: options.tls.privateKey?.replaceAll('\n', '\\n'),
      SERVICE_TLS_CHAIN: simulator.chain.replaceAll('\n', '\\n'),
    });
    expect(Object.values(env).join('')).not.toContain('\n');
  });

  it('have all credentials as variables in each mode, but those that are left out', async () => {
    const all = simulator.env();
    const mode = { environment: 'sandbox', authentication: 'app-token' } as const;
    expect(simulator.env(mode)).toEqual({
      ...all,
      SERVICE_ENVIRONMENT: 'sandbox',
      SERVICE_AUTHENTICATION: 'app-token',
    });
    const less = simulator.env({ ...mode, oauth: false, clientCertificate: false, oauthBaseUrl: true });
    expect(less).toHaveProperty('SERVICE_OAUTH_BASE_URL', simulator.urls.oauthBaseUrl);
    expect(Object.keys(less)).toEqual(
      expect.not.arrayContaining(['SERVICE_CLIENT_ID', 'SERVICE_CLIENT_SECRET']),
    );
    expect(Object.keys(less).filter((name) => name.includes('_TLS_'))).toEqual(['SERVICE_TLS_CHAIN']);
    const other = await simulator.issueCertificate();
    expect(simulator.env({ certificate: other }).SERVICE_TLS_CERTIFICATE).toBe(
      other.certificate.replaceAll('\n', '\\n'),
    );
    const withoutOAuth = await ServiceSimulator.start({ oauth: { enabled: false } });
    expect(withoutOAuth.env()).not.toHaveProperty('SERVICE_CLIENT_ID');
    await withoutOAuth.stop();
  });

  it('are named where the module is', () => {
    const env = simulator.env({ environment: 'sandbox', name: 'ksa' });
    expect(env.SERVICE_KSA_AUTHENTICATION).toBe('app-token');
    expect(Object.keys(env).every((key) => key.startsWith('SERVICE_KSA_'))).toBe(true);
  });
});
