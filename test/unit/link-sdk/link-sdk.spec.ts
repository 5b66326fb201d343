import { describe, expect, it } from '@jest/globals';
import { validateSync } from 'class-validator';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { SILENT } from '../../../lib/exchange/io.js';
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
const EXPOSED =
  /app token to browsers.*SERVICE_CLIENT_ID.*SERVICE_CLIENT_SECRET.*SERVICE_LINK_SDK_INCLUDE_APP_TOKEN/;

async function sdkOf(given: ServiceModuleOptions, warned?: Set<string>) {
  const { options } = await resolveOptions(given);
  if (!options) throw new Error('no options');
  const warnings: string[] = [];
  const getCustomerToken = () =>
    Promise.resolve({ accessToken: 'jwt', tokenType: 'bearer' as const, scope: 'x', expiresAt: new Date() });
  const log = { ...SILENT, warn: (text: string) => void warnings.push(text) };
  return { sdk: new LinkSdkService(options, { getCustomerToken }, { log, warned }), warnings };
}

describe('An app token that goes to browsers in production', () => {
  it('is warned of at the first session, once', async () => {
    const { sdk, warnings } = await sdkOf(production);
    expect(warnings).toEqual([]);
    await expect(sdk.connectParameters({ ...session, permissions: [] })).rejects.toThrow('Nothing was sent');
    expect(warnings).toEqual([]);
    await sdk.connectParameters(session);
    await sdk.connectParameters(session);
    expect(warnings).toEqual([expect.stringMatching(EXPOSED)]);
  });

  it.each([
    { ...production, linkSdk: { includeAppToken: true } },
    { ...production, oauth },
    { ...production, environment: 'sandbox' as const, urls: { sandboxMtlsUrl: 'https://sandbox.example' } },
  ])('is not warned of where it is meant, or not sent, or of the sandbox', async (given) => {
    const { sdk, warnings } = await sdkOf({ authentication: 'mtls', ...given });
    await sdk.connectParameters(session);
    expect(warnings).toEqual([]);
  });

  it('is warned of once where several clients share what was told', async () => {
    const warned = new Set<string>();
    for (const count of [1, 0]) {
      const { sdk, warnings } = await sdkOf(production, warned);
      await sdk.connectParameters(session);
      expect(warnings).toHaveLength(count);
    }
  });
});

describe('ConnectDto', () => {
  const session = { customer_id: 'c-1', permissions: ['identity'] };

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
