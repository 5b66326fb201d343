import { describe, expect, it } from '@jest/globals';
import { mergeOptions } from '../../../lib/config/merge-options.js';
import { readVariables, variableOf } from '../../../lib/config/variables.js';

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

  it('leaves what does not read as its kind to the validation', () => {
    expect(read({ SERVICE_HTTP_TIMEOUT: '30s', SERVICE_TLS_RELOAD: 'maybe' }).options).toEqual({
      http: { timeout: '30s' },
      tls: { reload: 'maybe' },
    });
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

describe('mergeOptions', () => {
  it('merges key by key, the first that is set wins', () => {
    expect(
      mergeOptions(
        { appToken: undefined, http: { timeout: 1, retries: undefined } },
        { appToken: 'from-env', http: { timeout: 2, retries: 3 }, urls: { baseUrl: 'https://x' } },
        undefined,
      ),
    ).toEqual({ appToken: 'from-env', http: { timeout: 1, retries: 3 }, urls: { baseUrl: 'https://x' } });
  });

  it('lets a tls function stand alone, and keeps a store as it is', () => {
    const tls = () => ({});
    const tokenStore = new (class {
      get() {}
    })();
    const merged = mergeOptions({ tls, tokenStore }, { tls: { certificate: 'x' } });
    expect(merged.tls).toBe(tls);
    expect(merged.tokenStore).toBe(tokenStore);
  });
});
