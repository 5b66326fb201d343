import { RESOURCES } from '../../config/names.js';
import { type StubbedRequest } from './doubles.js';

/** The response to a call for which the test has no double: like the service's (docs/service.md#calls). */
export function defaultAnswer(
  pathname: string,
  { method, data }: StubbedRequest,
  nextCustomer: () => number,
): unknown {
  switch (`${method} ${pathname.replace(/\/$/, '')}`) {
    case `GET ${RESOURCES.banks}`:
      return ['Alpha', 'Birch'].map((name) => ({
        bank_identifier: `${name.toUpperCase()}_BANK`,
        name: `${name} Bank`,
      }));
    case `POST ${RESOURCES.customers}`:
      return { customer_id: `customer-${nextCustomer()}`, ...(data as object) };
    default:
      return {};
  }
}
