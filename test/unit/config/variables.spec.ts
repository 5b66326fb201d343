import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mergeOptions } from '../../../lib/config/options.js';
import { readRegularFile, whyUnreadable } from '../../../lib/config/read-file.js';
import { nameFault, readVariables, variableOf } from '../../../lib/config/variables.js';

const read = (variables: Record<string, unknown>, name?: string) =>
  readVariables((key) => variables[key], name);

describe('readVariables', () => {
  it('reads text, numbers and flags, and takes an empty variable as not set', () => {
    const { options, faults } = read({
      SERVICE_ENVIRONMENT: ' production ',
      SERVICE_HTTP_TIMEOUT: '1500',
      SERVICE_HTTP_TRAILING_SLASH: 'TRUE',
      SERVICE_OAUTH_MTLS: '0',
      SERVICE_APP_TOKEN: '',
      SERVICE_TOKEN_REFRESH: '  ',
    });
    expect(faults).toEqual([]);
    expect(options).toEqual({
      environment: 'production',
      http: { timeout: 1500, trailingSlash: true },
      oauth: { mtls: false },
    });
  });

  it('leaves a value of another kind to the validation', () => {
    expect(read({ SERVICE_HTTP_TIMEOUT: '30s', SERVICE_TLS_RELOAD: 'maybe' }).options).toEqual({
      http: { timeout: '30s' },
      tls: { reload: 'maybe' },
    });
  });

  it.each([
    ['true, 1, yes, On', true],
    ['False, 0, no, OFF', false],
  ])('reads %s as %s, in flags and in a list of names', (spellings, expected) => {
    for (const text of spellings.split(', ')) {
      const { options } = read({ SERVICE_OAUTH_MTLS: text, SERVICE_HTTP_TRAILING_SLASH: ` ${text} ` });
      expect(options).toEqual({ oauth: { mtls: expected }, http: { trailingSlash: expected } });
    }
  });

  it('reads a list of names', () => {
    const { options } = read({ SERVICE_HTTP_TRAILING_SLASH: 'banks, customers' });
    expect(options).toEqual({ http: { trailingSlash: ['banks', 'customers'] } });
  });

  it('does not change a secret, nor a value that validate() of ConfigModule returned', () => {
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
  ])('takes %s from a file too, but not both', (suffix) => {
    expect(JSON.stringify(read({ [`SERVICE_${suffix}_FILE`]: '/run/secrets/x' }).options)).toContain(
      '{"file":"/run/secrets/x"}',
    );
    const { faults } = read({ [`SERVICE_${suffix}_FILE`]: '/x', [`SERVICE_${suffix}`]: 'y' });
    expect(faults).toMatchObject([{ message: expect.stringContaining('both set') }]);
  });

  it('reads SERVICE_KSA_* for the module named ksa', () => {
    expect(read({ SERVICE_KSA_APP_TOKEN: 'k', SERVICE_APP_TOKEN: 'd' }, 'ksa').options).toEqual({
      appToken: 'k',
    });
    expect(variableOf('oauth.clientId', 'my-bank')).toBe('SERVICE_MY_BANK_CLIENT_ID');
  });
});

describe('the name of a module', () => {
  it.each(['sandbox', 'Sandbox', 'oauth', 'link-sdk-include'])('cannot be %j', (name) => {
    expect(nameFault(name)).toEqual(expect.any(String));
  });

  it('is refused with a reason', () => {
    for (const name of ['', '1x', 'a b']) expect(nameFault(name)).toMatch(/^must begin with a letter/);
    expect(nameFault('sandbox')).toMatch(/'sandbox'.*SERVICE_SANDBOX_/);
  });

  it.each(['ksa', 'my-bank', 'http', 'production', 'eu1', 'tls', 'app'])('can be %j', (name) => {
    expect(nameFault(name)).toBeUndefined();
  });
});

describe('mergeOptions', () => {
  it('merges key by key; the first value that is set wins', () => {
    expect(
      mergeOptions(
        { appToken: undefined, http: { timeout: 1, retries: undefined } },
        { appToken: 'from-env', http: { timeout: 2, retries: 3 }, urls: { baseUrl: 'https://x' } },
        undefined,
      ),
    ).toEqual({ appToken: 'from-env', http: { timeout: 1, retries: 3 }, urls: { baseUrl: 'https://x' } });
  });

  it('takes null as not set, at any depth', () => {
    expect(mergeOptions({ appToken: null, oauth: null }, { oauth: { clientId: null, mtls: true } })).toEqual({
      oauth: { mtls: true },
    });
  });

  it('leaves a value that is no section to the validation', () => {
    expect(mergeOptions({ http: 5, __proto: 1 }, { http: { retries: 1 } })).toEqual({ http: 5, __proto: 1 });
    expect(mergeOptions({ http: { retries: 1 } }, { http: 5 })).toEqual({ http: { retries: 1 } });
    const falsy = { sendAppTokenWithBearer: false, http: '' };
    expect(mergeOptions(falsy, { sendAppTokenWithBearer: true, http: { retries: 1 } })).toEqual(falsy);
    const dangerous = JSON.parse('{"__proto__": {"appToken": "x"}}') as object;
    expect(Object.keys(mergeOptions(dangerous))).toEqual(['__proto__']);
  });

  it('merges no tls function with other sources, and does not copy a store', () => {
    const tls = () => ({});
    const tokenStore = new (class {
      get() {}
    })();
    const merged = mergeOptions({ tls, tokenStore }, { tls: { certificate: 'x' } });
    expect(merged.tls).toBe(tls);
    expect(merged.tokenStore).toBe(tokenStore);
  });
});

const MIB = 1024 * 1024;

describe('readRegularFile', () => {
  let folder: string;
  const fileOf = async (bytes: number) => {
    const file = join(folder, `${bytes}.txt`);
    await writeFile(file, Buffer.alloc(bytes, 'a'));
    return file;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'read-file-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it.each([0, 1, 200_000, MIB])('reads %i bytes', async (bytes) => {
    expect(await readRegularFile(await fileOf(bytes))).toHaveLength(bytes);
  });

  it('refuses a file over 1 MiB, a directory, a device and a missing file', async () => {
    await expect(readRegularFile(await fileOf(MIB + 1))).rejects.toMatchObject({ code: 'larger than 1 MiB' });
    for (const path of [folder, '/dev/null']) {
      await expect(readRegularFile(path)).rejects.toMatchObject({ code: 'not a regular file' });
    }
    await expect(readRegularFile(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

it.each([
  ['/run/key.pem', 'EACCES', 'the file /run/key.pem cannot be read (EACCES).'],
  ['/run/key.pem', undefined, 'the file /run/key.pem cannot be read (unknown reason).'],
  ['key.pem', 'ENOENT', `the file ${join(process.cwd(), 'key.pem')} cannot be read (ENOENT).`],
])('whyUnreadable() says of %s, %s: %s', (path, code, text) => {
  expect(whyUnreadable(path, Object.assign(new Error(), { code }))).toBe(text);
});
