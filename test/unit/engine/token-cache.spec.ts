import { type Agent } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { type CertificateSummary } from '../../../lib/errors/index.js';
import { type ExchangeRequest } from '../../../lib/exchange/exchange.types.js';
import { type Identity } from '../../../lib/tls/client-identity.js';
import { createAuthority } from '../../helpers/certificates.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { makeClient } from '../../helpers/make-client.js';

const cleanUp: (() => void)[] = [];
afterEach(() => cleanUp.splice(0).forEach((undo) => undo()));

describe('the token cache of a module', () => {
  const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's3cret' };
  const urls = {
    sandboxUrl: 'https://sandbox.bank',
    sandboxMtlsUrl: 'https://mtls.sandbox.bank',
    sandboxAuthUrl: 'https://auth.bank',
  };

  async function made(given: ServiceModuleOptions, changed: Partial<Identity> = {}) {
    const clock = new FakeClock({ start: Date.now() });
    const asked: ExchangeRequest[] = [];
    const exchange = async (request: ExchangeRequest) => {
      const scope = new URLSearchParams(String(request.body)).get('scope');
      const answer = {
        access_token: `token-${asked.push(request)}`,
        token_type: 'bearer',
        expires_in: 2_000,
        scope,
      };
      const body = Buffer.from(JSON.stringify(answer));
      return { status: 200, statusText: '', headers: {}, body, untilClose: false };
    };
    const io = { exchange, clock, random: () => 0 };
    const { service, identity } = await makeClient(
      { authentication: 'oauth', urls, ...given },
      { ...io, identity: changed },
    );
    cleanUp.push(() => void service.close());
    return { ...service, identity, clock, asked };
  }

  it('is none without OAuth credentials', async () => {
    const { auth } = await made({ authentication: 'app-token', appToken: 'a', urls });
    await expect(auth.getApiToken()).rejects.toMatchObject({ code: 'oauth_not_configured' });
    expect(auth.apiTokenStatus).toBeUndefined();
  });

  it.each([
    ['oauth', 1],
    ['mtls', 0],
  ] as const)('by schedule, %s begins %d token requests at the start', async (authentication, count) => {
    const { start, asked } = await made({
      authentication,
      urls,
      ...(authentication === 'mtls' && { appToken: 'a', tls: () => ({}) }),
      oauth: { ...oauth, refresh: 'scheduled' },
    });
    expect(asked).toHaveLength(0);
    await start();
    await settle();
    expect(asked).toHaveLength(count);
  });

  it('asks the endpoint of the options with their client, over the agent', async () => {
    const { auth, asked, identity } = await made({ oauth });
    await auth.getApiToken();
    expect(asked.map(({ url, agent }) => [(url as URL).href, agent])).toEqual([
      ['https://auth.bank/oauth2/token', identity.tokenAgent satisfies Agent],
    ]);
    const form = new URLSearchParams(String(asked[0]?.body));
    expect([form.get('client_id'), form.get('client_secret')]).toEqual([oauth.clientId, 's3cret']);
  });

  it('keeps to linkSdk.minTokenLife, tokenCache.maxEntries and oauth.refresh', async () => {
    const { auth, clock, asked } = await made({
      oauth: { ...oauth, refresh: 'on-expiry' },
      linkSdk: { minTokenLife: 700 },
      tokenCache: { maxEntries: 1 },
    });
    await auth.getToken('customer.a');
    await clock.advance(1_299_000);
    expect((await auth.getToken('customer.a')).accessToken).toBe('token-1');
    await clock.advance(2_000);
    expect((await auth.getToken('customer.a')).accessToken).toBe('token-2');
    await auth.getToken('customer.b');
    await auth.getToken('customer.a');
    expect(asked).toHaveLength(4);
    const scheduled = await made({ oauth: { ...oauth, refresh: 'scheduled' } });
    await scheduled.start();
    await scheduled.clock.advance(2_000_000);
    expect(scheduled.asked).toHaveLength(2);
  });

  it('takes tokens from tokenStore, where they were got with the same certificate', async () => {
    const entries = new Map<string, string>();
    const tokenStore = {
      get: async (key: string) => entries.get(key),
      set: async (key: string, value: string) => void entries.set(key, value),
      delete: async (key: string) => void entries.delete(key),
    };
    const authority = await createAuthority();
    const { certificate, key: privateKey } = await authority.client('app');
    const identity = { certificate, privateKey };
    const counts: number[] = [];
    for (const fingerprint256 of ['AA', 'AA', 'BB']) {
      const certificate = { fingerprint256 } as CertificateSummary;
      const bound = { oauth: { ...oauth, mtls: true }, tls: identity, tokenStore };
      const { auth, asked } = await made(bound, { certificate });
      await auth.getToken('api');
      await settle();
      counts.push(asked.length);
    }
    expect(counts).toEqual([1, 0, 1]);
  });

  it.each([
    [true, 2],
    [false, 1],
  ])(
    'with oauth.mtls %j, has asked %d times after a certificate has taken the place of another',
    async (mtls, count) => {
      let change: () => void = () => undefined;
      const { auth, asked } = await made(
        { oauth: { ...oauth, mtls }, tls: () => ({}) },
        { onCertificateChange: (listener) => (change = listener) },
      );
      await auth.getApiToken();
      change();
      await auth.getApiToken();
      expect(asked).toHaveLength(count);
    },
  );
});
