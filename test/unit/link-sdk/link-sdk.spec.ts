import { describe, expect, it } from '@jest/globals';
import { validateSync } from 'class-validator';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { validateInput } from '../../../lib/http/validate-input.js';
import { ConnectDto, LinkSessionDto } from '../../../lib/link-sdk/connect.dto.js';
import { LinkSdkService } from '../../../lib/link-sdk/link-sdk.service.js';
import { inputsBySchema } from '../../helpers/inputs-by-schema.js';

const production: ServiceModuleOptions = {
  environment: 'production',
  urls: { baseUrl: 'https://api.example', authUrl: 'https://auth.example' },
  appToken: 'app-token',
  tls: { certificate: 'PEM', privateKey: 'PEM' },
};
const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 'client-secret' };
const session = { customer_id: 'c-1', permissions: ['identity'] };

async function sdkOf(given: ServiceModuleOptions) {
  const { options } = await resolveOptions(given);
  if (!options) throw new Error('no options');
  const getCustomerToken = () =>
    Promise.resolve({ accessToken: 'jwt', tokenType: 'bearer' as const, scope: 'x', expiresAt: new Date() });
  return new LinkSdkService(options, { getCustomerToken });
}

describe('The parameters of a session', () => {
  const withOAuth: ServiceModuleOptions = { ...production, authentication: 'oauth', oauth };
  const [app_token, access_token] = ['app-token', 'jwt'];
  it.each<[string, ServiceModuleOptions, object]>([
    ['mtls', production, { app_token }],
    ['mtls with OAuth credentials', { ...production, oauth }, { app_token, access_token }],
    ['oauth', withOAuth, { app_token, access_token }],
    ['oauth without an app token', { ...withOAuth, appToken: undefined }, { access_token }],
    ['oauth, includeAppToken false', { ...withOAuth, linkSdk: { includeAppToken: false } }, { access_token }],
    ['mtls, includeAppToken false', { ...production, linkSdk: { includeAppToken: false } }, { app_token }],
  ])('%s', async (_, given, credentials) => {
    const sdk = await sdkOf(given);
    expect(await sdk.sessionParameters({ customer_id: 'c-1' })).toEqual({
      ...credentials,
      customer_id: 'c-1',
    });
    expect(await sdk.connectParameters(session)).toEqual({ ...credentials, ...session });
  });

  it('refuse a field that they do not know, and say what to do with it', async () => {
    const sdk = await sdkOf(production);
    const extra = { sandbox: true } as never as object;
    for (const refused of [
      sdk.sessionParameters({ customer_id: 'c-1', ...extra }),
      sdk.connectParameters({ ...session, ...extra }),
    ]) {
      await expect(refused).rejects.toThrow(
        /sandbox is not a known field; add it to what the method returns/,
      );
    }
    await expect(sdk.sessionParameters({ customer_id: 'a b' })).rejects.toThrow(
      'customer_id must be 1 to 128',
    );
  });
});

describe('ConnectDto', () => {
  it('takes what its Swagger schema allows, and nothing beyond', () => {
    const { taken, refused } = inputsBySchema({
      ...LinkSessionDto._OPENAPI_METADATA_FACTORY(),
      ...ConnectDto._OPENAPI_METADATA_FACTORY(),
    });
    for (const input of taken) expect(validateInput(ConnectDto, input)).toEqual(input);
    for (const input of refused) expect(() => validateInput(ConnectDto, input)).toThrow('Nothing was sent');
  });

  it('takes permissions of up to 256 characters', () => {
    const check = (length: number) =>
      validateInput(ConnectDto, { ...session, permissions: ['x'.repeat(length)] });
    expect(() => check(256)).not.toThrow();
    expect(() => check(257)).toThrow('permissions (each value) must be shorter than or equal to 256');
  });

  it.each([
    [5, 'must be a string'],
    ['   ', 'must not be blank'],
    ['a\nb', 'must not contain control characters'],
  ])('refuses the bank %j', (bank_identifier, message) => {
    const check = () => validateInput(ConnectDto, { ...session, bank_identifier });
    expect(check).toThrow(`bank_identifier ${message}`);
  });

  it("names the rule of a customer id, for a host's own ValidationPipe", () => {
    const [{ constraints }] = validateSync(Object.assign(new ConnectDto(), session, { customer_id: 'a b' }));
    expect(constraints).toEqual({ isCustomerId: expect.stringMatching(/^customer_id must be 1 to 128/) });
  });
});
