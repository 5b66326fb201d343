import { RESOURCES } from '../../config/resources.js';
import { type StubbedRequest } from './doubles.js';

/** What a call brings where a test gives no answer (docs/service.md#calls). */
export function defaultAnswer(
  pathname: string,
  { method, data }: StubbedRequest,
  nextCustomer: () => number,
): unknown {
  const resource = `${method} ${pathname.replace(/\/$/, '')}`;
  if (resource === `GET ${RESOURCES.banks.path}`) {
    return [
      { bank_identifier: 'ALPHA_BANK', name: 'Alpha Bank' },
      { bank_identifier: 'BIRCH_BANK', name: 'Birch Bank' },
    ];
  }
  if (resource === `POST ${RESOURCES.customers.path}`) {
    return { customer_id: `customer-${nextCustomer()}`, ...(data as object) };
  }
  return {};
}
