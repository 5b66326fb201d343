import { describe, expect, it } from '@jest/globals';
import { IsString } from 'class-validator';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Option, sectionsOf } from '../../../lib/config/option.js';
import { DEFAULTS, OPTIONS, ServiceModuleOptions, valueOf } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { isReservedHeader } from '../../../lib/config/rules.js';
import { readVariables } from '../../../lib/config/variables.js';
import { readDocument } from '../../helpers/readme.js';

const variables = new Set(
  OPTIONS.flatMap(({ suffix, kind }) =>
    suffix ? [`SERVICE_${suffix}`, ...(kind === 'secret' ? [`SERVICE_${suffix}_FILE`] : [])] : [],
  ),
);

describe('the options', () => {
  it('are the rows of the table in docs/configuration.md, each with its variable and default', async () => {
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
    const declared = OPTIONS.map(({ option, suffix }) => ({
      option,
      variable: suffix ? `SERVICE_${suffix}` : '',
      default: defaultOf(option),
    }));
    expect(documented).toEqual(declared);
  });

  it('are named in .env.example as they are', async () => {
    const text = await readFile(join(import.meta.dirname, '../../../.env.example'), 'utf8');
    const named = text.match(/SERVICE_\w+/g) ?? [];
    expect(named.filter((name) => name !== 'SERVICE_' && !variables.has(name))).toEqual([]);
    expect(named.length).toBeGreaterThan(20);
  });

  it('are complete in each mode of .env.example, once it is filled in', async () => {
    const text = await readFile(join(import.meta.dirname, '../../../.env.example'), 'utf8');
    const blocks = text.split(/^# ---.*$/m).slice(1);
    expect(blocks).toHaveLength(5);
    for (const block of blocks) {
      const lines = [...block.matchAll(/^# (SERVICE_\w+)=(.*)$/gm)].map(([, variable, value]) => {
        if (variable === 'SERVICE_CLIENT_ID') return [variable, '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52'];
        return [variable, value.replace(/^$/, 'a1b2c3').replace('https://...', 'https://api.bank')];
      });
      const { options } = readVariables((variable) => Object.fromEntries(lines)[variable] as unknown);
      const { faults, warnings } = await resolveOptions(options);
      expect([block.trim().split('\n', 2), faults, warnings]).toEqual([expect.anything(), [], []]);
    }
  });

  it('have their variable and default in their doc comment', async () => {
    const folder = join(import.meta.dirname, '../../../lib/config');
    const files = (await readdir(folder)).filter((file) => /^(.+\.)?options\.ts$/.test(file));
    const sources = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
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

  it('each have a variable of their own', () => {
    expect(variables.size).toBe(
      OPTIONS.reduce((sum, { suffix, kind }) => sum + (suffix ? (kind === 'secret' ? 2 : 1) : 0), 0),
    );
  });
});

function defaultOf(option: string): string | undefined {
  // It depends on the environment.
  if (option === 'authentication') return 'mtls';
  const value = valueOf(DEFAULTS, option) as string | number | boolean | undefined;
  return value === undefined ? undefined : String(value);
}

/** `Default 10 MiB.` -> '10485760' */
function documentedDefault(words: string): string | undefined {
  const [, value, mebi] = /Default:?[\s*]+(`[^`]+`|[\d,]+|true|false)( MiB)?/.exec(words) ?? [];
  const plain = value?.replace(/[`,]/g, '');
  return mebi ? String(Number(plain) * 2 ** 20) : plain;
}

it('an option needs only its declaration in its class to reach the module, in and outside of sections', async () => {
  // The addresses are chosen from `urls`, which the module itself never sees.
  const { urls: _, ...sections } = sectionsOf(ServiceModuleOptions);
  for (const type of [ServiceModuleOptions, ...Object.values(sections)]) {
    Option()(type.prototype as object, 'added');
    IsString()(type.prototype as object, 'added');
  }
  const added = Object.fromEntries(Object.keys(sections).map((key) => [key, { added: `in ${key}` }]));
  const { faults, options } = await resolveOptions({
    ...added,
    added: 'beside them',
    authentication: 'oauth',
    urls: { sandboxUrl: 'https://api.service.example', sandboxAuthUrl: 'https://auth.service.example' },
    oauth: {
      ...added.oauth,
      clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52',
      clientSecret: 'a1b2c3',
    },
  } as ServiceModuleOptions);
  expect(faults).toEqual([]);
  expect(Object.keys(added).length).toBeGreaterThan(4);
  expect(options).toMatchObject({ ...added, added: 'beside them' });
});

const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's3cret' };
const tls = { certificate: 'PEM', privateKey: 'PEM', chain: 'PEM' };
const [api, bearers, sandbox, mutual] = [
  'https://api.bank',
  'https://oauth.bank',
  'https://sandbox.bank',
  'https://mutual.bank',
];
const urls = { baseUrl: `${api}/base`, authUrl: 'https://auth.bank' };
const sandboxUrls = {
  sandboxUrl: sandbox,
  sandboxMtlsUrl: mutual,
  sandboxAuthUrl: 'https://sandbox-auth.bank',
};
const production = {
  environment: 'production',
  authentication: 'oauth',
  appToken: 'app-1',
  oauth,
  urls,
} as const;
const test = { authentication: 'oauth', appToken: 'app-1', oauth, urls: sandboxUrls } as const;
const withBoth = { ...urls, oauthBaseUrl: bearers };

async function originsOf(options: ServiceModuleOptions) {
  const { options: resolved, faults, warnings } = await resolveOptions(options);
  expect(faults).toEqual([]);
  return { origins: [...(resolved?.addresses.appTokenOrigins ?? [])], warnings };
}

describe('The app token goes to', () => {
  it.each<[string, ServiceModuleOptions, string[]]>([
    [
      'every address, with mtls',
      { ...production, authentication: 'mtls', tls, urls: withBoth },
      [api, bearers],
    ],
    ['every address, with app-token', { ...test, authentication: 'app-token' }, [sandbox, mutual]],
    ['{base_url}, with a bearer and a client certificate', { ...production, tls }, [api]],
    ['no address, with a bearer alone', production, []],
    ['{base_url} alone of the two in production', { ...production, tls, urls: withBoth }, [api]],
    ['{sandbox_mtls_url} alone of the two in the sandbox', { ...test, tls }, [mutual]],
    ['no address of the sandbox without a certificate', test, []],
    [
      'no address, where {base_url} and the configured {oauth_base_url} are one origin',
      { ...production, tls, urls: { ...urls, oauthBaseUrl: `${api}/oauth` } },
      [],
    ],
    [
      'the one origin of both sandbox addresses, as to the configured one',
      { ...test, tls, urls: { ...sandboxUrls, sandboxUrl: `${mutual}/plain` } },
      [mutual],
    ],
    ['no sidecar', { ...production, tls, urls: { ...urls, baseUrl: 'http://127.0.0.1:8080' } }, []],
    [
      'every address, where true',
      { ...production, sendAppTokenWithBearer: true, urls: withBoth },
      [api, bearers],
    ],
    ['no address, where false', { ...production, tls, sendAppTokenWithBearer: false }, []],
    ['those that a tls function is for', { ...production, tls: () => tls }, [api]],
  ])('%s', async (_, options, expected) => {
    expect((await originsOf(options)).origins).toEqual(expected);
  });

  it.each<[string, ServiceModuleOptions, number]>([
    ['{base_url} needs one that is not set', { ...production, tls }, 1],
    ['{sandbox_mtls_url} needs one that is not set', { ...test, tls }, 1],
    ['sendAppTokenWithBearer is false', { ...production, tls, sendAppTokenWithBearer: false }, 0],
    ['{oauth_base_url} is configured', { ...production, tls, urls: withBoth }, 0],
    ['there is no client certificate', production, 0],
  ])('nothing where there is none: a warning if %s', async (_, options, count) => {
    const { warnings } = await originsOf({ ...options, appToken: undefined });
    expect(warnings.filter(({ message }) => message.includes('5.2.5'))).toHaveLength(count);
    if (count === 0) return;
    expect(warnings).toMatchObject([{ option: 'appToken', variable: 'SERVICE_APP_TOKEN' }]);
    expect(warnings[0].message).toMatch(
      /set sendAppTokenWithBearer \(SERVICE_SEND_APP_TOKEN_WITH_BEARER\) to false/,
    );
  });
});

it.each([
  ...[
    'Host',
    'Connection',
    'Content-Length',
    'Expect',
    'Keep-Alive',
    'Proxy-Authorization',
    'Proxy-Connection',
  ],
  ...['TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
  ...['Authorization', 'Cookie', 'User-Agent', 'Accept', 'Accept-Encoding', 'Content-Type', '__proto__'],
])('%s cannot carry the app token', (name) => {
  expect(isReservedHeader(name)).toBe(true);
  expect(isReservedHeader(name.toLowerCase())).toBe(true);
});

it.each(['service-app-token', 'x-authorization', 'authorization-2', 'x-host', 'content', 'cookies'])(
  '%s can carry the app token',
  (name) => expect(isReservedHeader(name)).toBe(false),
);
