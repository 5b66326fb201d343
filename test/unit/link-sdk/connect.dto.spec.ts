import { describe, expect, it } from '@jest/globals';
import { validateSync } from 'class-validator';
import { validateInput } from '../../../lib/http/validate-input.js';
import { ConnectDto, LinkSessionDto } from '../../../lib/link-sdk/connect.dto.js';
import { inputsBySchema } from '../../helpers/inputs-by-schema.js';

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
