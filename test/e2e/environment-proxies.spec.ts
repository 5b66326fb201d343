import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type ServiceConfigurationError, type ServiceConnectionError } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../lib/cli/doctor.js';
import { proxyChoice } from '../../lib/config/address.js';
import { resolveOptions } from '../../lib/config/resolve-options.js';
import { explainFault } from '../../lib/exchange/fault.js';
import { commandIo } from '../helpers/command-io.js';
import { startConnectProxy, type ConnectProxy } from '../helpers/connect-proxy.js';
import { rawServer } from '../helpers/loopback.js';
import { readDocument } from '../helpers/readme.js';
import { modulesOfBlock, rejection, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';
import { until } from '../helpers/until.js';

const NAMES = ['https_proxy', 'http_proxy', 'all_proxy', 'no_proxy'].flatMap((name) => [
  name,
  name.toUpperCase(),
]);

describe("http.proxy: 'environment'", () => {
  const { setVariables } = modulesOfBlock();
  const before = Object.fromEntries(NAMES.map((name) => [name, process.env[name]]));
  let simulator: ServiceSimulator;
  let proxy: ConnectProxy;
  /** Host and port of the API and of the token endpoint. */
  let api: string;
  let token: string;

  beforeAll(async () => {
    simulator = await startSimulator();
    const { baseUrl, authUrl } = simulator.urls;
    [api, token] = [baseUrl, authUrl].map((address) => new URL(address).host);
  });
  beforeEach(async () => {
    for (const name of NAMES) delete process.env[name];
    proxy = await startConnectProxy();
  });
  afterEach(() => proxy.stop());
  afterAll(async () => {
    for (const name of NAMES) if (before[name] !== undefined) process.env[name] = before[name];
    await simulator.stop();
  });

  const options = (http: object = { proxy: 'environment' }) => ({
    ...simulator.moduleOptions({ authentication: 'oauth', oauthBaseUrl: false }),
    http,
  });

  /** Calls without a token, so that theirs is the address that fails. */
  const mutual = () => {
    const { authentication, appToken, tls } = simulator.moduleOptions({ authentication: 'mtls' });
    return { authentication, appToken, tls };
  };

  /** One token and one call, with these variables; the targets of the proxy. */
  async function targetsWith(variables: Record<string, string>, http?: object): Promise<string[]> {
    setVariables(variables);
    const { module, banks } = await startModule(options(http));
    await banks.list();
    await module.close();
    return proxy.targets.splice(0).sort();
  }

  const PROXY = 'http://proxy.example:3128';
  const OTHER = 'http://other.example:3128';
  /** Where an address leads. */
  const through = (address: string) => proxyChoice('environment')?.(address)?.reveal();

  it('sends calls and token requests through the proxy, except to addresses in NO_PROXY', async () => {
    const HTTPS_PROXY = proxy.url;
    expect(await targetsWith({ HTTPS_PROXY })).toEqual([api, token].sort());
    expect(await targetsWith({ HTTPS_PROXY, NO_PROXY: api })).toEqual([token]);
    expect(await targetsWith({ HTTPS_PROXY, NO_PROXY: token })).toEqual([api]);
  });

  it('is needed: without it, or with a URL, the variables are ignored', async () => {
    expect(await targetsWith({ HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: '' }, {})).toEqual([]);
    const given = { proxy: proxy.url };
    expect(await targetsWith({ HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: '*' }, given)).toHaveLength(2);
  });

  it.each<[Record<string, string>, string | undefined]>([
    [{ HTTPS_PROXY: PROXY }, PROXY],
    [{ https_proxy: PROXY }, PROXY],
    [{ ALL_PROXY: PROXY }, PROXY],
    [{ all_proxy: PROXY }, PROXY],
    [{ https_proxy: PROXY, HTTPS_PROXY: OTHER, all_proxy: OTHER }, PROXY],
    [{ HTTPS_PROXY: PROXY, ALL_PROXY: OTHER, all_proxy: OTHER }, PROXY],
    // HTTP_PROXY is for http addresses. The module accepts only http addresses on loopback.
    [{ HTTP_PROXY: PROXY, http_proxy: PROXY }, undefined],
  ])(
    'with %j uses the proxy %s for an https address, and none for an http address',
    (variables, expected) => {
      setVariables(variables);
      expect(through('https://10.0.0.7:8443')).toBe(expected);
      expect(through('http://127.0.0.1:8080')).toBeUndefined();
    },
  );

  it.each([
    ['*', false],
    ['10.0.0.7', false],
    [' other.example, 10.0.0.7 ', false],
    ['10.0.0.7:443,.0.0.7:1', true],
    ['10.0.0.7:8443', false],
    ['*.0.0.7:8443', false],
    ['.0.0.7', false],
    // proxy-from-env knows no CIDR.
    ['10.0.0.0/8', true],
  ])('with NO_PROXY=%s uses a proxy for 10.0.0.7, port 8443: %s', (list, expected) => {
    setVariables({ HTTPS_PROXY: PROXY, [list === '*' ? 'no_proxy' : 'NO_PROXY']: list });
    expect(through('https://10.0.0.7:8443')).toBe(expected ? PROXY : undefined);
  });

  it("decides by the address of each request of the application's own over auth.httpsAgent", async () => {
    setVariables({ HTTPS_PROXY: proxy.url.replace('//', '//us%40er:s3cret@'), NO_PROXY: `127.0.0.1` });
    const { module, auth } = await startModule(options());
    const { port } = new URL(simulator.urls.sandboxUrl);
    for (const host of ['localhost', '127.0.0.1']) {
      const url = `https://${host}:${port}/banks/v1`;
      await new Promise((resolve, reject) =>
        get(url, { agent: auth.httpsAgent }, (response) => response.resume().on('end', resolve)).on(
          'error',
          reject,
        ),
      );
    }
    expect(proxy.targets).toEqual([`localhost:${port}`]);
    expect(proxy.credentials).toEqual([`Basic ${Buffer.from('us@er:s3cret').toString('base64')}`]);
    await module.close();
  });

  it.each([
    ['HTTPS_PROXY', '127.0.0.1:3128'],
    ['all_proxy', 'socks5://user:s3cret@proxy.example:1080'],
  ])('reports a faulty %s at the start without its value', async (name, value) => {
    setVariables({ [name]: value });
    const error = (await rejection(startModule(options()))) as ServiceConfigurationError;
    expect(error.faults).toEqual([
      {
        option: 'http.proxy',
        variable: name,
        message: 'must be the URL of a proxy, for example http://proxy.example:3128',
      },
    ]);
  });

  it('names the variable if the proxy cannot be reached', async () => {
    setVariables({ HTTPS_PROXY: 'http://user:s3cret@127.0.0.1:1' });
    const { options: resolved } = await resolveOptions(options());
    expect(resolved?.describeOption('http.proxy')).toBe('http.proxy (HTTPS_PROXY)');
    const { module, banks } = await startModule(options({ proxy: 'environment', retries: 0 }));
    const error = await rejection(banks.list());
    expect(error).toMatchObject({
      kind: 'proxy',
      hint: expect.stringMatching(/^Check host and port of http\.proxy \(HTTPS_PROXY\)/),
    });
    await module.close();
  });

  it('works as docs/proxies.md shows it', async () => {
    const { fences } = await readDocument('docs/proxies.md');
    const block = fences.find(({ text }) => text.includes('SERVICE_HTTP_PROXY=environment'))?.text ?? '';
    setVariables(
      Object.fromEntries(
        block
          .trim()
          .split('\n')
          .map((line) => line.split('=')),
      ),
    );
    expect(process.env.SERVICE_HTTP_PROXY).toBe('environment');
    expect(through('https://api.example')).toBe(PROXY);
    expect(through('https://10.0.0.7')).toBe(PROXY);
    expect(through('https://auth.internal.example/path')).toBeUndefined();
    expect(through('https://10.0.0.7:8443')).toBeUndefined();
    // As the sentences below the block say.
    setVariables({ NO_PROXY: '::1,api.example' });
    expect(through('https://[::1]')).toBeDefined();
    expect(through('https://api.example.')).toBeDefined();
    setVariables({ NO_PROXY: '[::1]' });
    expect(through('https://[::1]')).toBeUndefined();
  });

  describe('if it is not set', () => {
    const FAR = 'https://no-such-host.invalid';
    const told =
      / HTTPS_PROXY is set, but ignored: to go through that proxy, set http\.proxy \(SERVICE_HTTP_PROXY\) to environment\.$/;

    it.each(['the API', 'the token endpoint'])(
      'the error says that the variable is ignored if %s cannot be reached',
      async (place) => {
        setVariables({ HTTPS_PROXY: 'http://127.0.0.1:1' });
        const { baseUrl, authUrl } = simulator.urls;
        const isApi = place === 'the API';
        const { module, banks, auth } = await startModule({
          ...options({ retries: 0 }),
          ...(isApi && mutual()),
          environment: 'production',
          urls: isApi ? { baseUrl: `${FAR}/v`, authUrl } : { baseUrl, authUrl: FAR },
        });
        expect(await rejection(isApi ? banks.list() : auth.getApiToken())).toMatchObject({
          kind: 'dns',
          hint: expect.stringMatching(told),
          options: [isApi ? 'urls.baseUrl' : 'urls.authUrl', 'http.proxy'],
        });
        await module.close();
      },
    );

    it.each([
      ['cannot be connected with', FAR, { kind: 'timeout', phase: 'connecting' }, true],
      ['answers', FAR, { kind: 'timeout', phase: 'reading' }, false],
      ['is on loopback', 'https://127.0.0.1', { kind: 'timeout', phase: 'connecting' }, false],
      ['speaks TLS', FAR, { kind: 'tls', phase: 'connecting' }, false],
    ] as const)('of an address that %s: %s, %j: told is %s', async (_, url, fault, expected) => {
      setVariables({ HTTPS_PROXY: 'http://127.0.0.1:1' });
      const { http } = (await resolveOptions(options({}))).options ?? {};
      const place = { url: new URL(url), option: 'urls.baseUrl', describeOption: String, http };
      const { hint } = explainFault('GET', fault, { ...place, server: 'api' });
      expect(/HTTPS_PROXY is set, but ignored/.test(hint ?? '')).toBe(expected);
    });
  });

  it('names a proxy that accepts connections but opens no tunnel', async () => {
    const silent = await rawServer(() => undefined);
    const given = { proxy: silent.url.replace('//', '//user:s3cret@'), retries: 0, connectTimeout: 200 };
    const { module, banks, auth } = await startModule({ ...options(given), ...mutual() });
    const { host } = new URL(silent.url);
    for (const call of [banks.list(), auth.getApiToken()]) {
      const error = (await rejection(call)) as ServiceConnectionError;
      expect(error.code).toBe('connection_timeout');
      expect(error.message).toMatch(new RegExp(`the proxy ${host} opened no tunnel`));
      expect(error.message).not.toMatch(/firewall/);
      expect(error.hint).toMatch(
        /^Check host and port of http\.proxy \(SERVICE_HTTP_PROXY\), .*ask who runs the proxy whether it reaches 127\.0\.0\.1, port \d+\.$/,
      );
      expect(error.message + error.hint).not.toContain('s3cret');
    }
    await module.close();
    await silent.close();
  });

  it('retries if the proxy cannot look the name up (404, as Privoxy and the npm package proxy respond)', async () => {
    let asked = 0;
    const unknown = await rawServer((socket) =>
      socket.once('data', () => {
        asked += 1;
        socket.end('HTTP/1.1 404 No such domain\r\nContent-Length: 0\r\n\r\n');
      }),
    );
    const { module, banks } = await startModule({ ...options({ proxy: unknown.url }), ...mutual() });
    expect(await rejection(banks.list())).toMatchObject({ code: 'connection_proxy', retryable: true });
    expect(asked).toBe(3);
    await module.close();
    await unknown.close();
  });

  it('names the proxy if the tunnel ends during a call, as Apache ends an idle one after 60 s', async () => {
    const ending = await startConnectProxy();
    const { module, http } = await startModule({
      ...options({ proxy: ending.url, retries: 0 }),
      ...mutual(),
    });
    // The ticket of the first call says that the server took the certificate.
    await http.get('/banks/v1');
    simulator.fail({ path: '/slow', fault: 'hang' });
    const error = rejection(http.post('/slow', {}));
    await until(() => simulator.requests.some(({ path }) => path === '/slow'));
    await ending.stop();
    expect(await error).toMatchObject({
      code: 'connection_reset',
      message: expect.stringMatching(
        `Either the server closed it, or the proxy ${new URL(ending.url).host}, which may close a tunnel that is idle`,
      ),
      hint: expect.stringMatching(/ask who runs the proxy in http\.proxy .* idle timeout/),
    });
    await module.close();
  });

  describe('the doctor', () => {
    async function doctor(variables: Record<string, string>): Promise<string> {
      setVariables(variables);
      const given = simulator.env({ authentication: 'oauth', oauthBaseUrl: false });
      const io = commandIo({ ...given, SERVICE_HTTP_PROXY: 'environment', ...variables });
      await run([], io, { stepMs: 10_000, totalMs: 20_000 });
      return io.stdout();
    }

    it('says which proxy is used for which address, and why', async () => {
      const credentials = proxy.url.replace('//', '//user:s3cret@');
      const printed = await doctor({ HTTPS_PROXY: credentials, NO_PROXY: token });
      const way = `through the proxy ${new URL(proxy.url).host};`;
      expect(printed).toMatch(new RegExp(`^ok +api\\.connection +\\S+ ${way}`, 'm'));
      expect(printed).toMatch(/^ok +token-endpoint\.connection +TLSv1\.3; /m);
      expect(printed).toMatch(/^ok +api\.banks/m);
      expect(printed).not.toContain('s3cret');
      expect(proxy.targets).not.toContain(token);
    });

    it('requests a token without a proxy even if the proxy of the API is down', async () => {
      const printed = await doctor({ HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: token });
      expect(printed).toMatch(
        /^failed +api\.connection .+$\n.+Check host and port of http\.proxy \(HTTPS_PROXY\)/m,
      );
      expect(printed).toMatch(/^ok +token\.api/m);
      expect(printed).toMatch(/^skipped +api\.banks +Not checked, because api\.connection failed/m);
    });

    it('says if a proxy is ignored, and if none is intended', async () => {
      const far = { SERVICE_BASE_URL: 'https://no-such-host.invalid', HTTPS_PROXY: 'http://127.0.0.1:1' };
      expect(await doctor({ ...far, SERVICE_HTTP_PROXY: '' })).toMatch(
        /^failed +api\.connection +[^]*HTTPS_PROXY is set, but ignored: to go through that proxy, set http\.proxy/m,
      );
      expect(await doctor({ ...far, SERVICE_HTTP_PROXY: 'none' })).toMatch(
        /^ok +SERVICE_HTTP_PROXY +none \(/m,
      );
    });

    it('reads the variables of an env file, as ConfigModule does for the application', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
      const file = join(folder, '.env');
      await writeFile(file, `HTTPS_PROXY=${proxy.url}\nNO_PROXY=${token}\nSERVICE_HTTP_PROXY=environment\n`);
      const io = commandIo(simulator.env({ authentication: 'oauth', oauthBaseUrl: false }));
      await run(['--env-file', file], io);
      await rm(folder, { recursive: true });
      expect(io.stdout()).toMatch(/^ok +api\.connection +\S+ through the proxy /m);
      expect(io.stdout()).toMatch(/^ok +token-endpoint\.connection +TLSv1\.3; /m);
    });

    it('reports a faulty variable', async () => {
      expect(await doctor({ HTTPS_PROXY: 'proxy.example:3128' })).toMatch(
        /^failed +HTTPS_PROXY +Must be the URL of a proxy.+\n.+Correct HTTPS_PROXY in the environment\.$/m,
      );
    });
  });
});
