import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inspect } from 'node:util';
import { rolldown } from 'rolldown';
import {
  Options,
  mergeOptions,
  OPTIONS,
  type ServiceModuleOptions,
  type TokenStore,
} from '../../../lib/config/options.js';
import { readRegularFile } from '../../../lib/config/secret.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { definedEntries, isReservedHeader, valueOf } from '../../../lib/config/option.js';
import { nameFault, readVariables, variableOf, variablesOf } from '../../../lib/config/variables.js';
import type * as Errors from '../../../lib/errors/index.js';
import {
  type ApiErrorDetails,
  copyError,
  ServiceApiError,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceConnectionError,
  type ServiceError,
  ServiceRequestError,
  ServiceStartupError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { GUIDES } from '../../../lib/version.js';
import { readDocument, ROOT } from '../../helpers/readme.js';
import { withoutRights } from '../../helpers/without-rights.js';

const CLIENT_ID = '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52';
const oauth = { clientId: CLIENT_ID, clientSecret: 's3cret' };
const tls = { certificate: 'PEM', privateKey: 'PEM' };
const sandbox: ServiceModuleOptions = { urls: { sandboxUrl: 'https://sandbox.example' }, appToken: 'app-1' };
const production: ServiceModuleOptions = {
  environment: 'production',
  urls: { baseUrl: 'https://api.example/base/', authUrl: 'https://auth.example/' },
  appToken: 'app-1',
  tls,
};
const withOAuth: ServiceModuleOptions = { ...production, authentication: 'oauth', oauth };
const addresses = { baseUrl: 'https://b.example', authUrl: 'https://a.example' };
const both = {
  sandboxUrl: 'https://s.example',
  sandboxMtlsUrl: 'https://m.example/',
  sandboxAuthUrl: 'https://sa.example',
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'options-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(content: string | Buffer): Promise<string> {
  const file = join(folder, 'secret');
  await writeFile(file, content);
  return file;
}

async function faultsOf(options: ServiceModuleOptions, name?: string) {
  return (await resolveOptions(options, name)).faults;
}

async function resolved(options: ServiceModuleOptions) {
  const { options: result, faults } = await resolveOptions(options);
  expect(faults).toEqual([]);
  if (!result) throw new Error('no options');
  return result;
}

/** The faults of a usable configuration in which one variable has this value. */
async function faultsWith(variable: string, value: string) {
  const { options, faults } = readVariables((name) => (name === variable ? value : undefined));
  return [...faults, ...(await faultsOf({ ...sandbox, ...options }))];
}

describe('Options and their documentation', () => {
  it('docs/configuration.md has a row for every option, with its variable and default', async () => {
    const { text } = await readDocument('docs/configuration.md');
    const table = /^\| option +\| variable +\|.*\n\|[-| ]+\n((?:\|.*\n)+)/m.exec(text)?.[1] ?? '';
    const rows = table
      .trim()
      .split('\n')
      .map((row) => row.split('|').map((cell) => cell.trim()));
    const documented = rows.map(([, option, variable, meaning]) => ({
      option: option.replaceAll('`', ''),
      variable: variable.replaceAll('`', ''),
      // Sentences in brackets tell defaults that depend on something, or are Node's.
      default: /\(`([^`]+)`[^()]*\)$/.exec(meaning)?.[1],
    }));
    const declared = OPTIONS.map(({ option }) => ({
      option,
      variable: variableOf(option) ?? '',
      default: defaultOf(option),
    }));
    expect(documented).toEqual(declared);
  });

  it('every option has its variable and default in its doc comment', async () => {
    const lib = join(ROOT, 'lib/config');
    const files = (await readdir(lib)).filter((file) => /^(.+\.)?options\.ts$/.test(file));
    const sources = await Promise.all(files.map((file) => readFile(join(lib, file), 'utf8')));
    const comments = sources.join('\n').matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\s*@\w+\('([A-Z_]+)'/g);
    const documented = [...comments].map(([, words, suffix]) => ({
      suffix,
      named: words.includes(`SERVICE_${suffix}`),
      default: documentedDefault(words),
    }));
    const declared = OPTIONS.filter(({ suffix }) => suffix).map(({ option, suffix }) => ({
      suffix,
      named: true,
      default: defaultOf(option),
    }));
    const bySuffix = (one: { suffix?: string }, other: { suffix?: string }) =>
      String(one.suffix).localeCompare(String(other.suffix));
    expect(documented.sort(bySuffix)).toEqual(declared.sort(bySuffix));
  });

  it('.env.example names every variable, and each of its modes is complete when it is filled in', async () => {
    const text = await readFile(join(ROOT, '.env.example'), 'utf8');
    const named = text.match(/SERVICE_\w+/g) ?? [];
    expect(named.filter((name) => name !== 'SERVICE_' && !variablesOf().includes(name))).toEqual([]);
    const blocks = text.split(/^# ---.*$/m).slice(1);
    expect(blocks).toHaveLength(5);
    for (const block of blocks) {
      const lines = [...block.matchAll(/^# (SERVICE_\w+)=(.*)$/gm)].map(([, variable, value]) => {
        if (variable === 'SERVICE_CLIENT_ID') return [variable, CLIENT_ID];
        // Resolving the options reads this file, but not those of certificates.
        if (variable === 'SERVICE_CLIENT_SECRET_FILE') return ['SERVICE_CLIENT_SECRET', 'a1b2c3'];
        return [variable, value.replace(/^$/, 'a1b2c3').replace('https://...', 'https://api.bank')];
      });
      const { options } = readVariables((variable) => Object.fromEntries(lines)[variable] as unknown);
      const { faults, warnings } = await resolveOptions(options);
      expect([block.trim().split('\n', 2), faults, warnings]).toEqual([expect.anything(), [], []]);
    }
  });

  it('no two options have the same variable', () => {
    expect(new Set(variablesOf()).size).toBe(variablesOf().length);
  });

  function defaultOf(option: string): string | undefined {
    // The default depends on the environment.
    if (option === 'authentication') return 'mtls';
    const value = valueOf(new Options(), option) as string | number | boolean | undefined;
    return value === undefined ? undefined : String(value);
  }

  /** `Default 10 MiB.` -> '10485760' */
  function documentedDefault(words: string): string | undefined {
    const [, value, mebi] = /Default:?[\s*]+(`[^`]+`|[\d,]+|true|false)( MiB)?/.exec(words) ?? [];
    const plain = value?.replace(/[`,]/g, '');
    return mebi ? String(Number(plain) * 2 ** 20) : plain;
  }
});

describe('Reading variables', () => {
  const read = (variables: Record<string, unknown>, name?: string) =>
    readVariables((key) => variables[key], name);

  it('parses text, numbers and flags, and treats an empty variable as not set', () => {
    const { options, faults } = read({
      SERVICE_ENVIRONMENT: ' production ',
      SERVICE_HTTP_TIMEOUT: '1500',
      SERVICE_HTTP_CONNECT_TIMEOUT: '30s',
      SERVICE_TLS_RELOAD: 'maybe',
      SERVICE_APP_TOKEN: '',
      SERVICE_CLIENT_SECRET: '\r\n',
      SERVICE_TOKEN_REFRESH: '  ',
    });
    expect(faults).toEqual([]);
    // A value of another kind is left to the validation.
    expect(options).toEqual({
      environment: 'production',
      http: { timeout: 1500, connectTimeout: '30s' },
      tls: { reload: 'maybe' },
    });
  });

  it('reads an empty SERVICE_WEBHOOK_PREFIX as an empty prefix, and leaves the option out without the variable', () => {
    expect(read({ SERVICE_WEBHOOK_PREFIX: ' ' }).options).toEqual({ webhook: { prefix: '' } });
    expect(read({}).options).toEqual({});
  });

  it.each([
    ['true, 1, yes, On', true],
    ['False, 0, no, OFF', false],
  ])('reads %s as %s, for flags and in place of a list of names', (spellings, expected) => {
    for (const text of spellings.split(', ')) {
      const { options } = read({ SERVICE_OAUTH_MTLS: text, SERVICE_HTTP_TRAILING_SLASH: ` ${text} ` });
      expect(options).toEqual({ oauth: { mtls: expected }, http: { trailingSlash: expected } });
    }
  });

  it('parses lists of names', () => {
    const { options } = read({ SERVICE_HTTP_TRAILING_SLASH: 'banks, customers' });
    expect(options).toEqual({ http: { trailingSlash: ['banks', 'customers'] } });
  });

  it('does not change a secret, or a value that validate() of ConfigModule returned', () => {
    const { options } = read({ SERVICE_APP_TOKEN: ' a ', SERVICE_HTTP_RETRIES: 3, SERVICE_OAUTH_MTLS: null });
    expect(options).toEqual({ appToken: ' a ', http: { retries: 3 } });
  });

  it.each([
    'APP_TOKEN',
    'CLIENT_SECRET',
    'TLS_CERTIFICATE',
    'TLS_PRIVATE_KEY',
    'TLS_PASSPHRASE',
    'TLS_CHAIN',
  ])(
    'reads %s from its variable or from the file in _FILE, and reports a fault if both are set',
    (suffix) => {
      expect(JSON.stringify(read({ [`SERVICE_${suffix}_FILE`]: '/run/secrets/x' }).options)).toContain(
        '{"file":"/run/secrets/x"}',
      );
      const { faults } = read({ [`SERVICE_${suffix}_FILE`]: '/x', [`SERVICE_${suffix}`]: 'y' });
      expect(faults).toMatchObject([{ message: expect.stringContaining('both set') }]);
    },
  );

  it('reads the variables of a named module, which contain its name', async () => {
    const variables = { SERVICE_KSA_APP_TOKEN: 'k', SERVICE_APP_TOKEN: 'd' };
    expect(read(variables, 'ksa').options).toEqual({ appToken: 'k' });
    expect(variableOf('oauth.clientId', 'my-bank')).toBe('SERVICE_MY_BANK_CLIENT_ID');
    const [fault] = await faultsOf({ ...sandbox, appToken: undefined }, 'ksa');
    expect(fault?.variable).toBe('SERVICE_KSA_APP_TOKEN');
  });
});

describe('Name of a module', () => {
  it.each([
    ...['sandbox', 'Sandbox', 'oauth', 'link-sdk-include'].map((name) => [name, /'.*SERVICE_/] as const),
    ...['', '--', '1x', 'a b', 'ü'].map((name) => [name, /^must begin with a letter/] as const),
  ])('refuses %j as the name', (name, reason) => {
    expect(nameFault(name)).toMatch(reason);
  });

  it.each(['ksa', 'my-bank', 'http', 'production', 'eu1', 'tls', 'app'])('accepts %j as the name', (name) => {
    expect(nameFault(name)).toBeUndefined();
  });
});

describe('Options of several sources', () => {
  it('merges options of several sources key by key, and the first value that is set wins', () => {
    expect(
      mergeOptions(
        { appToken: undefined, http: { timeout: 1, retries: undefined } },
        { appToken: 'from-env', http: { timeout: 2, retries: 3 }, urls: { baseUrl: 'https://x' } },
        undefined,
      ),
    ).toEqual({ appToken: 'from-env', http: { timeout: 1, retries: 3 }, urls: { baseUrl: 'https://x' } });
    const second = { oauth: { clientId: 'of the second' }, sendAppTokenWithBearer: true };
    expect(mergeOptions({ oauth: { clientId: null, mtls: true }, appToken: null }, second)).toEqual({
      ...second,
      oauth: { mtls: true, clientId: 'of the second' },
    });
    expect(mergeOptions({ sendAppTokenWithBearer: false }, second).sendAppTokenWithBearer).toBe(false);
  });

  it.each([
    ['the first', { http: 5 }, { http: { retries: 1 } }, { http: 5 }],
    ['the second', { http: { retries: 1 } }, { http: 5 }, { http: { retries: 1 } }],
    ['an empty text', { http: '' }, { http: { retries: 1 } }, { http: '' }],
  ])('passes a section that is not an object on to the validation: %s', (_, first, second, merged) => {
    expect(mergeOptions(first, second)).toEqual(merged);
  });

  it('does not merge a tls function with other tls options, and keeps the token store object itself', () => {
    const source = () => ({});
    const tokenStore = new (class {
      get() {}
    })();
    const merged = mergeOptions({ tls: source, tokenStore }, { tls: { certificate: 'x' } });
    expect([merged.tls === source, (merged.tokenStore as unknown) === tokenStore]).toEqual([true, true]);
  });
});

describe('Resolved options', () => {
  it('contain the defaults, and the default authentication of the environment', async () => {
    const { authentication, http, oauth: settings, ...options } = await resolved(sandbox);
    const { environment, linkSdk, tokenCache, appTokenHeader, startupCheck } = new Options();
    expect(authentication).toBe('app-token');
    expect(options).toMatchObject({ environment, linkSdk, tokenCache, appTokenHeader, startupCheck });
    expect(http).toMatchObject(Object.fromEntries(definedEntries(new Options().http)));
    expect([settings, http.attemptTimeout]).toEqual([undefined, undefined]);
    expect((await resolved(production)).authentication).toBe('mtls');
  });

  it.each<[string, ServiceModuleOptions, string, string[]]>([
    ['sandbox, app-token', { ...sandbox, urls: both }, 'https://s.example', ['urls.sandboxUrl']],
    [
      'sandbox, mtls',
      { authentication: 'mtls', tls, appToken: 'a', urls: both },
      'https://m.example',
      ['urls.sandboxMtlsUrl'],
    ],
    [
      'sandbox, oauth without certificate',
      { authentication: 'oauth', oauth, urls: both },
      'https://s.example',
      ['urls.sandboxUrl', 'urls.sandboxAuthUrl', 'https://sa.example/oauth2/token'],
    ],
    [
      'sandbox, oauth with certificate',
      { authentication: 'oauth', oauth, tls, urls: both },
      'https://m.example',
      ['urls.sandboxMtlsUrl', 'urls.sandboxAuthUrl', 'https://sa.example/oauth2/token'],
    ],
    [
      'sandbox, oauth with a tls function',
      { authentication: 'oauth', oauth, tls: () => ({}), urls: both },
      'https://m.example',
      ['urls.sandboxMtlsUrl', 'urls.sandboxAuthUrl', 'https://sa.example/oauth2/token'],
    ],
    ['production, mtls', production, 'https://api.example/base', ['urls.baseUrl']],
    [
      'production, oauth',
      withOAuth,
      'https://api.example/base',
      ['urls.baseUrl', 'urls.authUrl', 'https://auth.example/oauth2/token'],
    ],
    [
      'production, oauth with oauthBaseUrl',
      { ...withOAuth, urls: { ...addresses, oauthBaseUrl: 'https://o.example' } },
      'https://o.example',
      ['urls.oauthBaseUrl', 'urls.authUrl', 'https://a.example/oauth2/token'],
    ],
    [
      'production, mtls with OAuth credentials and oauthBaseUrl',
      { ...production, oauth, urls: { ...addresses, oauthBaseUrl: 'https://o.example' } },
      'https://b.example',
      ['urls.baseUrl', 'urls.authUrl', 'https://a.example/oauth2/token'],
    ],
  ])('contain the addresses for %s', async (_, options, url, others) => {
    const { baseUrl, baseOption, tokenOption, tokenUrl } = (await resolved(options)).addresses;
    expect([baseUrl, baseOption, tokenOption, tokenUrl].filter(Boolean)).toEqual([url, ...others]);
  });

  it('contain no address of the other environment, so that no credentials are sent there', async () => {
    const urls = { ...addresses, oauthBaseUrl: 'https://o.example', ...both };
    const origins = async (options: ServiceModuleOptions) => [
      ...(await resolved({ ...options, urls })).addresses.origins,
    ];
    expect(await origins(production)).toEqual(['https://b.example', 'https://o.example']);
    expect(await origins(sandbox)).toEqual(['https://s.example', 'https://m.example']);
  });

  it('read the app token from its file once, and the client secret each time', async () => {
    const file = await fileOf('first');
    const options = await resolved({
      ...production,
      appToken: { file },
      oauth: { clientId: CLIENT_ID, clientSecret: { file } },
    });
    expect(options.appToken?.reveal()).toBe('first');
    await fileOf('second');
    expect((await options.oauth?.clientSecret())?.reveal()).toBe('second');
    expect(options.appToken?.reveal()).toBe('first');
  });

  it('return a client secret that is text, and call a function each time it is needed, not before', async () => {
    const text = (await resolved({ ...production, oauth })).oauth;
    expect((await text?.clientSecret())?.reveal()).toBe('s3cret');
    let vaultReads = 0;
    const clientSecret = async () => `secret-${(vaultReads += 1)}`;
    const given = (await resolved({ ...production, oauth: { ...oauth, clientSecret } })).oauth;
    expect(vaultReads).toBe(0);
    for (const secret of ['secret-1', 'secret-2']) {
      expect((await given?.clientSecret())?.reveal()).toBe(secret);
    }
  });

  it.each([
    ['a text', (value: string) => value],
    ['a file', async (value: string) => ({ file: await fileOf(value) })],
    [
      'a file of Windows with a byte order mark',
      async (value: string) => ({ file: await fileOf(`\ufeff${value}`) }),
    ],
    [
      'a file that PowerShell wrote with >',
      async (value: string) => ({ file: await fileOf(Buffer.from(`\ufeff${value}`, 'utf16le')) }),
    ],
    [
      'a file in UTF-16, big-endian',
      async (value: string) => ({ file: await fileOf(Buffer.from(`\ufeff${value}`, 'utf16le').swap16()) }),
    ],
    ['a function', (value: string) => async () => value],
  ])('trim line breaks at the end of app token and client secret from %s', async (_, give) => {
    for (const value of ['s3cr\u00e8t+1\n', 's3cr\u00e8t+1\r\n\n', 's3cr\u00e8t+1']) {
      const clientSecret = await give(value);
      const options = await resolved({ ...production, oauth: { clientId: CLIENT_ID, clientSecret } });
      expect((await options.oauth?.clientSecret())?.reveal()).toBe('s3cr\u00e8t+1');
      const appToken = await give(value.replace('\u00e8', 'e'));
      expect((await resolved({ ...sandbox, appToken })).appToken?.reveal()).toBe('s3cret+1');
    }
  });

  it('accept a function as tls, whose options have no variables', async () => {
    const source = () => ({});
    const { locate, ...settings } = (await resolved({ ...production, tls: source })).tls;
    expect(locate('tls.chain')).toEqual({ option: 'tls.chain' });
    expect(settings).toEqual({
      source,
      reload: true,
      publicRoots: false,
      folder: process.cwd(),
      needsChain: 'required',
    });
  });

  it.each([
    ['https alone', { baseUrl: 'https://b.bank' }, 'required'],
    ['a sidecar alone', { baseUrl: 'http://localhost:1' }, undefined],
    [
      'a sidecar, and another address over https',
      { baseUrl: 'http://localhost:1', oauthBaseUrl: 'https://o.bank' },
      'required',
    ],
  ])(
    'need a chain in production if an address of the API begins with https: %s',
    async (_, urls, needsChain) => {
      const settings = await resolved({ ...production, authentication: 'mtls', tls: () => ({}), urls });
      expect(settings.tls.needsChain).toBe(needsChain);
    },
  );

  it('describe each option with its variable', async () => {
    const file = await fileOf('first');
    const given = { ...production, oauth: { clientId: CLIENT_ID, clientSecret: { file } } };
    const { options } = await resolveOptions(given, 'ksa');
    expect(
      ['oauth.clientId', 'oauth.clientSecret', 'tls.chain', 'tokenStore', 'other'].map((option) =>
        options?.describeOption(option),
      ),
    ).toEqual([
      'oauth.clientId (SERVICE_KSA_CLIENT_ID)',
      'oauth.clientSecret (SERVICE_KSA_CLIENT_SECRET_FILE)',
      'tls.chain (SERVICE_KSA_TLS_CHAIN)',
      'tokenStore',
      'other',
    ]);
  });

  it('show no secret when they are printed', async () => {
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

describe('Validation of options', () => {
  type Refused = [what: string, given: ServiceModuleOptions, option: string, message: RegExp];
  const at = (what: string, sandboxUrl: string, message: RegExp): Refused => [
    `an address with ${what}`,
    { ...sandbox, urls: { sandboxUrl } },
    'urls.sandboxUrl',
    message,
  ];
  const token = (what: string, appToken: unknown, message: RegExp): Refused => [
    `an app token ${what}`,
    { ...sandbox, appToken: appToken as string },
    'appToken',
    message,
  ];
  const store = (what: string, check: TokenStore['check'], message: RegExp): Refused => [
    `a store ${what}`,
    {
      ...sandbox,
      tokenStore: {
        get: async () => undefined,
        set: async () => undefined,
        delete: async () => undefined,
        check,
      },
    },
    'tokenStore',
    message,
  ];
  const unknown = (given: object, option: string, message = /check its spelling\.$/): Refused => [
    `the unknown option ${option}`,
    { ...sandbox, ...given },
    option,
    message,
  ];

  it.each<Refused>([
    at('http outside loopback', 'http://a.example', /^must begin with https:\/\/; http:\/\/ is for loopback/),
    at('another protocol', 'ftp://localhost', /must begin with https:\/\/$/),
    at('credentials', 'https://u:p@a.example', /password/),
    at('a query', 'https://a.example?x=1', /query/),
    at('an empty query', 'https://a.example/?', /query/),
    at('a fragment', 'https://a.example#x', /fragment/),
    at('a host alone', 'a.example', /absolute URL/),
    [
      'a token endpoint with more slashes than can be read',
      {
        ...sandbox,
        urls: { ...sandbox.urls, sandboxAuthUrl: `https://a${'/'.repeat(200_000)}x/oauth2/token//` },
      },
      'urls.sandboxAuthUrl',
      /must not end in \/oauth2\/token/,
    ],
    token('with a line break', 'a\r\nx: y', /^cannot be sent in a header/),
    token('with a space at its end', 'a ', /^cannot be sent in a header/),
    token('that is not ASCII', 'tök', /ASCII/),
    token('that is empty', '', /^must be text or \{ file: path \} or a function, and not empty$/),
    token('of a function that returns nothing', () => undefined, /its function threw, returned no text/),
    token('of one that returns an empty text', () => ' ', /its function returned an empty text/),
    token('of one that returns nothing but a line break', () => '\n', /its function returned an empty text/),
    token('of one that returns a line break', () => 'a\nb', /cannot be sent in a header/),
    token(
      'of one that throws, whose error may quote a secret',
      () => Promise.reject(new Error('the vault says s3cret')),
      /^its function threw, returned no text(?!.*s3cret)/,
    ),
    [
      'a certificate that is neither text nor file',
      { ...sandbox, tls: { certificate: 5 as never } },
      'tls.certificate',
      /^must be text or \{ file: path \}, and not empty$/,
    ],
    ['a header with a line break', { ...sandbox, appTokenHeader: 'x\r\ny' }, 'appTokenHeader', /name/],
    [
      'a header that HTTP uses itself',
      { ...sandbox, appTokenHeader: 'Authorization' },
      'appTokenHeader',
      /itself/,
    ],
    [
      'app-token in production',
      { environment: 'production', authentication: 'app-token' },
      'authentication',
      /sandbox only/,
    ],
    [
      'half of the credentials',
      { ...production, oauth: { clientId: CLIENT_ID } },
      'oauth.clientSecret',
      /missing/,
    ],
    [
      'sendAppTokenWithBearer without app token',
      { ...withOAuth, appToken: undefined, sendAppTokenWithBearer: true },
      'appToken',
      /^is missing: sendAppTokenWithBearer \(SERVICE_SEND_APP_TOKEN_WITH_BEARER\) needs it\.$/,
    ],
    [
      'linkSdk.includeAppToken without app token',
      { ...withOAuth, appToken: undefined, linkSdk: { includeAppToken: true } },
      'appToken',
      /^is missing: linkSdk\.includeAppToken \(SERVICE_LINK_SDK_INCLUDE_APP_TOKEN\) needs it\.$/,
    ],
    [
      'linkSdk.requireOAuth without credentials',
      { ...production, linkSdk: { requireOAuth: true } },
      'linkSdk.requireOAuth',
      /oauth\.clientId and oauth\.clientSecret.*without a customer token/,
    ],
    ['a section that is no object', { ...sandbox, http: 5 as never }, 'http', /object/],
    [
      'an onCall that is no function',
      { ...sandbox, http: { onCall: {} as never } },
      'http.onCall',
      /^must be a function$/,
    ],
    ['a store that is text', { ...sandbox, tokenStore: 'redis://' as never }, 'tokenStore', /get, set and/],
    ['a store without methods', { ...sandbox, tokenStore: {} as never }, 'tokenStore', /get, set and delete/],
    store('whose own settings will not do', async () => ['needs a url'], /^needs a url$/),
    store(
      'that cannot check them',
      () => Promise.reject(new Error('of s3cret')),
      /^its method check\(\) failed, or took longer than 10 s\.$/,
    ),
    unknown({ authentification: 'x' }, 'authentification'),
    unknown({ http: { timeOut: 1 } }, 'http.timeOut'),
    unknown(
      { name: 'ksa' },
      'name',
      /belongs beside the options.*forRootAsync\(\{ name: \.\.\., useFactory \}\)/,
    ),
  ])('refuses %s', async (_, given, option, message) => {
    const faults = await faultsOf(given);
    expect(faults.map((fault) => fault.option)).toEqual([option]);
    expect(faults[0]?.message).toMatch(message);
  });

  it('refuses an address with http: unless it is on loopback', async () => {
    const at = (sandboxUrl: string) => faultsOf({ ...sandbox, urls: { sandboxUrl } });
    for (const host of ['localhost:1', '127.0.0.9:1', '[::1]:1'])
      expect(await at(`http://${host}`)).toEqual([]);
    for (const host of ['127.0.0.1.example', '128.0.0.1', '12.7.0.1', '[::2]'])
      expect(await at(`http://${host}`)).toHaveLength(1);
  });

  it.each([
    ...[
      'Host',
      'Connection',
      'Content-Length',
      'Expect',
      'Keep-Alive',
      'Proxy-Authorization',
      'TE',
      'Trailer',
    ],
    ...[
      'Proxy-Connection',
      'Transfer-Encoding',
      'Upgrade',
      'Authorization',
      'Cookie',
      'User-Agent',
      'Accept',
    ],
    ...['Accept-Encoding', 'Content-Type'],
  ])('refuses %s as the header of the app token', (name) => {
    expect([isReservedHeader(name), isReservedHeader(name.toLowerCase())]).toEqual([true, true]);
  });

  it.each<[unknown, RegExp]>([
    [{ 'x-partner': 7 }, /^must be an object that has a text for each name of a header/],
    ['x-partner: 7', /^must be an object/],
    [{ 'x partner': 'p' }, /^has a name or a value that no header can have \(x partner\)/],
    [{ 'x-partner': 'p\r\nx: y' }, /^has a name or a value that no header can have \(x-partner\)$/],
    [{ Host: 'other.example' }, /^must not contain Host/],
    [{ cookie: 'session=x' }, /^must not contain cookie/],
    [{ AUTHORIZATION: 'Bearer x' }, /^must not contain AUTHORIZATION/],
    [{ 'Service-App-Token': 'x' }, /^must not contain Service-App-Token: the module sets it itself/],
    [{ 'Idempotency-Key': 'x' }, /^must not contain Idempotency-Key: the module sets it itself/],
    [{ 'X-Correlation-Id': 'x' }, /^must not contain X-Correlation-Id: the module sets it itself/],
    [{ 'If-None-Match': '"x"' }, /^must not contain If-None-Match, .* belongs to a single call$/],
    [{ range: 'bytes=0-1' }, /^must not contain range, .* belongs to a single call$/],
  ])('refuses %j as the headers of every call', async (headers, message) => {
    const http = { headers } as ServiceModuleOptions['http'];
    expect(await faultsOf({ ...sandbox, http })).toEqual([
      { option: 'http.headers', variable: undefined, message: expect.stringMatching(message) },
    ]);
  });

  it('refuses the configured names of the app-token header and the idempotency header too', async () => {
    const http = { idempotencyHeader: 'x-key', headers: { 'X-Key': 'k' } };
    const [{ message }] = await faultsOf({ ...sandbox, http });
    expect(message).toMatch(/X-Key/);
    const others = { ...http, headers: { 'x-token': 't', 'idempotency-key': 'k' } };
    const faults = await faultsOf({ ...sandbox, appTokenHeader: 'x-token', http: others });
    expect(faults.map((fault) => fault.message)).toEqual([expect.stringMatching(/x-token/)]);
  });

  it('accepts other headers for the app token', () => {
    const free = ['service-app-token', 'x-authorization', 'authorization-2', 'x-host', 'content', 'cookies'];
    expect(free.filter(isReservedHeader)).toEqual([]);
  });

  it.each(['\ns3cret', '\rs3cret', '\ts3cret', 's3cret\t', 's3cret\t\n'])(
    'refuses the client secret %j, because its line break or tab would be sent too',
    async (clientSecret) => {
      expect(await faultsOf({ ...production, oauth: { ...oauth, clientSecret } })).toEqual([
        {
          option: 'oauth.clientSecret',
          variable: 'SERVICE_CLIENT_SECRET',
          message: expect.stringMatching(/^begins with a line break or a tab, or ends with a tab/),
        },
      ]);
    },
  );

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
  ])('accepts for %s only a whole number from %i to %i %s', async (option, min, max, unit) => {
    const variable = variableOf(option) as string;
    for (const value of [min, max]) expect(await faultsWith(variable, String(value))).toEqual([]);
    for (const value of [min - 1, max + 1, 1.5]) {
      const message = expect.stringContaining(`a whole number of ${unit} from ${min} to ${max}; it is `);
      expect(await faultsWith(variable, String(value))).toEqual([{ option, variable, message }]);
    }
  });

  it.each([
    ['environment', 'one of: production, sandbox', ['prod']],
    ['authentication', 'one of: mtls, oauth, app-token', ['other']],
    ['oauth.refresh', 'one of: ahead, scheduled, on-expiry', ['other']],
    ['startupCheck', 'one of: off, warn, fail', ['maybe']],
    ['sendAppTokenWithBearer', 'true or false', ['maybe', '2']],
    ['oauth.mtls', 'true or false', ['maybe', '2']],
    ['tls.reload', 'true or false', ['maybe', '2']],
    ['linkSdk.includeAppToken', 'true or false', ['maybe', '2']],
    ['linkSdk.requireOAuth', 'true or false', ['maybe', '2']],
    ['http.logCalls', 'true or false', ['maybe', '2']],
    ['http.timeout', 'a whole number of milliseconds from 1 to 86400000', ['30s']],
    ['http.trailingSlash', 'true, false or names of resources (banks, customers)', ['bank, customers']],
  ])('accepts for %s only %s, and quotes any other value in the message', async (option, allowed, values) => {
    const variable = variableOf(option) as string;
    for (const value of values) {
      const message = `must be ${allowed}; it is '${value}'`;
      expect(await faultsWith(variable, value)).toEqual([{ option, variable, message }]);
    }
  });

  it.each([
    ['SERVICE_HTTP_TIMEOUT', '"30000"'],
    ['SERVICE_ENVIRONMENT', "'sandbox'"],
    ['SERVICE_TLS_RELOAD', '"true"'],
    ['SERVICE_HTTP_TRAILING_SLASH', '"banks,customers"'],
    ['SERVICE_SANDBOX_URL', '"https://sandbox.example"'],
    ['SERVICE_CLIENT_ID', `"${CLIENT_ID}"`],
    ['SERVICE_HTTP_PROXY', '"http://proxy.example:3128"'],
    ['SERVICE_APP_TOKEN_FILE', '"/run/secrets/app-token"'],
  ])('refuses %s=%s, and says that docker and podman keep quotes', async (variable, value) => {
    const [{ message }] = await faultsWith(variable, value);
    expect(message).toMatch(
      /; it is in quotes, which docker run --env-file and podman keep as part of the value: remove the quotes/,
    );
    expect(message).not.toContain(value);
  });

  it('refuses values that dotenvx has encrypted, once for each option, without faults that follow from them', async () => {
    const { options } = readVariables(() => 'encrypted:BDb1t2ZJcPJnXgP5');
    const faults = await faultsOf({ ...options, appToken: { file: 'encrypted:BDb1t2ZJcPJnXgP5' } });
    const withVariable = OPTIONS.filter(({ suffix }) => suffix !== undefined);
    expect(faults.map(({ option }) => option).sort()).toEqual(
      withVariable.map(({ option }) => option).sort(),
    );
    for (const { message } of faults)
      expect(message).toMatch(/^is still encrypted by dotenvx: .*dotenvx run/);
  });

  it.each<[string, object, string]>([
    ['http.timeout', { http: { timeout: '5000' } }, "'5000' is a string: use Number()"],
    ['linkSdk.minTokenLife', { linkSdk: { minTokenLife: '60' } }, "'60' is a string: use Number()"],
    ['tls.reload', { tls: { reload: 'false' } }, "'false' is a string"],
    ['http.trailingSlash', { http: { trailingSlash: 'true' } }, "'true' is a string"],
  ])('refuses a string for %s in code, and says that it is a string', async (option, given, words) => {
    const faults = await faultsOf({ ...sandbox, ...given });
    expect(faults.map((fault) => [fault.option, fault.message.split('; ').at(-1)])).toEqual([
      [option, words],
    ]);
  });

  it('refuses a file over 1 MiB, an empty or missing file, a directory and a device', async () => {
    const MIB = 1024 * 1024;
    for (const bytes of [0, 1, 200_000, MIB])
      expect(await readRegularFile(await fileOf(Buffer.alloc(bytes, 'a')))).toHaveLength(bytes);
    const large = await fileOf(Buffer.alloc(MIB + 1, 'a'));
    for (const [path, code] of [
      [large, 'larger than 1 MiB'],
      [folder, 'not a regular file'],
      ['/dev/null', 'not a regular file'],
      [join(folder, 'none'), 'ENOENT'],
    ]) {
      await expect(readRegularFile(path)).rejects.toMatchObject({ code });
      const [fault] = await faultsOf({ ...sandbox, appToken: { file: path } });
      expect(fault?.message).toBe(`the file ${path} cannot be read (${code}).`);
    }
    const file = await fileOf(' \n');
    const [fault] = await faultsOf({ ...sandbox, appToken: { file } });
    expect(fault?.message).toBe(`the file ${file} is empty.`);
  });
});

(process.platform === 'win32' ? describe.skip : describe)(
  'A file that the process may not read (EACCES)',
  () => {
    const own = () => `user ${process.getuid?.()} and group ${process.getgid?.()}`;
    const messageOf = async (file: string) =>
      (await faultsOf({ ...sandbox, appToken: { file } }))[0]?.message;
    beforeEach(() => chmod(folder, 0o755));

    it('is described with its owner and mode, and with the user of the process', async () => {
      const [file, link] = [join(folder, 'closed.pem'), join(folder, 'link.pem')];
      await writeFile(file, 'text');
      await symlink(file, link);
      // Its own owner can do nothing with this file either.
      await chmod(file, 0o000);
      const groups = process.getgroups?.().join(', ');
      await withoutRights(async (user) => {
        const who = `mode is 0000. This process runs as user ${user}, in the groups ${groups}.`;
        expect(await messageOf(file)).toBe(
          `the file ${file} cannot be read (EACCES). It belongs to ${own()}, and its ${who}`,
        );
        expect(await messageOf(link)).toBe(
          `the file ${link} cannot be read (EACCES). It belongs to ${own()}, and its ${who}`,
        );
      });
    });

    it('is described with the folder that the process may not enter', async () => {
      const inner = await mkdtemp(join(folder, 'inner-'));
      const path = join(inner, 'deep', 'key.pem');
      await mkdir(join(inner, 'deep'));
      await writeFile(path, 'text');
      await chmod(inner, 0o600);
      await withoutRights(async (user) => {
        expect(await messageOf(path)).toContain(
          `the file ${path} cannot be read (EACCES). ${inner} belongs to ${own()}, and its mode is 0600. This process runs as user ${user}`,
        );
      });
      await chmod(inner, 0o700);
    });

    it('is not described if its path may be a secret', async () => {
      const odd = join(folder, 'S3cr3t+abcDEF==.pem');
      await writeFile(odd, 'text');
      await chmod(odd, 0o000);
      await withoutRights(async () => {
        const message = await messageOf(odd);
        expect(message).toMatch(/^names a file that cannot be read \(EACCES\)\. The path is not shown/);
        expect(message).not.toMatch(/belongs|S3cr3t/);
      });
    });
  },
);

describe('Faults of the configuration', () => {
  it('are all reported at once, each with option, variable and message', async () => {
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
    expect((await resolveOptions({ ...sandbox, http: { retries: -1 } })).options).toBeUndefined();
  });

  it('say that environment and authentication are the defaults if they are not set', async () => {
    const messages = async (given: ServiceModuleOptions) =>
      (await faultsOf(given)).map(({ message }) => message.replace(/ \(developer portal.*/, ''));
    expect(await messages({})).toEqual([
      "is missing: 'app-token' (the default) sends it with every call.",
      "is missing: with environment 'sandbox' (the default) and authentication 'app-token' (the default), API calls go there.",
    ]);
    expect(await messages({ environment: 'production' })).toEqual([
      "is missing: 'mtls' (the default) needs the application certificate and its private key",
      "is missing: 'mtls' (the default) sends it with every call.",
      "is missing: with environment 'production' and authentication 'mtls' (the default), API calls go there.",
    ]);
    expect(await messages({ environment: 'sandbox', authentication: 'app-token' })).toContain(
      "is missing: with environment 'sandbox' and authentication 'app-token', API calls go there.",
    );
  });

  it.each<[string, ServiceModuleOptions, string]>([
    ['an environment', { environment: 'prod' as never }, 'environment'],
    ['an authentication', { authentication: 'token' as never }, 'authentication'],
    [
      'the address of production OAuth',
      { ...withOAuth, urls: { oauthBaseUrl: 'x', authUrl: 'https://auth.example' } },
      'urls.oauthBaseUrl',
    ],
    ['the section of addresses', { ...sandbox, urls: 'https://a.example' as never }, 'urls'],
    ['the section of OAuth', { ...withOAuth, oauth: 'x' as never }, 'oauth'],
    ['the section of TLS', { ...production, tls: 'x' as never }, 'tls'],
    [
      'the section of TLS, on which the address hangs',
      { authentication: 'oauth', oauth, tls: 5 as never, urls: { sandboxAuthUrl: 'https://a.example' } },
      'tls',
    ],
    [
      'an app token that others need',
      { ...sandbox, appToken: {} as never, sendAppTokenWithBearer: true, linkSdk: { includeAppToken: true } },
      'appToken',
    ],
    [
      'a missing app token that others need',
      { ...sandbox, appToken: undefined, sendAppTokenWithBearer: true },
      'appToken',
    ],
    [
      'a missing certificate that the token endpoint is to see',
      { ...production, tls: undefined, oauth: { ...oauth, mtls: true } },
      'tls.certificate',
    ],
  ])('contain no fault that is only a consequence of %s', async (_, options, expected) => {
    expect((await faultsOf(options)).map(({ option }) => option)).toEqual([expected]);
  });

  it.each<[string, ServiceModuleOptions]>([
    ['SERVICE_APP_TOKEN', { ...sandbox, appToken: 'a\nb' }],
    ['SERVICE_APP_TOKEN_FILE', { ...sandbox, appToken: { file: '/no/such/file' } }],
    ['SERVICE_CLIENT_SECRET', { ...production, oauth: { ...oauth, clientSecret: ' ' } }],
    [
      'SERVICE_CLIENT_SECRET_FILE',
      { ...production, oauth: { ...oauth, clientSecret: { file: '/no/such' } } },
    ],
  ])('name the variable that was set: %s', async (variable, options) => {
    expect((await faultsOf(options)).map((fault) => fault.variable)).toEqual([variable]);
  });

  it.each([
    ['a secret', 'S3cr3t-abcDEF0123456789xyz'],
    ['a secret with a slash', 'aB3/dEf+ghIJ=='],
    ['a PEM', '-----BEGIN PRIVATE KEY-----\\nMIIBVQ\\n-----END PRIVATE KEY-----'],
    ['base64 of a PEM', Buffer.from('-----BEGIN PRIVATE KEY-----\n'.repeat(20)).toString('base64')],
    ['a secret that ends like the name of a file', 'S3cr3t+abcDEF==.pem'],
    ['a text that is longer than a path', `/${'S3cr3t'.repeat(100)}/key.pem`],
  ])('do not show %s that was set in place of the path of a file', async (_, file) => {
    for (const options of [
      { ...sandbox, appToken: { file } },
      { ...sandbox, oauth: { clientSecret: { file } } },
    ]) {
      const faults = await faultsOf(options);
      const unreadable = faults.find(({ message }) => message.includes('names a file that cannot be read'));
      expect(unreadable?.variable).toMatch(/_FILE$/);
      expect(JSON.stringify(faults)).not.toContain(file.slice(0, 12));
    }
  });

  it.each(['key.pem', '/run/secrets/key', './key', '~/key', 'C:\\\\keys\\\\key'])(
    'show the path %s of a file that cannot be read',
    async (file) => {
      const [fault] = await faultsOf({ ...sandbox, appToken: { file } });
      expect(fault?.message).toContain(resolve(file));
    },
  );

  it('show no value that may be a secret', async () => {
    const planted = 'planted-s3cret';
    const faults = await faultsOf({
      environment: planted as never,
      appToken: `\n${planted}`,
      appTokenHeader: `${planted} x`,
      oauth: { clientId: planted, clientSecret: `\n${planted}`, refresh: planted as never },
      urls: { sandboxUrl: `https://user:${planted}@x.example`, baseUrl: planted },
      http: { proxy: planted },
    });
    expect(faults.length).toBeGreaterThan(6);
    expect(JSON.stringify(faults)).not.toContain(planted);
    for (const suffix of ['ENVIRONMENT', 'HTTP_TIMEOUT', 'TLS_RELOAD', 'HTTP_TRAILING_SLASH'])
      for (const secret of [CLIENT_ID, 'aB3$x/9+q=', 'x'.repeat(25), 'https://u:pw@h']) {
        const found = await faultsWith(`SERVICE_${suffix}`, secret);
        expect(found).toHaveLength(1);
        expect(inspect(found)).not.toContain(secret);
      }
  });

  describe('with a sidecar on loopback that does the TLS', () => {
    const { tls: _, ...withoutCertificate } = production;
    const at = (baseUrl: string, authUrl: string, mtls = true) =>
      faultsOf({ ...withoutCertificate, urls: { baseUrl, authUrl }, oauth: { ...oauth, mtls } });
    const [apiSidecar, tokenSidecar] = ['http://127.0.0.1:8080', 'http://localhost:8081'];
    const [api, tokens] = ['https://api.bank', 'https://auth.bank'];

    it.each([
      [apiSidecar, tokenSidecar, []],
      [apiSidecar, tokens, ['oauth.mtls']],
      [api, tokenSidecar, ['tls.certificate']],
      [api, tokens, ['tls.certificate']],
      ['http://10.0.0.1:8080', tokenSidecar, ['urls.baseUrl', 'tls.certificate']],
    ])(
      'for calls to %s and tokens from %s, report a missing certificate for %j',
      async (base, auth, needed) => {
        expect((await at(base, auth)).map(({ option }) => option)).toEqual(needed);
      },
    );

    it('report no missing certificate if tokens are not bound to one', async () => {
      expect(await at(apiSidecar, tokenSidecar, false)).toEqual([]);
    });
  });
});

describe('OAuth credentials without an app token', () => {
  const without: ServiceModuleOptions = { ...withOAuth, appToken: undefined };

  it.each<[string, ServiceModuleOptions, number]>([
    ['warns that SDK sessions need an app token', without, 1],
    ['does not warn if the SDK gets no app token', { ...without, linkSdk: { includeAppToken: false } }, 0],
    ['does not warn if an app token is set', withOAuth, 0],
    ['does not warn if there are no OAuth credentials', sandbox, 0],
    ['does not warn if OAuth is required', { ...withOAuth, linkSdk: { requireOAuth: true } }, 0],
  ])('%s', async (_, options, count) => {
    const { faults, warnings } = await resolveOptions(options);
    expect(faults).toEqual([]);
    const expected = {
      option: 'appToken',
      message: expect.stringMatching(/every LinkSDK session needs it.*application id/),
    };
    expect(warnings).toMatchObject(Array(count).fill(expected));
  });

  it('reports a fault in place of the warning if includeAppToken is true', async () => {
    const { faults, warnings } = await resolveOptions({ ...without, linkSdk: { includeAppToken: true } });
    expect(faults).toMatchObject([{ option: 'appToken', variable: 'SERVICE_APP_TOKEN' }]);
    expect(warnings).toEqual([]);
  });
});

describe('Errors of this module', () => {
  const faults = [{ option: 'appToken', variable: 'SERVICE_APP_TOKEN', message: 'is missing.' }];

  it.each([ServiceConfigurationError, ServiceCertificateError])(
    '%p shows each fault once when it is printed',
    (Class) => {
      const error = new Class(faults);
      expect(error.faults).toEqual(faults);
      expect(inspect(error, { depth: 5 }).split('is missing.')).toHaveLength(2);
    },
  );

  const certificate = { subject: 'CN=app' } as ServiceCertificateError['certificate'];
  const api = {
    code: 'invalid_response' as const,
    status: 409,
    body: { status: 'S', message: 'theirs' },
    method: 'GET',
    route: '/a',
    correlationId: 'id-1',
    retryAfter: 5,
    hint: 'check it',
    credentialFault: true,
    outcomeUnknown: true,
  };
  const connection = {
    kind: 'redirect' as const,
    method: 'POST',
    route: '/a',
    reason: '302',
    outcomeUnknown: true,
    correlationId: 'id-1',
    location: 'https://a.bank',
  };
  const token = {
    code: 'token_refused' as const,
    error: 'invalid_client',
    error_description: 'no',
    status: 401,
    scope: 'api',
    retryAfter: 10,
  };
  const requestFaults = [
    { property: 'a', message: 'is bad' },
    { property: 'b', message: 'too' },
  ];
  const message = 'ours';
  const doubt = `The request may have been executed: find out whether it was before you send it again (${GUIDES}/troubleshooting.md#an-unknown-outcome).`;

  it.each<[string, ServiceError, object]>([
    [
      'ServiceApiError',
      new ServiceApiError({ ...api, path: '/a/7', message }),
      { ...api, message, hint: `${doubt} ${api.hint}` },
    ],
    [
      'ServiceApiError',
      new ServiceApiError({ message, status: 404, method: 'GET', path: '/a' }),
      {
        code: 'api_error',
        credentialFault: false,
        outcomeUnknown: false,
        message,
        status: 404,
        method: 'GET',
        route: '/a',
      },
    ],
    [
      'ServiceConnectionError',
      new ServiceConnectionError({ ...connection, path: '/a/7', message }),
      { ...connection, message, code: 'connection_redirect', hint: doubt },
    ],
    [
      'ServiceConnectionError',
      ServiceConnectionError.closed(),
      {
        kind: 'closed',
        message: 'The client is closed, or its application is shutting down.',
        code: 'connection_closed',
        outcomeUnknown: false,
        retryable: true,
      },
    ],
    ['ServiceTokenError', new ServiceTokenError({ ...token, message }), { ...token, message }],
    [
      'ServiceRequestError',
      new ServiceRequestError(requestFaults),
      { code: 'invalid_request', message: 'Nothing was sent: a is bad; b too', faults: requestFaults },
    ],
    [
      'ServiceCertificateError',
      new ServiceCertificateError(faults, { certificate }),
      {
        code: 'invalid_certificate',
        certificate,
        faults,
        message: 'The client certificate is not usable:\n  - appToken (SERVICE_APP_TOKEN): is missing.',
      },
    ],
    [
      'ServiceCertificateError',
      new ServiceCertificateError([{ option: 'tls', message: 'no.' }], { code: 'certificate_refused' }),
      {
        code: 'certificate_refused',
        message: 'The server refused the client certificate:\n  - tls: no.',
      },
    ],
    [
      'ServiceStartupError',
      new ServiceStartupError('api.tls', faults[0]),
      {
        code: 'startup_check_failed',
        faults,
        message: 'The start-up check failed (api.tls):\n  - appToken (SERVICE_APP_TOKEN): is missing.',
      },
    ],
  ])('keep their fields, also in JSON, and can be copied for each caller: %s', (name, error, data) => {
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({
      name,
      retryable: false,
      outcomeUnknown: false,
      ...data,
    });
    const absent = Object.entries(error).filter(
      ([key]) =>
        !['faults', 'certificate', 'retryable', 'outcomeUnknown', ...Object.keys(data)].includes(key),
    );
    expect(absent.filter(([, value]) => value !== undefined)).toEqual([]);
    expect(Object.keys(error)).not.toContain('name');

    const copy = copyError(error) as ServiceError;
    expect(copy).not.toBe(error);
    expect(copy).toBeInstanceOf(Object.getPrototypeOf(error).constructor);
    expect([copy.toJSON(), copy.stack, Object.keys(copy)]).toEqual([
      error.toJSON(),
      error.stack,
      Object.keys(error),
    ]);
    const { stack } = error;
    Object.assign(copy, { name: 'Own', stack: 'Own stack' });
    expect([error.name, error.stack, copy.name, copy.stack]).toEqual([name, stack, 'Own', 'Own stack']);
  });

  it('keep their names in a bundle, whose classes have other ones; a subclass of the host application keeps its own', async () => {
    const bundle = await rolldown({
      input: join(ROOT, 'lib/errors/index.ts'),
      resolve: { extensionAlias: { '.js': ['.ts'] } },
    });
    const { output } = await bundle.generate({
      format: 'esm',
      minify: true,
      // The default is a RegExp of Jest's realm, which rolldown does not take.
      sourcemapIgnoreList: false,
    });
    await bundle.close();
    const code = `data:text/javascript,${encodeURIComponent(output[0].code)}`;
    const errors = (await import(code)) as typeof Errors;
    class TooPoorError extends errors.ServiceConnectionError {}
    const reset = { kind: 'reset', message: 'lost' } as const;
    const made = [
      new errors.ServiceApiError({ code: 'api_error', message: 'no', status: 404 } as ApiErrorDetails),
      new errors.ServiceConnectionError(reset),
      new errors.ServiceTokenError({ code: 'token_refused', message: 'no' }),
      new errors.ServiceRequestError(requestFaults),
      new errors.ServiceConfigurationError(faults),
      new errors.ServiceStartupError('api.tls', faults[0]),
      new errors.ServiceCertificateError(faults),
      new TooPoorError(reset),
    ];
    const names = made.map(({ name, stack }) => [name, stack?.split(':')[0]]);
    expect(names).toEqual(
      ['Api', 'Connection', 'Token', 'Request', 'Configuration', 'Startup', 'Certificate']
        .map((kind) => `Service${kind}Error`)
        .concat('TooPoorError')
        .map((name) => [name, name]),
    );
  });

  it('an error of the host application is not copied', () => {
    const other = new Error('of the host');
    expect(copyError(other)).toBe(other);
  });
});
