import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceAuthService } from '../../auth/service-auth.service.js';
import { RESOURCES } from '../../config/names.js';
import { type ServiceModuleOptions } from '../../config/options.js';
import { createConfiguredClient, type StartableClient, systemIo } from '../../engine/create-client.js';
import { readConfiguration } from '../../engine/read-configuration.js';
import { type ExchangeRequest } from '../../exchange/io.js';
import { parseJson } from '../../exchange/response.js';
import { SILENT } from '../../telemetry/telemetry.js';
import { type IdentityStatus } from '../../tls/identity-source.js';
import { daysLeft } from '../../tls/certificate-summary.js';
import { readQuery } from '../route-table.js';
import {
  collectRoutes,
  DOUBLED,
  type DoubledService,
  type ServiceDoubles,
  type StubbedRequest,
} from './doubles.js';
import { exchangeDouble, type GivenAnswer } from './exchange-double.js';
import { answerForThrown } from './service-errors.js';

/** The doubles of one client, and the record of their calls. */
export interface ClientStub {
  doubles<Name extends DoubledService>(service: Name): NonNullable<ServiceDoubles[Name]>;
  record(method: string, args: readonly unknown[]): void;
  nextCustomer: () => number;
}

type ServiceMethod = (...args: unknown[]) => unknown;

/** The method call that is running. The exchange below it calls the test's function. */
interface RunningCall {
  service: DoubledService;
  method: string;
  /** Calls the test's double of this method, if there is one. */
  answer?: () => unknown;
}

const AUTH_HOST = 'auth.service.invalid';

/** The top-level domain `invalid` never resolves (RFC 2606), so even a mistake here could not reach a server. */
const OPTIONS: ServiceModuleOptions = {
  environment: 'sandbox',
  authentication: 'oauth',
  appToken: 'stub-app-token',
  urls: { sandboxUrl: 'https://service.invalid', sandboxAuthUrl: `https://${AUTH_HOST}` },
  oauth: { clientId: '5f0c3a52-9d1e-4b7a-8c46-2f7d0e9b1a35', clientSecret: 'not-used' },
  webhook: { secret: 'stub-webhook-secret' },
  // A test expects its function to be called once for each call.
  http: { retries: 0 },
};

/** Makes a complete client on an exchange without a network. Its methods record their calls and return what the doubles return. */
export async function makeStubbedClient(
  stub: ClientStub,
  name: string | undefined,
): Promise<StartableClient> {
  // The exchange calls the double of a method, so that everything between method and exchange is the real code.
  const running = new AsyncLocalStorage<RunningCall | undefined>();
  const exchange = exchangeDouble(async (request) => {
    if (request.url.hostname === AUTH_HOST) return { data: makeTokenAnswer(request) };
    const call = running.getStore();
    try {
      // A double may itself call other services, which must count as separate calls.
      return await running.run(undefined, () => answerWithDouble(request, call, stub));
    } catch (error) {
      return answerForThrown(error);
    }
  });
  // Messages name the SERVICE_* variables of options, but none is read.
  const sources = { name, given: OPTIONS, readVariable: () => undefined };
  const read = await readConfiguration(sources, SILENT);
  const io = { ...systemIo(SILENT), exchange, pause: () => Promise.resolve() };
  const client = createConfiguredClient(read, io, 'Doubles');
  for (const [service, names] of Object.entries(DOUBLED) as [DoubledService, readonly string[]][]) {
    const methods = client[service] as unknown as Record<string, ServiceMethod>;
    for (const method of names) methods[method] = wrapMethod(service, method, methods[method].bind(methods));
  }
  defineStatusGetters(client.auth, stub);
  return client;

  function wrapMethod(service: DoubledService, method: string, run: ServiceMethod): ServiceMethod {
    return (...args) => {
      // `banks.list` calls `http.get`. Only the outer call is recorded.
      if (service === 'http' && running.getStore()) return run(...args);
      stub.record(`${service}.${method}`, args);
      const given = (stub.doubles(service) as Record<string, ServiceMethod | undefined>)[method];
      // The doubles of `request` and `response` receive the request and not the arguments: answerWithDouble() calls them.
      const isByRequest = service === 'http' && (method === 'request' || method === 'response');
      const answer = given && !isByRequest ? () => given(...args) : undefined;
      if (service !== 'auth' && service !== 'sdk' && service !== 'webhooks') {
        return running.run({ service, method, answer }, run, ...args);
      }
      const usual = run(...args);
      if (!answer) return usual;
      return usual instanceof Promise ? usual.then(answer) : answer();
    };
  }
}

/** Responds to a request with the double of its route or method, or else with the default response. */
async function answerWithDouble(
  { method, url, headers, body }: ExchangeRequest,
  call: RunningCall | undefined,
  stub: ClientStub,
): Promise<GivenAnswer> {
  const path = url.pathname + url.search;
  const { authorization: _, 'user-agent': __, ...shown } = headers;
  const data = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  const request = { method, headers: shown, data };
  // Without a running call, the request was made through axiosRef or httpService.
  if (!call) stub.record('http.request', [path, request]);
  const given = call && call.service !== 'http' ? {} : stub.doubles('http');
  const routes = collectRoutes(given);
  const found = routes.find(method, url.pathname);
  if (found) {
    const { value, pathParams } = found;
    return { data: await value({ ...request, path, pathParams, params: readQuery(url.search) }) };
  }
  if (call?.answer) return { data: await call.answer() };
  if (given.response && call?.method === 'response') return given.response(path, request);
  if (given.request) return { data: await given.request(path, request) };
  const { known } = routes;
  if (known.length > 0) {
    throw new TypeError(
      `There is no double for ${method} ${url.pathname}. There are doubles for: ${known.join(', ')}.`,
    );
  }
  return { data: defaultAnswer(url.pathname, request, stub.nextCustomer) };
}

/** Replaces the properties of `auth` that show the certificate and the token. */
function defineStatusGetters(auth: ServiceAuthService, stub: ClientStub): void {
  const state = (): IdentityStatus => {
    const { certificate, identityStatus } = stub.doubles('auth');
    const days = certificate && { certificate, daysLeft: daysLeft(certificate, Date.now()) };
    return identityStatus ?? { healthy: true, ...days };
  };
  const tokenStatus = (): unknown => Reflect.get(ServiceAuthService.prototype, 'apiTokenStatus', auth);
  Object.defineProperties(auth, {
    certificate: { get: () => stub.doubles('auth').certificate },
    identityStatus: { get: state },
    // A health check looks here first and requests a token only if there is none. So a test's getApiToken() is called.
    apiTokenStatus: { get: () => (stub.doubles('auth').getApiToken ? undefined : tokenStatus()) },
  });
}

/** The token endpoint's response (docs/service.md#tokens), with a token that is not valid at any service. */
function makeTokenAnswer({ body = '' }: ExchangeRequest): object {
  const scope = new URLSearchParams(Buffer.from(body).toString()).get('scope');
  return { access_token: `stub-token.${scope}`, token_type: 'bearer', expires_in: 3_600, scope };
}

/** The response to a call for which the test has no double: like the service's (docs/service.md#calls). */
function defaultAnswer(
  pathname: string,
  { method, data }: StubbedRequest,
  nextCustomer: () => number,
): unknown {
  switch (`${method} ${pathname.replace(/\/$/, '')}`) {
    case `GET ${RESOURCES.banks}`:
      return ['Alpha', 'Birch'].map((name) => ({
        bank_identifier: `${name.toUpperCase()}_BANK`,
        name: `${name} Bank`,
      }));
    case `POST ${RESOURCES.customers}`:
      return { customer_id: `customer-${nextCustomer()}`, ...(data as object) };
    default:
      return {};
  }
}
