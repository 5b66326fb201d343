import { describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inspect } from 'node:util';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { type TokenStore } from '../../../lib/config/token-cache.options.js';
import { readVariables, variableOf } from '../../../lib/config/variables.js';

const CLIENT_ID = '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52';
const oauth = { clientId: CLIENT_ID, clientSecret: 's3cret' };
const sandbox: ServiceModuleOptions = { urls: { sandboxUrl: 'https://sandbox.example' }, appToken: 'app-1' };
const production: ServiceModuleOptions = {
  environment: 'production',
  urls: { baseUrl: 'https://api.example/base/', authUrl: 'https://auth.example/' },
  appToken: 'app-1',
  tls: { certificate: 'PEM', privateKey: 'PEM' },
};

const storeWith = (more: Partial<TokenStore>): TokenStore => ({
  get: async () => undefined,
  set: async () => undefined,
  delete: async () => undefined,
  ...more,
});

async function faultsOf(options: ServiceModuleOptions, name?: string) {
  return (await resolveOptions(options, name)).faults;
}

async function resolved(options: ServiceModuleOptions) {
  const { options: result, faults } = await resolveOptions(options);
  expect(faults).toEqual([]);
  if (!result) throw new Error('no options');
  return result;
}

describe('resolveOptions', () => {
  it('sets the defaults of the design', async () => {
    const options = await resolved(sandbox);
    expect(options).toMatchObject({
      environment: 'sandbox',
      authentication: 'app-token',
      appTokenHeader: 'service-app-token',
      linkSdk: { minTokenLife: 600, includeAppToken: true, requireOAuth: false },
      tokenCache: { maxEntries: 10_000 },
      http: {
        timeout: 30_000,
        connectTimeout: 5_000,
        retries: 2,
        maxResponseBytes: 10_485_760,
        maxSockets: 50,
        trailingSlash: false,
        shutdownTimeout: 5_000,
      },
    });
    expect([options.oauth, options.sendAppTokenWithBearer, options.http.attemptTimeout]).toEqual([
      undefined,
      false,
      undefined,
    ]);
  });

  it("has 'mtls' as its default in production", async () => {
    expect((await resolved(production)).authentication).toBe('mtls');
  });

  it('reports every fault at once, each with option, variable and message', async () => {
    const faults = await faultsOf({
      startupCheck: 'maybe' as never,
      authentication: 'oauth',
      urls: { sandboxUrl: 'http://sandbox.example' },
      oauth: { clientId: 'not-a-uuid' },
      http: { timeout: 0, retries: 'two' as never },
    });
    expect(faults.map(({ option, variable }) => `${option} ${variable}`).sort()).toEqual([
      'http.retries SERVICE_HTTP_RETRIES',
      'http.timeout SERVICE_HTTP_TIMEOUT',
      'oauth.clientId SERVICE_CLIENT_ID',
      'oauth.clientSecret SERVICE_CLIENT_SECRET',
      'startupCheck SERVICE_STARTUP_CHECK',
      'urls.sandboxAuthUrl SERVICE_SANDBOX_AUTH_URL',
      'urls.sandboxUrl SERVICE_SANDBOX_URL',
    ]);
  });

  it('names the variables of a named module', async () => {
    const [fault] = await faultsOf({ ...sandbox, appToken: undefined }, 'ksa');
    expect(fault?.variable).toBe('SERVICE_KSA_APP_TOKEN');
  });

  it('says of an environment and an authentication that nobody chose that they are the default', async () => {
    const messages = async (given: ServiceModuleOptions) =>
      (await faultsOf(given)).map(({ message }) => message.replace(/ \(developer portal.*/, ''));
    expect(await messages({})).toEqual([
      "is missing: 'app-token' (the default) sends it with every call.",
      "is missing: with environment 'sandbox' (the default) and authentication 'app-token' (the default), calls go there.",
    ]);
    expect(await messages({ environment: 'production' })).toEqual([
      "is missing: 'mtls' (the default) needs the application certificate and its private key",
      "is missing: 'mtls' (the default) sends it with every call.",
      "is missing: with environment 'production' and authentication 'mtls' (the default), calls go there.",
    ]);
    expect(await messages({ environment: 'sandbox', authentication: 'app-token' })).toContain(
      "is missing: with environment 'sandbox' and authentication 'app-token', calls go there.",
    );
  });

  it.each<[string, ServiceModuleOptions, string, RegExp]>([
    [
      'http outside loopback',
      { ...sandbox, urls: { sandboxUrl: 'http://a.example' } },
      'urls.sandboxUrl',
      /https/,
    ],
    [
      'an environment in quotes',
      { ...sandbox, environment: '"sandbox"' as never },
      'environment',
      /one of: production, sandbox; it is '"sandbox"'$/,
    ],
    [
      'another protocol',
      { ...sandbox, urls: { sandboxUrl: 'ftp://localhost' } },
      'urls.sandboxUrl',
      /must begin with https:\/\/$/,
    ],
    [
      'a token store that is text',
      { ...sandbox, tokenStore: 'redis://' as never },
      'tokenStore',
      /get, set and delete/,
    ],
    [
      'an option that is like no other',
      { ...sandbox, wireFormat: 'json' } as never,
      'wireFormat',
      /is not an option of ServiceModule; check its spelling\.$/,
    ],
    [
      'credentials',
      { ...sandbox, urls: { sandboxUrl: 'https://u:p@a.example' } },
      'urls.sandboxUrl',
      /password/,
    ],
    ['a query', { ...sandbox, urls: { sandboxUrl: 'https://a.example?x=1' } }, 'urls.sandboxUrl', /query/],
    [
      'an empty query',
      { ...sandbox, urls: { sandboxUrl: 'https://a.example/?' } },
      'urls.sandboxUrl',
      /query/,
    ],
    [
      'a fragment',
      { ...sandbox, urls: { sandboxUrl: 'https://a.example#x' } },
      'urls.sandboxUrl',
      /fragment/,
    ],
    ['no URL', { ...sandbox, urls: { sandboxUrl: 'a.example' } }, 'urls.sandboxUrl', /absolute URL/],
    ['an app token with a line break', { ...sandbox, appToken: 'a\r\nx: y' }, 'appToken', /header/],
    ['an app token that is not ASCII', { ...sandbox, appToken: 'tök' }, 'appToken', /ASCII/],
    [
      'a function of the app token that throws',
      { ...sandbox, appToken: () => Promise.reject(new Error('the vault says s3cret')) },
      'appToken',
      /^its function threw, returned no text(?!.*s3cret)/,
    ],
    [
      'one that returns no text',
      { ...sandbox, appToken: () => undefined as never },
      'appToken',
      /its function threw, returned no text/,
    ],
    [
      'one that returns an empty text',
      { ...sandbox, appToken: () => ' ' },
      'appToken',
      /its function returned an empty text/,
    ],
    [
      'one that returns what no header can hold',
      { ...sandbox, appToken: () => 'a\nb' },
      'appToken',
      /cannot be sent in a header/,
    ],
    ['an empty app token', { ...sandbox, appToken: '' }, 'appToken', /empty/],
    ['a header name with a line break', { ...sandbox, appTokenHeader: 'x\r\ny' }, 'appTokenHeader', /name/],
    [
      'a header that HTTP uses itself',
      { ...sandbox, appTokenHeader: 'Authorization' },
      'appTokenHeader',
      /itself/,
    ],
    [
      'app-token in production',
      { ...production, authentication: 'app-token' },
      'authentication',
      /sandbox only/,
    ],
    ['mtls without certificate', { ...production, tls: {} }, 'tls.certificate', /missing/],
    ['mtls without app token', { ...production, appToken: undefined }, 'appToken', /missing/],
    [
      'half of the credentials',
      { ...production, oauth: { clientId: CLIENT_ID } },
      'oauth.clientSecret',
      /missing/,
    ],
    [
      'a misspelt option',
      { ...sandbox, authentification: 'x' } as never,
      'authentification',
      /check its spelling/,
    ],
    ['a misspelt key', { ...sandbox, http: { timeOut: 1 } as never }, 'http.timeOut', /check its spelling/],
    [
      'what belongs beside a factory',
      { ...sandbox, name: 'ksa' } as never,
      'name',
      /belongs beside the options.*forRootAsync\(\{ name: \.\.\., useFactory \}\)/,
    ],
    ['a section that is no object', { ...sandbox, http: 5 as never }, 'http', /object/],
    ['a store without methods', { ...sandbox, tokenStore: {} as never }, 'tokenStore', /get, set and delete/],
    [
      'a store whose own settings will not do',
      { ...sandbox, tokenStore: storeWith({ check: async () => ['needs a url'] }) },
      'tokenStore',
      /^needs a url$/,
    ],
    [
      'a store that cannot check them',
      { ...sandbox, tokenStore: storeWith({ check: () => Promise.reject(new Error('of s3cret')) }) },
      'tokenStore',
      /^its method check\(\) failed, or took longer than 10 s\.$/,
    ],
    [
      'oauth.mtls without certificate',
      { ...sandbox, oauth: { ...oauth, mtls: true } },
      'oauth.mtls',
      /certificate/,
    ],
    ...['sendAppTokenWithBearer', 'linkSdk.includeAppToken'].map(
      (option): [string, ServiceModuleOptions, string, RegExp] => [
        `${option} without app token`,
        {
          ...{ ...production, authentication: 'oauth', oauth, appToken: undefined },
          ...(option === 'sendAppTokenWithBearer'
            ? { [option]: true }
            : { linkSdk: { includeAppToken: true } }),
        },
        'appToken',
        option === 'sendAppTokenWithBearer'
          ? /^is missing: sendAppTokenWithBearer \(SERVICE_SEND_APP_TOKEN_WITH_BEARER\) needs it\.$/
          : /^is missing: linkSdk\.includeAppToken \(SERVICE_LINK_SDK_INCLUDE_APP_TOKEN\) needs it\.$/,
      ],
    ),
    [
      'an unreadable file',
      { ...sandbox, appToken: { file: '/no/such/file' } },
      'appToken',
      /\/no\/such\/file.*ENOENT/,
    ],
  ])('refuses %s', async (_, options, option, message) => {
    const fault = (await faultsOf(options)).find((each) => each.option === option);
    expect(fault?.message).toMatch(message);
  });

  it('reports a value that is not valid once, and not as missing too', async () => {
    const { faults, options } = await resolveOptions({ ...sandbox, http: { retries: -1 } });
    expect(faults).toHaveLength(1);
    expect(options).toBeUndefined();
    expect(await faultsOf({ ...sandbox, urls: { sandboxUrl: 'nonsense' } })).toHaveLength(1);
  });

  it.each<[string, ServiceModuleOptions, string[]]>([
    ['an environment', { environment: 'prod' as never }, ['environment']],
    ['an authentication', { authentication: 'token' as never }, ['authentication']],
    [
      'app-token in production',
      { environment: 'production', authentication: 'app-token' },
      ['authentication'],
    ],
    ['an address', { ...sandbox, urls: { sandboxUrl: 'sandbox' } }, ['urls.sandboxUrl']],
    [
      'the address of production OAuth',
      {
        ...production,
        authentication: 'oauth',
        oauth,
        urls: { oauthBaseUrl: 'x', authUrl: 'https://auth.example' },
      },
      ['urls.oauthBaseUrl'],
    ],
    ['the section of addresses', { ...sandbox, urls: 'https://a.example' as never }, ['urls']],
    ['the section of OAuth', { ...production, authentication: 'oauth', oauth: 'x' as never }, ['oauth']],
    ['the section of TLS', { ...production, tls: 'x' as never }, ['tls']],
    [
      'the section of TLS, on which the address hangs',
      { authentication: 'oauth', oauth, tls: 5 as never, urls: { sandboxAuthUrl: 'https://a.example' } },
      ['tls'],
    ],
    [
      'an app token that others need',
      { ...sandbox, appToken: {} as never, sendAppTokenWithBearer: true, linkSdk: { includeAppToken: true } },
      ['appToken'],
    ],
    [
      'a missing app token that others need',
      { ...sandbox, appToken: undefined, sendAppTokenWithBearer: true },
      ['appToken'],
    ],
    [
      'a missing certificate that the token endpoint is to see',
      { ...production, tls: undefined, oauth: { ...oauth, mtls: true } },
      ['tls.certificate'],
    ],
  ])('reports nothing that is only a consequence of %s', async (_, options, expected) => {
    expect((await faultsOf(options)).map(({ option }) => option)).toEqual(expected);
  });

  it.each<[string, ServiceModuleOptions, string]>([
    ['environment', { environment: 'prod' as never }, "it is 'prod'"],
    ['http.timeout', { http: { timeout: '30s' as never } }, "it is '30s'"],
    ['http.retries', { http: { retries: 50 } }, 'it is 50'],
    ['oauth.mtls', { oauth: { mtls: 'maybe' as never } }, "it is 'maybe'"],
    [
      'http.trailingSlash',
      { http: { trailingSlash: ['bank', 'customers'] as never } },
      "(banks, customers); it is 'bank, customers'",
    ],
  ])('quotes the value of %s', async (option, options, told) => {
    const fault = (await faultsOf(options)).find((each) => each.option === option);
    expect(fault?.message).toContain(told);
  });

  it.each<[string, ServiceModuleOptions]>([
    ['SERVICE_APP_TOKEN', { ...sandbox, appToken: 'a\nb' }],
    ['SERVICE_APP_TOKEN_FILE', { ...sandbox, appToken: { file: '/no/such/file' } }],
    ['SERVICE_CLIENT_SECRET', { ...production, oauth: { clientId: CLIENT_ID, clientSecret: ' ' } }],
    [
      'SERVICE_CLIENT_SECRET_FILE',
      { ...production, oauth: { clientId: CLIENT_ID, clientSecret: { file: '/no/such/file' } } },
    ],
  ])('names the variable that was set: %s', async (variable, options) => {
    expect((await faultsOf(options)).map((fault) => fault.variable)).toEqual([variable]);
  });

  it.each([
    ['a secret', 'S3cr3t-abcDEF0123456789xyz'],
    ['a secret with a slash', 'aB3/dEf+ghIJ=='],
    ['a PEM', '-----BEGIN PRIVATE KEY-----\\nMIIBVQ\\n-----END PRIVATE KEY-----'],
    ['base64 of a PEM', Buffer.from('-----BEGIN PRIVATE KEY-----\n'.repeat(20)).toString('base64')],
    ['a secret that ends like the name of a file', 'S3cr3t+abcDEF==.pem'],
    ['a text that is longer than a path', `/${'S3cr3t'.repeat(100)}/key.pem`],
  ])('does not show %s that was given in place of the path of its file', async (_, file) => {
    for (const options of [
      { ...sandbox, appToken: { file } },
      { ...sandbox, oauth: { clientSecret: { file } } },
    ]) {
      const fault = (await faultsOf(options)).find(({ message }) =>
        message.includes('names a file that cannot be read'),
      );
      expect(fault?.variable).toMatch(/_FILE$/);
      expect(JSON.stringify(await faultsOf(options))).not.toContain(file.slice(0, 12));
    }
  });

  it.each(['key.pem', '/run/secrets/key', './key', '~/key', 'C:\\\\keys\\\\key'])(
    'shows the path %s',
    async (file) => {
      const [fault] = await faultsOf({ ...sandbox, appToken: { file } });
      expect(fault?.message).toContain(resolve(file));
    },
  );

  it('refuses an address of any length at once', async () => {
    const long = `https://a${'/'.repeat(200_000)}x`;
    const [fault] = await faultsOf({ ...sandbox, urls: { sandboxUrl: long } });
    expect(fault?.message).toMatch(/longer than 2048 characters/);
    const [other] = await faultsOf({
      ...sandbox,
      urls: { ...sandbox.urls, sandboxAuthUrl: `${long}/oauth2/token//` },
    });
    expect(other?.option).toBe('urls.sandboxAuthUrl');
  });

  it.each([
    ['appToken', { ...sandbox, appToken: 5 as never }, ' or a function'],
    ['tls.certificate', { ...sandbox, tls: { certificate: 5 as never } }, ''],
    ['oauth.clientSecret', { ...sandbox, oauth: { ...oauth, clientSecret: 5 as never } }, ' or a function'],
  ])('says what %s takes', async (option, options, orFunction) => {
    const fault = (await faultsOf(options)).find((each) => each.option === option);
    expect(fault?.message).toBe(`must be text or { file: path }${orFunction}, and not empty`);
  });

  it('refuses an empty file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'options-'));
    const file = join(folder, 'secret');
    await writeFile(file, ' \n');
    const faults = await faultsOf({ ...sandbox, appToken: { file } });
    await rm(folder, { recursive: true });
    expect(faults.map(({ message }) => message)).toEqual([`the file ${file} is empty.`]);
  });

  it('quotes no value in a fault', async () => {
    const planted = 'planted-s3cret';
    const faults = await faultsOf({
      environment: planted as never,
      appToken: `${planted}\n`,
      appTokenHeader: `${planted} x`,
      oauth: { clientId: planted, clientSecret: planted, refresh: planted as never },
      urls: { sandboxUrl: `https://user:${planted}@x.example`, baseUrl: planted },
      http: { proxy: planted },
    });
    expect(faults.length).toBeGreaterThan(5);
    expect(JSON.stringify(faults)).not.toContain(planted);
  });

  it.each<[string, ServiceModuleOptions, string]>([
    ['sandbox, app-token', sandbox, 'https://sandbox.example'],
    [
      'sandbox, mtls',
      {
        ...production,
        environment: 'sandbox',
        authentication: 'mtls',
        urls: { sandboxMtlsUrl: 'https://m.example/' },
      },
      'https://m.example',
    ],
    [
      'sandbox, oauth without certificate',
      {
        authentication: 'oauth',
        oauth,
        urls: {
          sandboxUrl: 'https://s.example',
          sandboxMtlsUrl: 'https://m.example',
          sandboxAuthUrl: 'https://a.example',
        },
      },
      'https://s.example',
    ],
    [
      'sandbox, oauth with certificate',
      {
        authentication: 'oauth',
        oauth,
        tls: { certificate: 'PEM', privateKey: 'PEM' },
        urls: {
          sandboxUrl: 'https://s.example',
          sandboxMtlsUrl: 'https://m.example',
          sandboxAuthUrl: 'https://a.example',
        },
      },
      'https://m.example',
    ],
    ['production, mtls', production, 'https://api.example/base'],
    ['production, oauth', { ...production, authentication: 'oauth', oauth }, 'https://api.example/base'],
    [
      'production, oauth with oauthBaseUrl',
      {
        ...production,
        authentication: 'oauth',
        oauth,
        urls: { ...production.urls, oauthBaseUrl: 'https://o.example' },
      },
      'https://o.example',
    ],
  ])('chooses the address of %s', async (_, options, baseUrl) => {
    expect((await resolved(options)).addresses.baseUrl).toBe(baseUrl);
  });

  it('names the options of the addresses that it chose', async () => {
    const { addresses } = await resolved({ ...production, oauth });
    expect([addresses.baseOption, addresses.tokenOption]).toEqual(['urls.baseUrl', 'urls.authUrl']);
    const without = (await resolved(sandbox)).addresses;
    expect([without.baseOption, without.tokenOption, without.tokenUrl]).toEqual([
      'urls.sandboxUrl',
      undefined,
      undefined,
    ]);
  });

  it('uses the token endpoint of the environment, without a double slash', async () => {
    const { addresses } = await resolved({ ...production, authentication: 'oauth', oauth });
    expect(addresses.tokenUrl).toBe('https://auth.example/oauth2/token');
    expect(addresses.baseOption).toBe('urls.baseUrl');
  });

  it('sends no credentials of one environment to the other', async () => {
    const { addresses } = await resolved({
      ...production,
      urls: { ...production.urls, oauthBaseUrl: 'https://o.example', sandboxUrl: 'https://s.example' },
    });
    expect([...addresses.origins]).toEqual(['https://api.example', 'https://o.example']);
  });

  describe('TLS by a sidecar: plain http on loopback', () => {
    const { tls: _, ...withoutCertificate } = production;
    const at = (baseUrl: string, authUrl: string, mtls = true) =>
      resolveOptions({ ...withoutCertificate, urls: { baseUrl, authUrl }, oauth: { ...oauth, mtls } });
    const [apiSidecar, tokenSidecar] = ['http://127.0.0.1:8080', 'http://localhost:8081'];
    const [api, tokens] = ['https://api.bank', 'https://auth.bank'];

    it.each([
      [apiSidecar, tokenSidecar, []],
      [apiSidecar, tokens, ['oauth.mtls']],
      [api, tokenSidecar, ['tls.certificate']],
      [api, tokens, ['tls.certificate']],
      ['http://10.0.0.1:8080', tokenSidecar, ['urls.baseUrl', 'tls.certificate']],
    ])('calls to %s, tokens from %s: a certificate is needed by %j', async (base, auth, needed) => {
      expect((await at(base, auth)).faults.map(({ option }) => option)).toEqual(needed);
    });

    it('needs no certificate for calls where tokens are not bound', async () => {
      expect((await at(apiSidecar, tokenSidecar, false)).faults).toEqual([]);
    });
  });

  it('allows http on loopback', async () => {
    for (const sandboxUrl of ['http://localhost:1', 'http://127.0.0.9:1', 'http://[::1]:1']) {
      expect(await faultsOf({ ...sandbox, urls: { sandboxUrl } })).toEqual([]);
    }
    for (const sandboxUrl of [
      'http://127.0.0.1.example',
      'http://128.0.0.1',
      'http://12.7.0.1',
      'http://[::2]',
    ]) {
      expect(await faultsOf({ ...sandbox, urls: { sandboxUrl } })).toHaveLength(1);
    }
  });

  it('reads secrets from files again each time, without the newline at their end', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'options-'));
    const file = join(folder, 'secret');
    await writeFile(file, 'first \n');
    const options = await resolved({
      ...production,
      appToken: { file },
      oauth: { clientId: CLIENT_ID, clientSecret: { file } },
    }).catch((error: unknown) => error);
    // 'first ' ends in a space: no header may.
    expect(options).toBeInstanceOf(Error);
    await writeFile(file, 'first\n');
    const { appToken, oauth: settings } = await resolved({
      ...production,
      appToken: { file },
      oauth: { clientId: CLIENT_ID, clientSecret: { file } },
    });
    expect(appToken?.reveal()).toBe('first');
    await writeFile(file, '\ufeffsecond\r\n');
    expect((await settings?.clientSecret())?.reveal()).toBe('second');
    await rm(folder, { recursive: true });
  });

  it.each(['s3cret\n', '\rs3cret', '\ts3cret', 's3cret\n'])(
    'refuses the client secret %j, whose line break or tab would be sent too',
    async (clientSecret) => {
      expect(await faultsOf({ ...production, oauth: { ...oauth, clientSecret } })).toEqual([
        {
          option: 'oauth.clientSecret',
          variable: 'SERVICE_CLIENT_SECRET',
          message: expect.stringMatching(/^begins or ends with a line break/),
        },
      ]);
    },
  );

  it('has the client secret of a text, and asks a function each time', async () => {
    const text = (await resolved({ ...production, oauth })).oauth;
    expect((await text?.clientSecret())?.reveal()).toBe('s3cret');
    let asked = 0;
    const clientSecret = async () => `secret-${(asked += 1)}`;
    const given = (await resolved({ ...production, oauth: { ...oauth, clientSecret } })).oauth;
    expect(asked).toBe(0);
    for (const secret of ['secret-1', 'secret-2']) {
      expect((await given?.clientSecret())?.reveal()).toBe(secret);
    }
  });

  it.each([
    ['http.timeout', 1, 86_400_000, 'milliseconds'],
    ['http.attemptTimeout', 1, 86_400_000, 'milliseconds'],
    ['http.connectTimeout', 1, 86_400_000, 'milliseconds'],
    ['http.idleTimeout', 0, 86_400_000, 'milliseconds'],
    ['http.retries', 0, 10, 'attempts'],
    ['http.maxResponseBytes', 1, 524_288_000, 'bytes'],
    ['http.maxSockets', 1, 65_535, 'connections'],
    ['http.shutdownTimeout', 0, 86_400_000, 'milliseconds'],
    ['linkSdk.minTokenLife', 0, 86_400, 'seconds'],
    ['tokenCache.maxEntries', 1, 10_000_000, 'entries'],
  ])('%s: a whole number from %i to %i %s', async (option, min, max, unit) => {
    const variable = variableOf(option) as string;
    const faultsWith = (value: number) => {
      const { options } = readVariables((name) => (name === variable ? String(value) : undefined));
      return faultsOf({ ...sandbox, ...options });
    };
    for (const value of [min, max]) expect(await faultsWith(value)).toEqual([]);
    for (const value of [min - 1, max + 1, 1.5]) {
      const message = expect.stringContaining(`a whole number of ${unit} from ${min} to ${max}; it is `);
      expect(await faultsWith(value)).toEqual([{ option, variable, message }]);
    }
  });

  it.each([
    ['environment', ['production', 'sandbox']],
    ['authentication', ['mtls', 'oauth', 'app-token']],
    ['oauth.refresh', ['ahead', 'scheduled', 'on-expiry']],
  ])('%s: one of %j', async (option, values) => {
    const variable = variableOf(option) as string;
    const faultsWith = async (value: string) => {
      const { options } = readVariables((name) => (name === variable ? value : undefined));
      const faults = await faultsOf({ ...sandbox, ...options });
      return faults.filter((fault) => fault.option === option);
    };
    for (const value of values) expect(await faultsWith(value)).toEqual([]);
    const message = `must be one of: ${values.join(', ')}; it is 'other'`;
    expect(await faultsWith('other')).toEqual([{ option, variable, message }]);
  });

  it.each([
    'sendAppTokenWithBearer',
    'oauth.mtls',
    'tls.reload',
    'linkSdk.includeAppToken',
    'linkSdk.requireOAuth',
  ])('%s: true or false', async (option) => {
    const variable = variableOf(option) as string;
    for (const value of ['maybe', '2']) {
      const { options } = readVariables((name) => (name === variable ? value : undefined));
      const message = `must be true or false; it is '${value}'`;
      expect(await faultsOf({ ...sandbox, ...options })).toEqual([{ option, variable, message }]);
    }
  });

  it.each(['ENVIRONMENT', 'HTTP_TIMEOUT', 'TLS_RELOAD', 'HTTP_TRAILING_SLASH'])(
    'a secret that was put into SERVICE_%s is not shown',
    async (suffix) => {
      for (const secret of [
        '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52',
        'aB3$x/9+q=',
        'x'.repeat(25),
        'https://u:pw@h',
      ]) {
        const { options, faults: unread } = readVariables((name) =>
          name === `SERVICE_${suffix}` ? secret : undefined,
        );
        const faults = [...unread, ...(await faultsOf({ ...sandbox, ...options }))];
        expect(faults.length).toBeGreaterThan(0);
        expect(inspect(faults)).not.toContain(secret);
      }
    },
  );

  it('linkSdk.requireOAuth: no start without OAuth credentials', async () => {
    const linkSdk = { requireOAuth: true };
    for (const options of [sandbox, { ...production, tls: { certificate: 'PEM', privateKey: 'PEM' } }]) {
      const [fault, ...others] = await faultsOf({ ...options, linkSdk });
      expect(others).toEqual([]);
      expect(fault).toMatchObject({
        option: 'linkSdk.requireOAuth',
        variable: 'SERVICE_LINK_SDK_REQUIRE_OAUTH',
        message: expect.stringMatching(/oauth\.clientId and oauth\.clientSecret.*without a customer token/),
      });
    }
    expect((await resolved({ ...production, oauth, linkSdk })).linkSdk.requireOAuth).toBe(true);
  });

  it('takes a function as tls', async () => {
    const tls = () => ({});
    const { tls: settings, authentication } = await resolved({ ...production, tls });
    const { locate, ...others } = settings;
    expect(locate('tls.chain')).toEqual({ option: 'tls.chain' });
    expect({ ...others, authentication }).toEqual({
      source: tls,
      reload: true,
      publicRoots: false,
      needsChain: 'required',
      authentication: 'mtls',
    });
    const inSandbox = {
      baseUrl: undefined,
      sandboxMtlsUrl: 'https://m.bank',
      sandboxAuthUrl: 'https://a.bank',
    };
    const { addresses } = await resolved({ authentication: 'oauth', oauth, tls, urls: inSandbox });
    expect(addresses.baseUrl).toBe('https://m.bank');
  });

  it.each([
    ['https alone', { baseUrl: 'https://b.bank' }, 'required'],
    ['a sidecar alone', { baseUrl: 'http://localhost:1' }, undefined],
    [
      'a sidecar, and another address over https',
      { baseUrl: 'http://localhost:1', oauthBaseUrl: 'https://o.bank' },
      'required',
    ],
  ])('needs a chain in production where an address of the API is https: %s', async (_, urls, needsChain) => {
    const { tls } = await resolved({ ...production, authentication: 'mtls', tls: () => ({}), urls });
    expect(tls.needsChain).toBe(needsChain);
  });

  it('describes each option with its variable', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'options-'));
    const file = join(folder, 'secret');
    await writeFile(file, 'first');
    const given = { ...production, oauth: { clientId: CLIENT_ID, clientSecret: { file } } };
    const { options } = await resolveOptions(given, 'ksa');
    expect(
      ['oauth.clientId', 'oauth.clientSecret', 'tls.certificate', 'tls.chain', 'tokenStore', 'other'].map(
        (option) => options?.describeOption(option),
      ),
    ).toEqual([
      'oauth.clientId (SERVICE_KSA_CLIENT_ID)',
      'oauth.clientSecret (SERVICE_KSA_CLIENT_SECRET_FILE)',
      'tls.certificate (SERVICE_KSA_TLS_CERTIFICATE)',
      'tls.chain (SERVICE_KSA_TLS_CHAIN)',
      'tokenStore',
      'other',
    ]);
    await rm(folder, { recursive: true });
  });

  it('prints no secret', async () => {
    const options = await resolved({
      ...production,
      appToken: 'planted-app',
      oauth: { ...oauth, clientSecret: 'planted-secret' },
      tls: { certificate: 'planted-certificate', privateKey: 'planted-key', passphrase: 'planted-pass' },
      http: { proxy: 'http://u:planted-proxy@p.example' },
    });
    const printed = inspect(options, { depth: 20, showHidden: true }) + JSON.stringify(options);
    expect(printed).not.toMatch(/planted/);
    expect(printed).toContain('[secret]');
    expect(String(options.appToken)).toBe('[secret]');
  });
});
