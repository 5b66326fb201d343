import { describe, expect, it } from '@jest/globals';
import { CreateCustomerDto } from '../../../lib/customers/create-customer.dto.js';
import { validateInput } from '../../../lib/http/validate-input.js';
import { inputsBySchema } from '../../helpers/inputs-by-schema.js';

describe('CreateCustomerDto', () => {
  it('takes what its Swagger schema allows, and nothing beyond', () => {
    const { taken, refused } = inputsBySchema(CreateCustomerDto._OPENAPI_METADATA_FACTORY());
    for (const input of taken) expect(validateInput(CreateCustomerDto, input)).toEqual(input);
    for (const input of refused) expect(() => validateInput(CreateCustomerDto, input)).toThrow('app_user_id');
  });

  it.each([1, null, ['u-1']])('refuses the id %j', (app_user_id) => {
    const check = () => validateInput(CreateCustomerDto, { app_user_id });
    expect(check).toThrow('app_user_id must be a string');
  });
});
