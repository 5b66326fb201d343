import axios, { Axios, type AxiosInstance, type CreateAxiosDefaults } from 'axios';
import { ServiceApiError } from '../errors/index.js';
import { PastAxios } from './call.js';
import { CallObserver } from './call-observer.js';
import { CallRunner } from './call-runner.js';
import { type CallAuthenticator, type ClientContext } from './client-context.js';
import { callPreparer } from './prepare-call.js';
import { RetryBudget } from './retry-policy.js';
import { serviceAdapter } from './service-adapter.js';

/**
 * Makes the module's own axios instance, with everything behind it; the host's is not touched. It has none of axios's
 * defaults, which a host may have changed for its calls of other services (`baseURL`, headers): this module has its own
 * time limit, makes and reads the JSON, and checks the status itself. A host can set defaults of this instance.
 */
export function createServiceAxios(
  client: ClientContext,
  authenticator: CallAuthenticator,
  budget = new RetryBudget(),
): AxiosInstance {
  const observer = new CallObserver(client);
  const runner = new CallRunner(client, authenticator, budget, observer);
  const adapter = serviceAdapter(client, runner, observer);
  // Ours runs last. A host may have changed that for all of its instances.
  const transitional = { legacyInterceptorReqResOrdering: true };
  const made = newAxios({ adapter, transitional, headers: headersByMethod() });
  // A synchronous one saves 3 us of a call. Axios 1.13 wants a second function if one throws.
  made.interceptors.request.use(callPreparer(client, adapter), rethrow, { synchronous: true });
  made.interceptors.response.use(undefined, (error: unknown) => {
    throw error instanceof PastAxios && error.reason instanceof ServiceApiError ? error.reason : error;
  });
  return asInstance(made);
}

const MOCKED =
  "nestjs-service got a mock in place of axios, probably by jest.mock('axios'), and cannot work with it. Remove that mock: stubService() of nestjs-service/testing answers without a network. To mock your own calls, use jest.spyOn(axios, 'get') and the like.";

/** @throws TypeError if a test has mocked axios: jest replaces it in this package too */
function newAxios(config: ConstructorParameters<typeof Axios>[0]): Axios {
  const made = typeof Axios === 'function' ? new Axios(config) : undefined;
  // A class that jest has mocked sets no fields.
  if (made?.interceptors as unknown) return made as Axios;
  throw new TypeError(MOCKED);
}

function rethrow(error: unknown): never {
  throw error;
}

/** For a host's own default headers. */
function headersByMethod(): object {
  const methods = ['common', 'delete', 'get', 'head', 'post', 'put', 'patch'];
  return Object.fromEntries(methods.map((name) => [name, {}]));
}

type Method = (...given: unknown[]) => Promise<unknown>;

/** Like axios.create(): a function that also has the methods. */
function asInstance(made: Axios): AxiosInstance {
  const { defaults, interceptors } = made;
  const send = made.request.bind(made) as Method;
  // The methods call it too.
  const request: Method = async (...given) => {
    try {
      return await send(...given);
    } catch (error) {
      throw error instanceof PastAxios ? error.reason : error;
    }
  };
  made.request = request as never;
  const names = Object.getOwnPropertyNames(Axios.prototype).filter((name) => name !== 'constructor');
  const methods = names.map((name) => [name, (made[name as 'request'] as Method).bind(made)]);
  const create = (config?: CreateAxiosDefaults): AxiosInstance =>
    axios.create({ ...(defaults as CreateAxiosDefaults), ...config });
  return Object.assign(request, Object.fromEntries(methods), { defaults, interceptors, create }) as never;
}
