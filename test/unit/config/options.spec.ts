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
const production: ServiceModuleOptions = {
  environment: 'production',
  authentication: 'oauth',
  oauth,
  urls: { baseUrl: 'https://api.bank', authUrl: 'https://auth.bank' },
};

describe('OAuth credentials without an app token', () => {
  it.each<[string, ServiceModuleOptions, number]>([
    ['warn', production, 1],
    ['do not warn where the SDK gets none', { ...production, linkSdk: { includeAppToken: false } }, 0],
    ['do not warn where one is set', { ...production, appToken: 'app-1' }, 0],
    ['do not warn where there are none', { urls: { sandboxUrl: 'https://s.bank' }, appToken: 'app-1' }, 0],
  ])('%s', async (_, options, count) => {
    const { faults, warnings } = await resolveOptions(options);
    expect(faults).toEqual([]);
    expect(warnings.filter(({ option }) => option === 'appToken')).toHaveLength(count);
    if (count > 0) expect(warnings[0].message).toMatch(/LinkSDK needs it.*application id/);
  });

  it('are a fault where includeAppToken is true, and no warning', async () => {
    const { faults, warnings } = await resolveOptions({ ...production, linkSdk: { includeAppToken: true } });
    expect(faults).toMatchObject([{ option: 'appToken', variable: 'SERVICE_APP_TOKEN' }]);
    expect(warnings).toEqual([]);
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
