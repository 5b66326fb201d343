import { type AccessToken } from '../../auth/index.js';
import { type StubbedRequest } from './doubles.js';

const TOKEN_LIFETIME_MS = 3_600_000;

/** What a call brings where a test gives no answer (specification 4). */
export function defaultAnswer(
  pathname: string,
  { method, data }: StubbedRequest,
  nextCustomer: () => number,
): unknown {
  const resource = `${method} ${pathname.replace(/\/$/, '')}`;
  if (resource === 'GET /banks/v1') {
    return [
      { bank_identifier: 'ALPHA_BANK', name: 'Alpha Bank' },
      { bank_identifier: 'BIRCH_BANK', name: 'Birch Bank' },
    ];
  }
  if (resource === 'POST /customers/v1') {
    return { customer_id: `customer-${nextCustomer()}`, ...(data as object) };
  }
  return {};
}

/** A token that no service knows (specification 2.2), good for an hour. */
export function defaultToken(scope: string): AccessToken {
  const expiresAt = new Date(Date.now() + TOKEN_LIFETIME_MS);
  return { accessToken: `stub-token.${scope}`, tokenType: 'bearer', scope, expiresAt };
}
