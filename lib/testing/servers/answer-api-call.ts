import { randomUUID } from 'node:crypto';
import { RESOURCE_NAMES, type ResourceName, RESOURCES } from '../../config/names.js';
import { isJsonObject } from '../../exchange/response.js';
import { type RecordedRequest } from '../request-log.js';
import { readQuery, type RequestQuery } from '../route-table.js';
import { type SimulatedService } from '../simulated-service.js';
import { failure, nginxRefusal, type SimulatedAnswer } from './answer.js';
import { thumbprintOf } from './client-certificate.js';

/** For each resource, the method that its collection accepts, and the function that makes the response. */
const ANSWERS: Readonly<Record<ResourceName, ResourceAnswer>> = {
  banks: { method: 'GET', answer: listBanks },
  customers: { method: 'POST', answer: createCustomer },
};

interface ResourceAnswer {
  method: string;
  answer: (service: SimulatedService, request: RecordedRequest) => SimulatedAnswer;
}

/** Answers an authenticated call. A trailing slash is ignored, because the service's documentation uses both spellings. */
export function answerApiCall(
  request: RecordedRequest,
  path: string,
  service: SimulatedService,
): SimulatedAnswer | Promise<SimulatedAnswer> {
  // Not parsed with URL, which would turn //elsewhere/banks/v1 and /x/../banks/v1 into /banks/v1.
  const [, pathname = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(path) ?? [];
  const params = readQuery(query);
  const resource = pathname.replace(/\/$/, '');
  const own = service.answers.find(request, pathname, params, service.users[request.environment]);
  if (own) return own;
  // HEAD gets the response of GET: node:http leaves the body out.
  if (request.method === 'HEAD') return answerApiCall({ ...request, method: 'GET' }, path, service);
  const name = RESOURCE_NAMES.find((each) => RESOURCES[each] === resource);
  if (name !== undefined) return answerResource(ANSWERS[name], request, service);
  if (resource === '/echo/v1' || resource.startsWith('/echo/v1/')) {
    return echo(request, pathname, params, service);
  }
  const methods = service.answers.methodsAt(pathname);
  if (methods.length > 0) return wrongMethod(methods);
  return failure(404, 'NOT_FOUND', `There is nothing at ${request.method} ${pathname}`);
}

function answerResource(
  { method, answer }: ResourceAnswer,
  request: RecordedRequest,
  service: SimulatedService,
): SimulatedAnswer {
  if (request.method === method) return answer(service, request);
  return wrongMethod([method]);
}

function wrongMethod(allowed: readonly string[]): SimulatedAnswer {
  const allow = allowed.join(', ');
  return failure(405, 'METHOD_NOT_ALLOWED', `This resource takes ${allow}`, { allow });
}

function createCustomer(service: SimulatedService, request: RecordedRequest): SimulatedAnswer {
  if (!isJsonObject(request.json))
    return failure(400, 'INVALID_PARAMETERS', 'The body must be a JSON object');
  const appUserId = request.json.app_user_id;
  if (typeof appUserId !== 'string' || appUserId === '') {
    return failure(400, 'INVALID_PARAMETERS', 'app_user_id is missing');
  }
  const users = service.users[request.environment];
  if (users.has(appUserId)) {
    return failure(409, 'CUSTOMER_ALREADY_EXISTS', 'There is a customer with this app_user_id');
  }
  const customer = {
    customer_id: randomUUID(),
    app_user_id: appUserId,
    created_at: new Date().toISOString(),
  };
  users.set(appUserId, customer);
  service.customers.push(customer);
  return { status: 201, json: customer };
}

function echo(
  request: RecordedRequest,
  pathname: string,
  query: RequestQuery,
  service: SimulatedService,
): SimulatedAnswer {
  const status = Number(query.status ?? 200);
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    return failure(400, 'INVALID_PARAMETERS', 'status must be an HTTP status from 200 to 599');
  }
  if (status >= 400) return failure(status, `ECHO_${status}`, `Status ${status} was asked for`);
  const { method, body, json, form, face, environment, certificateSubject } = request;
  const hidden = ['authorization', service.appTokenHeader.toLowerCase()];
  const shown = Object.entries(request.headers).filter(([name]) => !hidden.includes(name));
  const echoed = {
    method,
    path: pathname,
    query,
    headers: Object.fromEntries(shown),
  };
  return { status, json: { ...echoed, body, json, form, face, environment, certificateSubject } };
}

function listBanks({ options }: SimulatedService): SimulatedAnswer {
  return { status: 200, json: options.banks ?? DEFAULT_BANKS };
}

const NAMES = ['Alpha', 'Birch', 'Cedar', 'Delta', 'Ember', 'Fjord', 'Grove', 'Harbour', 'Island', 'Juniper'];
const DEFAULT_BANKS = NAMES.map((name, index) => ({
  bank_identifier: `${name.toUpperCase()}_BANK`,
  name: `${name} Bank`,
  country: 'XX',
  bic: `${name.slice(0, 4).toUpperCase()}XX${String(index).padStart(2, '0')}`,
  logo: `https://assets.example/banks/${name.toLowerCase()}.svg`,
}));

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
