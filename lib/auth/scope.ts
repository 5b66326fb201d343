import { ServiceRequestError } from '../errors/index.js';

/** The scope of backend calls (specification 5.4.2). */
export const API_SCOPE = 'api';

const CUSTOMER_PREFIX = 'customer.';
const MAX_CUSTOMER_ID_LENGTH = 128;

/**
 * The characters of a UUID, an e-mail address, a URN or base64url: each is allowed in a scope-token (RFC 6749, 3.3)
 * and none of them separates scopes, paths, fields or header values.
 */
const CUSTOMER_ID = /^[A-Za-z0-9._~:@+=-]+$/;

/**
 * `customer.<customer_id>` (specification 5.4.2).
 * @throws ServiceRequestError where {@link customerIdFault} finds one
 */
export function customerScope(customerId: string): string {
  refuse('customer_id', customerIdFault(customerId));
  return scopeOfCustomer(customerId);
}

/** The same for an id that is checked already. */
export function scopeOfCustomer(customerId: string): string {
  return CUSTOMER_PREFIX + customerId;
}

/**
 * @returns the scope, where it is `api` or `customer.<customer_id>`.
 * @throws ServiceRequestError for every other one.
 */
export function checkScope(scope: string): string {
  if (scope === API_SCOPE) return scope;
  const isCustomer = typeof scope === 'string' && scope.startsWith(CUSTOMER_PREFIX);
  const fault = isCustomer
    ? customerIdFault(scope.slice(CUSTOMER_PREFIX.length))
    : 'must be api or customer.<customer_id>';
  refuse('scope', fault);
  return scope;
}

/** The customer id of a checked scope; undefined for `api`. */
export function customerIdOf(scope: string): string | undefined {
  return scope === API_SCOPE ? undefined : scope.slice(CUSTOMER_PREFIX.length);
}

/**
 * Why this is not a customer id; undefined where it is one: a text of 1 to 128 characters out of
 * `A-Z a-z 0-9 . _ ~ : @ + = -`, and not only dots. A space would ask for a second scope, a slash or dots could change
 * a path.
 */
export function customerIdFault(customerId: unknown): string | undefined {
  if (typeof customerId !== 'string' || customerId === '') return 'must name a customer';
  if (customerId.length > MAX_CUSTOMER_ID_LENGTH) {
    return `must have a customer id of at most ${MAX_CUSTOMER_ID_LENGTH} characters`;
  }
  return CUSTOMER_ID.test(customerId) && !/^\.+$/.test(customerId)
    ? undefined
    : 'may have only letters, digits and . _ ~ : @ + = - in its customer id, and not only dots';
}

function refuse(property: string, message: string | undefined): void {
  if (message !== undefined) throw new ServiceRequestError([{ property, message }]);
}
