import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceAuthService } from '../../auth/service-auth.service.js';
import { type ServiceModuleOptions } from '../../config/options.js';
import { type StartableClient, systemIo } from '../../engine/create-client.js';
import { createConfiguredClient } from '../../engine/create-client.js';
import { readConfiguration } from '../../engine/read-configuration.js';
import { parseJson } from '../../exchange/decode.js';
import { type ExchangeRequest } from '../../exchange/exchange.types.js';
import { SILENT } from '../../exchange/io.js';
import { type IdentityStatus } from '../../tls/client-identity.js';
import { daysLeft } from '../../tls/certificate-summary.js';
import { readQuery } from '../route-table.js';
import { defaultAnswer } from './default-answers.js';
import { DOUBLED, type Doubled, routesOf, type ServiceDoubles } from './doubles.js';
import { exchangeDouble, type GivenAnswer } from './exchange-double.js';
import { answerOf } from './service-errors.js';

/** What the doubles of one client answer, and where their calls are recorded. */
export interface ClientStub {
  /** What a test has given for a service. */
  doubles<Name extends Doubled>(service: Name): NonNullable<ServiceDoubles[Name]>;
  record(method: string, args: readonly unknown[]): void;
  nextCustomer: () => number;
}

type Method = (...args: unknown[]) => unknown;

/** A call of a double that is under way, for the exchange below it. */
interface RunningCall {
  service: Doubled;
  method: string;
  /** What a test gave for this method. */
  answer?: () => unknown;
}

const AUTH_HOST = 'auth.service.invalid';

/** Nobody listens there: names that no DNS resolves (RFC 2606). */
const OPTIONS: ServiceModuleOptions = {
  environment: 'sandbox',
  authentication: 'oauth',
  appToken: 'stub-app-token',
  urls: { sandboxUrl: 'https://service.invalid', sandboxAuthUrl: `https://${AUTH_HOST}` },
  oauth: { clientId: '5f0c3a52-9d1e-4b7a-8c46-2f7d0e9b1a35', clientSecret: 'not-used' },
  webhook: { secret: 'stub-webhook-secret' },
  // The function of a test is called once for each call.
  http: { retries: 0 },
};

/** A whole client over a network that is not there. Its methods record their calls, and answer by the doubles. */
export async function stubbedClient(stub: ClientStub, name: string | undefined): Promise<StartableClient> {
  // A method's own function is called by the exchange, so that all between is what it is in real life.
  const running = new AsyncLocalStorage<RunningCall | undefined>();
  const exchange = exchangeDouble(async (request) => {
    if (request.url.hostname === AUTH_HOST) return { data: tokenFor(request) };
    const call = running.getStore();
    try {
      // The function of a host may call doubles in turn: these are calls of their own.
      return await running.run(undefined, () => answerTo(request, call, stub));
    } catch (error) {
      return answerOf(error);
    }
  });
  // Errors name variables, and none is read.
  const sources = { name, given: OPTIONS, readVariable: () => undefined };
  const read = await readConfiguration(sources, SILENT);
  const client = createConfiguredClient(read, { ...systemIo(SILENT), exchange }, 'Doubles');
  for (const [service, names] of Object.entries(DOUBLED) as [Doubled, readonly string[]][]) {
    const methods = client[service] as unknown as Record<string, Method>;
    for (const method of names) methods[method] = doubled(service, method, methods[method].bind(methods));
  }
  doubleStates(client.auth, stub);
  return client;

  function doubled(service: Doubled, method: string, run: Method): Method {
    return (...args) => {
      // A part of the call that is recorded: `banks.list` calls `http.get`.
      if (service === 'http' && running.getStore()) return run(...args);
      stub.record(`${service}.${method}`, args);
      const given = (stub.doubles(service) as Record<string, Method | undefined>)[method];
      // Those of `request` and `response` get the request, not the arguments.
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

/** The answer to a request whose input was checked. */
async function answerTo(
  { method, url, headers, body }: ExchangeRequest,
  call: RunningCall | undefined,
  stub: ClientStub,
): Promise<GivenAnswer> {
  const path = url.pathname + url.search;
  const { authorization: _, 'user-agent': __, ...shown } = headers;
  const data = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  const request = { method, headers: shown, data };
  // Called on axiosRef or httpService.
  if (!call) stub.record('http.request', [path, request]);
  const given = call && call.service !== 'http' ? {} : stub.doubles('http');
  const routes = routesOf(given);
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
    throw new TypeError(`There is no double for ${method} ${url.pathname}. There are: ${known.join(', ')}.`);
  }
  return { data: defaultAnswer(url.pathname, request, stub.nextCustomer) };
}

/** What `auth` tells of certificate and token. */
function doubleStates(auth: ServiceAuthService, stub: ClientStub): void {
  const state = (): IdentityStatus => {
    const { certificate, identityStatus } = stub.doubles('auth');
    const days = certificate && { certificate, daysLeft: daysLeft(certificate, Date.now()) };
    return identityStatus ?? { healthy: true, ...days };
  };
  const tokenStatus = (): unknown => Reflect.get(ServiceAuthService.prototype, 'apiTokenStatus', auth);
  Object.defineProperties(auth, {
    certificate: { get: () => stub.doubles('auth').certificate },
    identityStatus: { get: state },
    // Health checks ask the double of a test, if there is one.
    apiTokenStatus: { get: () => (stub.doubles('auth').getApiToken ? undefined : tokenStatus()) },
  });
}

/** A token that no service knows (docs/service.md#tokens), good for an hour. */
function tokenFor({ body = '' }: ExchangeRequest): object {
  const scope = new URLSearchParams(Buffer.from(body).toString()).get('scope');
  return { access_token: `stub-token.${scope}`, token_type: 'bearer', expires_in: 3_600, scope };
}
