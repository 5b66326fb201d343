import { describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';

const CLIENT_ID = '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52';
const oauth = { clientId: CLIENT_ID, clientSecret: 's3cret' };
const sandbox: ServiceModuleOptions = { urls: { sandboxUrl: 'https://sandbox.example' }, appToken: 'app-1' };
const production: ServiceModuleOptions = {
  environment: 'production',
  urls: { baseUrl: 'https://api.example/base/', authUrl: 'https://auth.example/' },
  appToken: 'app-1',
  tls: { certificate: 'PEM', privateKey: 'PEM' },
};

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
      sendAppTokenWithBearer: false,
      linkSdk: { minTokenLife: 600, includeAppToken: false },
      tokenCache: { maxEntries: 10_000 },
      http: {
        timeout: 30_000,
        retries: 2,
        maxResponseBytes: 10_485_760,
        maxSockets: 50,
        trailingSlash: false,
        shutdownTimeout: 5_000,
      },
    });
    expect(options.oauth).toBeUndefined();
  });

  it("takes 'mtls' for granted in production", async () => {
    expect((await resolved(production)).authentication).toBe('mtls');
  });

  it('reports every fault at once, each with option, variable and message', async () => {
    const faults = await faultsOf({
      environment: 'staging' as never,
      authentication: 'oauth',
      urls: { sandboxUrl: 'http://sandbox.example' },
      oauth: { clientId: 'not-a-uuid' },
      http: { timeout: 0, retries: 'two' as never },
    });
    expect(faults.map(({ option, variable }) => `${option} ${variable}`).sort()).toEqual([
      'environment SERVICE_ENVIRONMENT',
      'http.retries SERVICE_HTTP_RETRIES',
      'http.timeout SERVICE_HTTP_TIMEOUT',
      'oauth.clientId SERVICE_CLIENT_ID',
      'oauth.clientSecret SERVICE_CLIENT_SECRET',
      'urls.sandboxAuthUrl SERVICE_SANDBOX_AUTH_URL',
      'urls.sandboxUrl SERVICE_SANDBOX_URL',
    ]);
  });

  it('names the variables of a named module', async () => {
    const [fault] = await faultsOf({ ...sandbox, appToken: undefined }, 'ksa');
    expect(fault?.variable).toBe('SERVICE_KSA_APP_TOKEN');
  });

  it.each<[string, ServiceModuleOptions, string, RegExp]>([
    [
      'http outside loopback',
      { ...sandbox, urls: { sandboxUrl: 'http://a.example' } },
      'urls.sandboxUrl',
      /https/,
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
    ['a misspelt option', { ...sandbox, authentification: 'x' } as never, 'authentification', /misspelling/],
    ['a misspelt key', { ...sandbox, http: { timeOut: 1 } as never }, 'http.timeOut', /misspelling/],
    ['a section that is no object', { ...sandbox, http: 5 as never }, 'http', /object/],
    ['a store without methods', { ...sandbox, tokenStore: {} as never }, 'tokenStore', /get, set and delete/],
    [
      'oauth.mtls without certificate',
      { ...sandbox, oauth: { ...oauth, mtls: true } },
      'oauth.mtls',
      /certificate/,
    ],
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

  it('reports a malformed value once, not also as missing', async () => {
    const faults = await faultsOf({ ...sandbox, urls: { sandboxUrl: 'nonsense' } });
    expect(faults).toHaveLength(1);
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

  it('asks the token endpoint of the environment, without a double slash', async () => {
    const { addresses } = await resolved({ ...production, authentication: 'oauth', oauth });
    expect(addresses.tokenUrl).toBe('https://auth.example/oauth2/token');
    expect(addresses.deprecated).toBe(false);
  });

  it('lets no credential of one environment go to the other', async () => {
    const { addresses } = await resolved({
      ...production,
      urls: { ...production.urls, oauthBaseUrl: 'https://o.example', sandboxUrl: 'https://s.example' },
    });
    expect([...addresses.origins]).toEqual(['https://api.example', 'https://o.example']);
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

  it('reads secrets from files, without the newline at their end, and anew each time', async () => {
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
    await writeFile(file, 'second\r\n');
    expect((await settings?.clientSecret())?.reveal()).toBe('second');
    expect(settings?.clientSecretCanChange).toBe(true);
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
  });
});
