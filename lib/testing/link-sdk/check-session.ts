import { isJsonObject } from '../../exchange/json.js';
import { type ServiceEnvironment } from '../../config/options.js';
import { type RegisteredApplication } from '../application.js';
import { type TokenIssuer } from '../token-issuer.js';

export interface SessionCheckParts {
  application: RegisteredApplication;
  issuer: TokenIssuer;
  oauthEnabled: boolean;
}

/** A session that may begin: what the customer is asked for. */
interface LinkSession {
  customer_id: string;
  permissions: string[];
  bank_identifier?: string;
}

/**
 * Whether a session may begin with these parameters of `Service.connect()` (specification 2.4, 5.1.3, 5.4.8).
 * Resolves to the session, or to the reason of the refusal in words.
 */
export function checkSession(
  parameters: unknown,
  environment: ServiceEnvironment,
  parts: SessionCheckParts,
): LinkSession | string {
  if (!isJsonObject(parameters)) return 'The parameters must be an object.';
  const { customer_id, permissions, bank_identifier } = parameters;
  if (!isText(customer_id)) return 'customer_id is missing.';
  if (!Array.isArray(permissions) || permissions.length === 0 || !permissions.every(isText)) {
    return 'permissions must name at least one permission.';
  }
  if (bank_identifier !== undefined && !isText(bank_identifier)) return 'bank_identifier must be a text.';
  const refusal = credentialRefusal(parameters, customer_id, environment, parts);
  return (
    refusal ?? { customer_id, permissions: [...permissions], ...(bank_identifier && { bank_identifier }) }
  );
}

function credentialRefusal(
  { access_token, app_token }: Record<string, unknown>,
  customerId: string,
  environment: ServiceEnvironment,
  { application, issuer, oauthEnabled }: SessionCheckParts,
): string | undefined {
  if (app_token !== undefined && app_token !== application.appToken) return 'The app token is not valid.';
  if (access_token === undefined && oauthEnabled) {
    return app_token === undefined
      ? 'access_token is missing.'
      : 'OAuth is enabled for this application: a session needs an access token, not the app token alone.';
  }
  if (access_token === undefined) return app_token === undefined ? 'app_token is missing.' : undefined;
  if (!oauthEnabled) return 'OAuth is not enabled for this application.';
  if (!isText(access_token)) return 'access_token must be a text.';
  const claims = issuer.verify(access_token, environment);
  if (claims === 'expired') return 'The access token has expired.';
  if (typeof claims === 'string') return 'The access token is not valid.';
  if (claims.scope === 'api') {
    return 'The access token is for the API. A session needs a customer token, which the backend requests for one customer.';
  }
  return claims.scope === `customer.${customerId}` ? undefined : 'The access token is for another customer.';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
