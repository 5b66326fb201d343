import { readFileSync } from 'node:fs';
import { type ServiceEnvironment } from '../../config/options.js';
import { isJsonObject } from '../../exchange/decode.js';
import { type RecordedRequest } from '../request-log.js';
import { failure, type SimulatedAnswer } from '../servers/answer.js';
import { type SimulatedService } from '../simulated-service.js';

const SCRIPT = '/link-sdk.js';
const SESSIONS = '/link-sdk/sessions';

/** A page of any origin may use the SDK; no cookie is needed. */
const CORS = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'content-type' };

/** What the browser asks the service for; undefined if the path is not of the SDK. */
export function answerLinkSdk(
  { method, environment, json }: RecordedRequest,
  path: string,
  service: SimulatedService,
): SimulatedAnswer | undefined {
  const [pathname] = path.split('?');
  if (pathname === SCRIPT && method === 'GET') {
    const headers = { ...CORS, 'content-type': 'text/javascript; charset=utf-8' };
    return { status: 200, headers, body: readFileSync(new URL('./link-sdk.js', import.meta.url), 'utf8') };
  }
  if (pathname !== SESSIONS) return undefined;
  if (method === 'OPTIONS') return { status: 204, headers: CORS };
  if (method !== 'POST') {
    return failure(405, 'METHOD_NOT_ALLOWED', 'This resource takes POST', { ...CORS, allow: 'POST' });
  }
  const session = checkSession(json, environment, service);
  return typeof session === 'string'
    ? failure(403, 'SESSION_REFUSED', session, CORS)
    : { status: 201, headers: CORS, json: session };
}

/** A session that may begin: what the customer is asked for. */
interface LinkSession {
  customer_id: string;
  permissions: string[];
  bank_identifier?: string;
}

/**
 * Whether a session may begin with these parameters of `Service.connect()` (docs/service.md#linksdk-parameters).
 * Resolves to the session, or to the reason of the refusal in words.
 */
function checkSession(
  parameters: unknown,
  environment: ServiceEnvironment,
  service: SimulatedService,
): LinkSession | string {
  if (!isJsonObject(parameters)) return 'The parameters must be an object.';
  const { customer_id, permissions, bank_identifier } = parameters;
  if (!isText(customer_id)) return 'customer_id is missing.';
  if (!Array.isArray(permissions) || permissions.length === 0 || !permissions.every(isText)) {
    return 'permissions must name at least one permission.';
  }
  if (bank_identifier !== undefined && !isText(bank_identifier)) return 'bank_identifier must be a text.';
  const refusal = credentialRefusal(parameters, customer_id, environment, service);
  return (
    refusal ?? { customer_id, permissions: [...permissions], ...(bank_identifier && { bank_identifier }) }
  );
}

function credentialRefusal(
  { access_token, app_token }: Record<string, unknown>,
  customerId: string,
  environment: ServiceEnvironment,
  { appToken, issuer, oauthEnabled }: SimulatedService,
): string | undefined {
  if (app_token !== undefined && app_token !== appToken) return 'The app token is not valid.';
  if (access_token === undefined && oauthEnabled) {
    return app_token === undefined
      ? 'access_token is missing.'
      : 'OAuth is enabled for this application: a session needs an access token, not the app token alone.';
  }
  if (access_token === undefined) return app_token === undefined ? 'app_token is missing.' : undefined;
  if (!oauthEnabled) return 'OAuth is not enabled for this application.';
  if (!isText(access_token)) return 'access_token must be a text.';
  const issued = issuer.verify(access_token, environment);
  if (!issued) return 'The access token is not valid, or has expired.';
  if (issued.scope === 'api') {
    return 'The access token is for the API. A session needs a customer token, which the backend requests for one customer.';
  }
  return issued.scope === `customer.${customerId}` ? undefined : 'The access token is for another customer.';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
