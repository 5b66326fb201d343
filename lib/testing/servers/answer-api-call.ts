import { randomUUID } from 'node:crypto';
import { type RecordedRequest } from '../request-log.js';
import { type Answer, failure } from './answer.js';

/** A customer created on the simulator. */
export interface SimulatedCustomer {
  customer_id: string;
  app_user_id: string;
  created_at: string;
}

interface ApiOptions {
  banks: unknown;
  /** Created customers are added to it. */
  customers: SimulatedCustomer[];
  /** Headers with credentials, in lower case. /echo/v1 leaves them out. */
  hiddenHeaders: readonly string[];
}

/** Answers an authenticated call. A trailing slash is ignored: both spellings are in the specification. */
export function answerApiCall(request: RecordedRequest, path: string, options: ApiOptions): Answer {
  const { pathname, searchParams } = new URL(path, 'https://service');
  const resource = pathname.replace(/\/$/, '');
  if (resource === '/customers/v1') return only('POST', request, () => createCustomer(request, options));
  if (resource === '/banks/v1') return only('GET', request, () => ({ status: 200, json: options.banks }));
  if (resource === '/echo/v1' || resource.startsWith('/echo/v1/')) {
    return echo(request, pathname, searchParams, options);
  }
  return failure(404, 'NOT_FOUND', `There is nothing at ${request.method} ${pathname}`);
}

function only(method: string, request: RecordedRequest, answer: () => Answer): Answer {
  if (request.method === method) return answer();
  return failure(405, 'METHOD_NOT_ALLOWED', `This resource takes ${method}`, { allow: method });
}

function createCustomer(request: RecordedRequest, { customers }: ApiOptions): Answer {
  const payload = request.json;
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    return failure(400, 'BAD_REQUEST', 'The body must be a JSON object');
  }
  const appUserId = 'app_user_id' in payload ? payload.app_user_id : undefined;
  if (typeof appUserId !== 'string' || appUserId === '') {
    return failure(400, 'BAD_REQUEST', 'app_user_id is missing');
  }
  const customer = {
    customer_id: randomUUID(),
    app_user_id: appUserId,
    created_at: new Date().toISOString(),
  };
  customers.push(customer);
  return { status: 201, json: customer };
}

function echo(
  request: RecordedRequest,
  pathname: string,
  query: URLSearchParams,
  options: ApiOptions,
): Answer {
  const status = Number(query.get('status') ?? 200);
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    return failure(400, 'BAD_REQUEST', 'status must be an HTTP status from 200 to 599');
  }
  if (status >= 400) return failure(status, `ECHO_${status}`, `Status ${status} was asked for`);
  const { method, body, json, form, face, environment, certificateSubject } = request;
  const shown = Object.entries(request.headers).filter(([name]) => !options.hiddenHeaders.includes(name));
  const echoed = {
    method,
    path: pathname,
    query: Object.fromEntries(query),
    headers: Object.fromEntries(shown),
  };
  return { status, json: { ...echoed, body, json, form, face, environment, certificateSubject } };
}

/** The banks of GET /banks/v1, if the test has none of its own. */
export function defaultBanks(): readonly Record<string, string>[] {
  const names = [
    'Alpha',
    'Birch',
    'Cedar',
    'Delta',
    'Ember',
    'Fjord',
    'Grove',
    'Harbour',
    'Island',
    'Juniper',
  ];
  return names.map((name, index) => ({
    bank_identifier: `${name.toUpperCase()}_BANK`,
    name: `${name} Bank`,
    country: 'XX',
    bic: `${name.slice(0, 4).toUpperCase()}XX${String(index).padStart(2, '0')}`,
    logo: `https://assets.example/banks/${name.toLowerCase()}.svg`,
  }));
}
