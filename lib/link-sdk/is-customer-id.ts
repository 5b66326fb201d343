import { ValidateBy } from 'class-validator';
import { customerScope } from '../auth/scope.js';

/** The id grammar of customer-scoped tokens: a wider one would widen the scope (specification 5.4.2). */
export const IsCustomerId = (): PropertyDecorator =>
  ValidateBy({
    name: 'isCustomerId',
    validator: {
      validate: (value: unknown): boolean => {
        try {
          return customerScope(value as string) !== '';
        } catch {
          return false;
        }
      },
      defaultMessage: () =>
        'customer_id must be 1 to 128 letters, digits and . _ ~ : @ + = -, and not only dots',
    },
  });
