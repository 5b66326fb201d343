import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type ServiceConfigurationError, type ServiceConnectionError } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../lib/cli/doctor.js';
import { proxyChoice } from '../../lib/config/proxy.js';
import { resolveOptions } from '../../lib/config/resolve-options.js';
import { explainFault } from '../../lib/exchange/explain-fault.js';
import { commandIo } from '../helpers/command-io.js';
import { startConnectProxy, type ConnectProxy } from '../helpers/connect-proxy.js';
import { rawServer } from '../helpers/loopback.js';
import { readDocument } from '../helpers/readme.js';
import { modulesOfBlock, rejection, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

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
    return proxy.targets.sort();
  }

  it.each(['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'])('%s: API and tokens', async (name) => {
    expect(await targetsWith({ [name]: proxy.url })).toEqual([api, token].sort());
  });

  it('in lower case counts before upper case, and HTTPS_PROXY before ALL_PROXY', async () => {
    const nobody = 'http://127.0.0.1:1';
    expect(
      await targetsWith({ https_proxy: proxy.url, HTTPS_PROXY: nobody, all_proxy: nobody }),
    ).toHaveLength(2);
  });

  it.each([
    ['*', []],
    ['127.0.0.1', []],
    [' other.example, 127.0.0.1 ', []],
    ['127.0.0.1:443,.0.0.1:1', ['api', 'token']],
    ['127.0.0.1:API', ['token']],
    ['*.0.0.1:TOKEN', ['api']],
    ['.0.0.1', []],
    // proxy-from-env knows no CIDR.
    ['127.0.0.0/8', ['api', 'token']],
  ])('NO_PROXY=%s', async (list, through) => {
    const port = (host: string) => host.split(':')[1];
    const variables = {
      HTTPS_PROXY: proxy.url,
      [list === '*' ? 'no_proxy' : 'NO_PROXY']: list.replace('API', port(api)).replace('TOKEN', port(token)),
    };
    expect(await targetsWith(variables)).toEqual(
      through.map((name) => (name === 'api' ? api : token)).sort(),
    );
  });

  it('takes HTTP_PROXY for http addresses only, and no proxy for those on loopback', async () => {
    expect(await targetsWith({ HTTP_PROXY: proxy.url, http_proxy: proxy.url })).toEqual([]);
    expect(proxyChoice('environment')?.('http://127.0.0.1:8080')).toBeUndefined();
  });

  it('is asked for: without it, and with a URL, the variables count for nothing', async () => {
    expect(await targetsWith({ HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: '' }, {})).toEqual([]);
    const given = { proxy: proxy.url };
    expect(await targetsWith({ HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: '*' }, given)).toHaveLength(2);
  });

  it("decides for each origin of the host's own calls over auth.httpsAgent", async () => {
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
  ])('names a faulty %s at start, and not its value', async (name, value) => {
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

  it('names the variable where the proxy cannot be reached', async () => {
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

  it('is as docs/configuration.md shows it', async () => {
    const { fences } = await readDocument('docs/configuration.md');
    const block = fences.find(({ text }) => text.includes('SERVICE_HTTP_PROXY=environment'))?.text ?? '';
    setVariables(
      Object.fromEntries(
        block
          .trim()
          .split('\n')
          .map((line) => line.split('=')),
      ),
    );
    const proxyFor = proxyChoice(process.env.SERVICE_HTTP_PROXY);
    const through = (address: string) => proxyFor?.(address)?.reveal();
    expect(through('https://api.example')).toBe('http://proxy.example:3128');
    expect(through('https://10.0.0.7')).toBe('http://proxy.example:3128');
    expect(through('https://auth.internal.example/path')).toBeUndefined();
    expect(through('https://10.0.0.7:8443')).toBeUndefined();
    // As the sentences below the block say.
    setVariables({ NO_PROXY: '::1,api.example' });
    expect(through('https://[::1]')).toBeDefined();
    expect(through('https://api.example.')).toBeDefined();
    setVariables({ NO_PROXY: '[::1]' });
    expect(through('https://[::1]')).toBeUndefined();
  });

  describe('left out', () => {
    const FAR = 'https://no-such-host.invalid';
    const far = (http: object = {}) => ({
      ...options({ retries: 0, ...http }),
      environment: 'production' as const,
      urls: { baseUrl: `${FAR}/v`, authUrl: simulator.urls.authUrl },
    });
    it('is told in the hint where an address cannot be reached, and not where it answers', async () => {
      setVariables({ HTTPS_PROXY: 'http://127.0.0.1:1' });
      const { module, banks } = await startModule({ ...far(), ...mutual() });
      const told =
        / HTTPS_PROXY is set, but ignored: to go through that proxy, set http\.proxy \(SERVICE_HTTP_PROXY\) to environment\.$/;
      expect(await rejection(banks.list())).toMatchObject({
        kind: 'dns',
        hint: expect.stringMatching(told),
        options: ['urls.baseUrl', 'http.proxy'],
      });
      await module.close();
      const fault = { kind: 'timeout', phase: 'connecting' } as const;
      const { options: resolved } = await resolveOptions(far());
      const place = (url: string) => ({
        url: new URL(url),
        option: 'urls.baseUrl',
        describeOption: String,
        server: 'api' as const,
        http: resolved?.http,
      });
      const IS_TOLD = /HTTPS_PROXY is set, but ignored/;
      expect(explainFault('GET', fault, place(FAR)).hint).toMatch(IS_TOLD);
      expect(explainFault('GET', { ...fault, phase: 'reading' }, place(FAR)).hint).not.toMatch(IS_TOLD);
      expect(explainFault('GET', fault, place('https://127.0.0.1')).hint).not.toMatch(IS_TOLD);
      expect(explainFault('GET', { ...fault, kind: 'tls' }, place(FAR)).hint).not.toMatch(IS_TOLD);
    });

    it('is told of a token endpoint too', async () => {
      setVariables({ HTTPS_PROXY: 'http://127.0.0.1:1' });
      const urls = { baseUrl: simulator.urls.baseUrl, authUrl: FAR };
      const { module, auth } = await startModule({ ...far(), urls });
      expect(await rejection(auth.getApiToken())).toMatchObject({
        kind: 'dns',
        hint: expect.stringMatching(/HTTPS_PROXY is set, but ignored/),
      });
      await module.close();
    });
  });

  it('names a proxy that takes connections and opens no tunnel', async () => {
    const silent = await rawServer(() => undefined);
    const given = { proxy: silent.url.replace('//', '//user:s3cret@'), retries: 0, connectTimeout: 200 };
    const { module, banks, auth } = await startModule({ ...options(given), ...mutual() });
    const { host } = new URL(silent.url);
    for (const call of [banks.list(), auth.getApiToken()]) {
      const error = (await rejection(call)) as ServiceConnectionError;
      // The tunnel's limit and the call's are the same: on a busy machine either may be seen first.
      expect(error.message).toMatch(new RegExp(`the proxy ${host} .*(no tunnel|did not open a tunnel)`));
      expect(error.message).not.toMatch(/firewall/);
      expect(error.hint).toMatch(
        /^Check host and port of http\.proxy \(SERVICE_HTTP_PROXY\), .*ask who runs the proxy whether it reaches 127\.0\.0\.1, port \d+\.$/,
      );
      expect(error.message + error.hint).not.toContain('s3cret');
    }
    await module.close();
    await silent.close();
  });

  describe('the doctor', () => {
    async function doctor(variables: Record<string, string>): Promise<string> {
      setVariables(variables);
      const given = simulator.env({ authentication: 'oauth', oauthBaseUrl: false });
      const io = commandIo({ ...given, SERVICE_HTTP_PROXY: 'environment', ...variables });
      await run([], io, { stepMs: 10_000, totalMs: 20_000 });
      return io.printed();
    }

    it('says which proxy is for which address, and why', async () => {
      const credentials = proxy.url.replace('//', '//user:s3cret@');
      const printed = await doctor({ HTTPS_PROXY: credentials, NO_PROXY: token });
      const way = `through the proxy ${new URL(proxy.url).host};`;
      expect(printed).toMatch(new RegExp(`^ok +api\\.connection +\\S+ ${way}`, 'm'));
      expect(printed).toMatch(/^ok +token-endpoint\.connection +TLSv1\.3; /m);
      expect(printed).toMatch(/^ok +api\.banks/m);
      expect(printed).not.toContain('s3cret');
      expect(proxy.targets).not.toContain(token);
    });

    it('asks for a token without a proxy also where the proxy is down', async () => {
      const printed = await doctor({ HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: token });
      expect(printed).toMatch(
        /^failed +api\.connection .+$\n.+Check host and port of http\.proxy \(HTTPS_PROXY\)/m,
      );
      expect(printed).toMatch(/^ok +token\.api/m);
      expect(printed).toMatch(/^skipped +api\.banks +Follows from api\.connection/m);
    });

    it('says where a proxy is ignored, and that none is meant', async () => {
      const far = { SERVICE_BASE_URL: 'https://no-such-host.invalid', HTTPS_PROXY: 'http://127.0.0.1:1' };
      expect(await doctor({ ...far, SERVICE_HTTP_PROXY: '' })).toMatch(
        /^failed +api\.connection +[^]*HTTPS_PROXY is set, but ignored: to go through that proxy, set http\.proxy/m,
      );
      expect(await doctor({ ...far, SERVICE_HTTP_PROXY: 'none' })).toMatch(
        /^ok +SERVICE_HTTP_PROXY +none \(/m,
      );
    });

    it('knows the variables of an env file, which ConfigModule sets for the application', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
      const file = join(folder, '.env');
      await writeFile(file, `HTTPS_PROXY=${proxy.url}\nNO_PROXY=${token}\nSERVICE_HTTP_PROXY=environment\n`);
      const io = commandIo(simulator.env({ authentication: 'oauth', oauthBaseUrl: false }));
      await run(['--env-file', file], io);
      await rm(folder, { recursive: true });
      expect(io.printed()).toMatch(/^ok +api\.connection +\S+ through the proxy /m);
      expect(io.printed()).toMatch(/^ok +token-endpoint\.connection +TLSv1\.3; /m);
    });

    it('names a faulty variable', async () => {
      expect(await doctor({ HTTPS_PROXY: 'proxy.example:3128' })).toMatch(
        /^failed +HTTPS_PROXY +Must be the URL of a proxy.+\n.+Correct HTTPS_PROXY in the environment\.$/m,
      );
    });
  });
});
