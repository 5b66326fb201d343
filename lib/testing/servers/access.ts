import { type RecordedRequest } from '../request-log.js';
import { type SimulatedService } from '../simulated-service.js';
import { failure, nginxRefusal, type SimulatedAnswer } from './answer.js';
import { thumbprintOf } from './client-certificate.js';

/** Checks the credentials of a call (docs/service.md#authentication). Returns the refusal, or undefined if they are valid. */
export function checkAccess(
  request: RecordedRequest,
  service: SimulatedService,
): SimulatedAnswer | undefined {
  const authorization = request.headers.authorization;
  const appToken = request.headers[service.appTokenHeader.toLowerCase()];
  if (authorization === undefined && lacksCertificate(request)) {
    return nginxRefusal('No required SSL certificate was sent');
  }
  if (authorization === undefined) {
    if (request.face === 'oauth-base') return unauthorized('This address takes OAuth bearer tokens only');
    return checkAppToken(appToken, service);
  }
  if (appToken === undefined) return checkBearer(request, authorization, service);
  if (service.options.refuseBoth ?? true) {
    const words = `Do not supply a '${service.appTokenHeader}' header when providing an 'Authorization' header`;
    return failure(400, 'INVALID_PARAMETERS', words);
  }
  return checkBearer(request, authorization, service) ?? checkAppToken(appToken, service);
}

function checkAppToken(appToken: string | undefined, service: SimulatedService): SimulatedAnswer | undefined {
  if (appToken === undefined) {
    return failure(401, 'UNAUTHORIZED', `The header ${service.appTokenHeader} is missing`);
  }
  return appToken === service.appToken ? undefined : failure(403, 'FORBIDDEN', 'The app token is not valid');
}

/** {base_url} requires a client certificate for a call without a bearer token. */
function lacksCertificate(request: RecordedRequest): boolean {
  return request.face === 'base' && request.certificateFingerprint256 === undefined;
}

function checkBearer(
  request: RecordedRequest,
  authorization: string,
  service: SimulatedService,
): SimulatedAnswer | undefined {
  const token = /^Bearer ([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization)?.[1];
  if (token === undefined) return unauthorized('The Authorization header must be a bearer token');
  if (!service.oauthEnabled) return unauthorized('OAuth is not enabled for this application');
  const issued = service.issuer.verify(token, request.environment);
  if (!issued) return unauthorized('The access token is not valid');
  const { scope, certificateThumbprint } = issued;
  if (certificateThumbprint !== undefined && certificateThumbprint !== thumbprintOf(request)) {
    return unauthorized('The access token is bound to another client certificate');
  }
  if (scope !== 'api') {
    const challenge = { 'www-authenticate': 'Bearer error="insufficient_scope", scope="api"' };
    return failure(403, 'FORBIDDEN', 'The access token is not for the API', challenge);
  }
  return undefined;
}

function unauthorized(message: string): SimulatedAnswer {
  return failure(401, 'UNAUTHORIZED', message, { 'www-authenticate': 'Bearer error="invalid_token"' });
}
