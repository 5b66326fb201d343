import { ServiceRequestError } from '../errors/index.js';

/** The scope of backend calls (docs/service.md#tokens). */
export const API_SCOPE = 'api';

const CUSTOMER_PREFIX = 'customer.';

/** The allowed form of a customer id, in words. */
export const CUSTOMER_ID_RULE = '1 to 128 letters, digits and . _ ~ : @ + = -, and not only dots';
/**
 * The characters of a UUID, an e-mail address, a URN or base64url. Each is allowed in a scope
 * (https://www.rfc-editor.org/rfc/rfc6749#section-3.3), and none of them separates scopes, paths, fields or header values.
 */
const CUSTOMER_ID = /^(?!\.+$)[A-Za-z0-9._~:@+=-]{1,128}$/;

/**
 * `customer.<customer_id>` (docs/service.md#tokens).
 * @throws ServiceRequestError if the id is not valid
 */
export function customerScope(customerId: string): string {
  if (!isCustomerId(customerId)) throw ServiceRequestError.of('customer_id', `must be ${CUSTOMER_ID_RULE}`);
  return CUSTOMER_PREFIX + customerId;
}

/**
 * Returns the scope if it is `api` or `customer.<customer_id>`.
 * @throws ServiceRequestError for any other scope
 */
export function checkScope(scope: string): string {
  const customerId =
    typeof scope === 'string' && scope.startsWith(CUSTOMER_PREFIX) && scope.slice(CUSTOMER_PREFIX.length);
  if (scope !== API_SCOPE && !isCustomerId(customerId)) {
    const rule = `must be api or customer.<customer_id>, with an id of ${CUSTOMER_ID_RULE}`;
    throw ServiceRequestError.of('scope', rule);
  }
  return scope;
}

/** Whether the id has the allowed form. A space would request a second scope, and a slash or dots could change a path. */
export function isCustomerId(value: unknown): boolean {
  return typeof value === 'string' && CUSTOMER_ID.test(value);
}
