import { ServiceRequestError } from '../errors/index.js';

/** The scope of backend calls (specification 5.4.2). */
export const API_SCOPE = 'api';

const CUSTOMER_PREFIX = 'customer.';
const LONGEST_CUSTOMER_ID = 128;

/**
 * The characters of a UUID, an e-mail address, a URN or base64url: each is allowed in a scope-token (RFC 6749, 3.3)
 * and none of them separates scopes, paths, fields or header values.
 */
const CUSTOMER_ID = /^[A-Za-z0-9._~:@+=-]+$/;

/**
 * `customer.<customer_id>` (specification 5.4.2).
 * @throws ServiceRequestError where the id is no text of 1 to 128 characters out of `A-Z a-z 0-9 . _ ~ : @ + = -`, or
 * only dots. A space would ask for a second scope, a slash or dots could lead out of a path.
 */
export function customerScope(customerId: string): string {
  return CUSTOMER_PREFIX + checkCustomerId(customerId, 'customer_id');
}

/**
 * @returns the scope, where it is `api` or `customer.<customer_id>`.
 * @throws ServiceRequestError for every other one.
 */
export function checkScope(scope: string): string {
  if (scope === API_SCOPE) return scope;
  if (typeof scope !== 'string' || !scope.startsWith(CUSTOMER_PREFIX)) {
    throw refused('scope', 'must be api or customer.<customer_id>');
  }
  checkCustomerId(scope.slice(CUSTOMER_PREFIX.length), 'scope');
  return scope;
}

/** The customer id of a checked scope; undefined for `api`. */
export function customerIdOf(scope: string): string | undefined {
  return scope === API_SCOPE ? undefined : scope.slice(CUSTOMER_PREFIX.length);
}

function checkCustomerId(customerId: string, property: string): string {
  if (typeof customerId !== 'string' || customerId === '') throw refused(property, 'must name a customer');
  if (customerId.length > LONGEST_CUSTOMER_ID) {
    throw refused(property, `must have a customer id of at most ${LONGEST_CUSTOMER_ID} characters`);
  }
  if (!CUSTOMER_ID.test(customerId) || /^\.+$/.test(customerId)) {
    throw refused(
      property,
      'may have only letters, digits and . _ ~ : @ + = - in its customer id, and not only dots',
    );
  }
  return customerId;
}

function refused(property: string, message: string): ServiceRequestError {
  return new ServiceRequestError([{ property, message }]);
}
