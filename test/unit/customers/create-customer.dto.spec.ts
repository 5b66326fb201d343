import { describe, expect, it } from '@jest/globals';
import { CreateCustomerDto } from '../../../lib/customers/create-customer.dto.js';
import { validateInput } from '../../../lib/http/validate-input.js';
import { exchangeDouble } from '../../../lib/testing/doubles/exchange-double.js';
import { inputsBySchema } from '../../helpers/inputs-by-schema.js';
import { makeClient } from '../../helpers/make-client.js';

describe('CreateCustomerDto', () => {
  it('takes what its Swagger schema allows, and nothing beyond', () => {
    const { taken, refused } = inputsBySchema(CreateCustomerDto._OPENAPI_METADATA_FACTORY());
    for (const input of taken) expect(validateInput(CreateCustomerDto, input)).toEqual(input);
    for (const input of refused) expect(() => validateInput(CreateCustomerDto, input)).toThrow('app_user_id');
  });

  it('another field goes by http.post, as the message says', async () => {
    const options = { appToken: 'app-1', urls: { sandboxUrl: 'https://api.example' } };
    const sent: unknown[] = [];
    const exchange = exchangeDouble(({ url, body }) => {
      sent.push([url.pathname, JSON.parse(String(body))]);
      return { status: 201, data: { customer_id: 'c-1' } };
    });
    const { service } = await makeClient(options, { exchange });
    const customer = { app_user_id: 'u-1', locale: 'ar' };
    const refused = service.customers.create(customer).catch((error: Error) => error.message);
    expect(await refused).toMatch(
      /locale is not a known field; ServiceHttpService sends any: http\.post\('\/customers\/v1', data\)/,
    );
    expect(sent).toEqual([]);
    await service.http.post('/customers/v1', customer);
    expect(sent).toEqual([['/customers/v1', customer]]);
    await service.close();
  });

  it.each([1, null, ['u-1']])('refuses the id %j', (app_user_id) => {
    const check = () => validateInput(CreateCustomerDto, { app_user_id });
    expect(check).toThrow('app_user_id must be a string');
  });
});
