import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { misspeltVariables, nearest, unusedVariables } from '../../../lib/config/misspelling.js';
import { mergeOptions } from '../../../lib/config/options.js';
import { readRegularFile, whyUnreadable } from '../../../lib/config/read-file.js';
import { nameFault, readVariables, sharedVariable, variableOf } from '../../../lib/config/variables.js';

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

  it('names quotes around a value, as docker run --env-file leaves them, and checks what is in them', () => {
    const { options, faults } = read({
      SERVICE_ENVIRONMENT: '"sandbox"',
      SERVICE_APP_TOKEN: ` 'a"b' `,
      SERVICE_CLIENT_SECRET_FILE: '"/run/secrets/s"',
      SERVICE_HTTP_USER_AGENT: `it's "fine"`,
    });
    const message = expect.stringMatching(/^is in quotes, .*remove them/);
    expect(faults).toEqual([
      { option: 'environment', variable: 'SERVICE_ENVIRONMENT', message },
      { option: 'appToken', variable: 'SERVICE_APP_TOKEN', message },
      { option: 'oauth.clientSecret', variable: 'SERVICE_CLIENT_SECRET_FILE', message },
    ]);
    expect(options).toEqual({
      environment: 'sandbox',
      appToken: 'a"b',
      oauth: { clientSecret: { file: '/run/secrets/s' } },
      http: { userAgent: `it's "fine"` },
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

describe('unusedVariables', () => {
  it("are those of our groups that no option has; not other tools', nor those of a named module", () => {
    const set = [
      'SERVICE_TLS_CA_FILE',
      'SERVICE_TLS_CHAIN',
      'SERVICE_PORT',
      'SERVICE_HTTP_APP_TOKEN',
      'SERVICE_KSA_TLS_CA',
    ];
    const unused = (...more: [name?: string, inFiles?: string[]]) => [
      ...unusedVariables(set, new Map(), ...more).keys(),
    ];
    expect(unused()).toEqual(['SERVICE_TLS_CA_FILE']);
    expect(unused('ksa')).toEqual(['SERVICE_KSA_TLS_CA']);
    expect(unused(undefined, set)).toEqual(['SERVICE_TLS_CA_FILE', 'SERVICE_PORT', 'SERVICE_KSA_TLS_CA']);
  });
});

describe('misspeltVariables', () => {
  const misspelt = (...variables: string[]) => Object.fromEntries(misspeltVariables(variables));

  it('finds variables whose name is close to one of ours', () => {
    expect(
      misspelt(
        'SERVICE_HTTP_TIMOUT',
        'SERVICE_CLIENTID',
        'SERVICE_HTP_RETRS',
        'SERVICE_HTP_RETRES',
        'SERVICE_SANDBXO_URL',
        'SERVICE_APP_TOKN_FILE',
      ),
    ).toEqual({
      SERVICE_HTTP_TIMOUT: 'SERVICE_HTTP_TIMEOUT',
      SERVICE_CLIENTID: 'SERVICE_CLIENT_ID',
      SERVICE_HTP_RETRES: 'SERVICE_HTTP_RETRIES',
      SERVICE_SANDBXO_URL: 'SERVICE_SANDBOX_URL',
      SERVICE_APP_TOKN_FILE: 'SERVICE_APP_TOKEN_FILE',
    });
  });

  it.each([
    ['variables of ours', ['SERVICE_APP_TOKEN', 'SERVICE_APP_TOKEN_FILE', 'SERVICE_HTTP_RETRIES']],
    [
      'service links of Kubernetes',
      [
        'SERVICE_HOST',
        'SERVICE_PORT',
        'SERVICE_PORT_443_TCP',
        'SERVICE_PORT_443_TCP_PROTO',
        'SERVICE_SERVICE_HOST',
        'SERVICE_SERVICE_PORT_HTTPS',
      ],
    ],
    [
      "what can be a named module's",
      ['SERVICE_KSA_APP_TOKEN', 'SERVICE_X_APP_TOKEN', 'SERVICE_OATH_BASE_URL'],
    ],
    ['those of others', ['SERVICE_NAME', 'SERVICE_URL', 'SERVICE_ACCOUNT', 'APP_TOKN', 'SERVICES_APP_TOKN']],
  ])('leaves %s alone', (_, variables) => {
    expect(misspelt(...variables)).toEqual({});
  });

  it.each([
    ['rulss', 'urls'],
    ['tsl.chian', 'tls.chain'],
    ['appToken', 'appToken'],
    ['pa', undefined],
    ['app', undefined],
    ['xrluz', undefined],
  ])('takes %s for a misspelling of %s', (word, meant) => {
    expect(nearest(word, ['tls.chain', 'appToken', 'urls'])).toBe(meant);
  });

  it('takes the candidate with the fewest changes', () => {
    expect(nearest('abcd', ['abcdef', 'abcde', 'abxy'])).toBe('abcde');
    expect(nearest('abcd', ['abcde', 'xabcd'])).toBe('abcde');
    expect(nearest('abcd', ['xbcdy', 'abdc'])).toBe('abdc');
    expect(nearest('abcd', ['abcdx', 'bacd'])).toBe('abcdx');
    expect(nearest('abcdef', ['badcfe'])).toBeUndefined();
    expect(nearest('abab', ['baba'])).toBe('baba');
  });

  it('finds only variables of its own name', () => {
    const variables = ['SERVICE_KSA_HTTP_TIMOUT', 'SERVICE_HTTP_TIMOUT'];
    expect(misspeltVariables(variables, 'ksa')).toEqual(
      new Map([['SERVICE_KSA_HTTP_TIMOUT', 'SERVICE_KSA_HTTP_TIMEOUT']]),
    );
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

  it('shares variables with a name that has the same prefix, or begins with it', () => {
    expect(sharedVariable('a-b', 'A_B')).toBe('SERVICE_A_B_ENVIRONMENT');
    expect(sharedVariable('ksa', 'ksa-sandbox')).toBe('SERVICE_KSA_SANDBOX_AUTH_URL');
    expect(sharedVariable('ksa', 'uae')).toBeUndefined();
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

  it('refuses a file over 1 MiB', async () => {
    await expect(readRegularFile(await fileOf(MIB + 1))).rejects.toMatchObject({
      code: 'ERR_FILE_TOO_LARGE',
    });
  });

  it('refuses a directory, a device and a missing file', async () => {
    await expect(readRegularFile(folder)).rejects.toMatchObject({ code: 'EISDIR' });
    await expect(readRegularFile('/dev/null')).rejects.toMatchObject({ code: 'ERR_NOT_A_FILE' });
    await expect(readRegularFile(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('whyUnreadable', () => {
  const why = (path: string, code?: string) => whyUnreadable(path, Object.assign(new Error(), { code }));

  it.each([
    ['/run/key.pem', 'EACCES', 'the file /run/key.pem cannot be read (EACCES). Give the user'],
    ['/run/key.pem', 'EISDIR', 'the file /run/key.pem is a directory.'],
    ['/run/key.pem', 'EIO', 'the file /run/key.pem cannot be read (EIO).'],
    ['/run/key.pem', undefined, 'the file /run/key.pem cannot be read (unknown reason).'],
    ['~/key.pem', 'ENOENT', 'mounted into this process. ~ is not expanded here'],
    [
      'key.pem',
      'ENOENT',
      `mounted into this process. It was looked for at ${join(process.cwd(), 'key.pem')}.`,
    ],
  ])('explains %s, %s', (path, code, text) => {
    expect(why(path, code)).toContain(text);
  });

  it('names the folder only for a relative path', () => {
    expect(why('/run/key.pem', 'ENOENT')).toMatch(/mounted into this process\.$/);
    expect(why('key.pem', 'EACCES')).not.toContain(process.cwd());
  });
});
