import { describe, expect, it } from '@jest/globals';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';

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
