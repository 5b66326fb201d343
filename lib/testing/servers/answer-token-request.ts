import { type RecordedRequest } from '../request-log.js';
import { type SimulatedService } from '../simulated-service.js';
import { failure, type SimulatedAnswer } from './answer.js';
import { thumbprintOf } from './client-certificate.js';

const FORM = 'application/x-www-form-urlencoded';
const NO_STORE = { 'cache-control': 'no-store', pragma: 'no-cache' };

/** Answers POST /oauth2/token (docs/service.md#tokens). Errors follow RFC 6749, 5.2. */
export function answerTokenRequest(
  request: RecordedRequest,
  path: string,
  service: SimulatedService,
): SimulatedAnswer {
  if (path.split('?')[0] !== '/oauth2/token')
    return failure(404, 'NOT_FOUND', 'The token endpoint is /oauth2/token');
  if (request.method !== 'POST') {
    return failure(405, 'METHOD_NOT_ALLOWED', 'The token endpoint takes POST', { allow: 'POST' });
  }
  if (mediaType(request) !== FORM) return refuse(400, 'invalid_request', `The content type must be ${FORM}`);

  const fields = new URLSearchParams(request.body);
  for (const name of ['client_id', 'client_secret', 'grant_type', 'scope']) {
    const values = fields.getAll(name);
    if (values.length > 1) return refuse(400, 'invalid_request', `${name} must not be repeated`);
    if (!values[0]) return refuse(400, 'invalid_request', `${name} is missing`);
  }
  const known = fields.get('client_id') === service.clientId;
  if (!known || fields.get('client_secret') !== service.clientSecret) {
    return refuse(401, 'invalid_client', 'Unknown client or wrong client secret');
  }
  if (!service.oauthEnabled)
    return refuse(400, 'unauthorized_client', 'OAuth is not enabled for this application');
  if (fields.get('grant_type') !== 'client_credentials') {
    return refuse(400, 'unsupported_grant_type', 'grant_type must be client_credentials');
  }
  const scope = fields.get('scope') ?? '';
  if (!/^(api|customer\..+)$/.test(scope))
    return refuse(400, 'invalid_scope', 'scope must be api or customer.<customer_id>');

  const { tokenLifetime: lifetime } = service;
  const accessToken = service.issuer.issue({
    environment: request.environment,
    clientId: service.clientId,
    scope,
    lifetime,
    certificateThumbprint: service.options.certificateBoundTokens ? thumbprintOf(request) : undefined,
  });
  const json = { access_token: accessToken, token_type: 'bearer', expires_in: lifetime, scope };
  return { status: 200, headers: NO_STORE, json };
}

function mediaType(request: RecordedRequest): string {
  return (request.headers['content-type'] ?? '').split(';')[0].trim().toLowerCase();
}

function refuse(status: 400 | 401, error: string, description: string): SimulatedAnswer {
  return { status, headers: NO_STORE, json: { error, error_description: description } };
}
