import { type ServiceAuthService } from '../../auth/service-auth.service.js';
import { RESOURCES } from '../../config/resources.js';
import { type Resources } from '../../engine/resources.js';
import { type CertificateSummary } from '../../errors/index.js';
import {
  type HttpCallOptions,
  type HttpRequestOptions,
  type HttpResponse,
} from '../../http/service-http.service.js';
import { type LinkSdkService } from '../../link-sdk/link-sdk.service.js';
import { type IdentityStatus } from '../../tls/client-identity.js';

/** A function in place of a method: it gets the arguments of the call. */
export type DoubledMethod<Method extends (...args: never[]) => unknown> = (
  ...args: Parameters<Method>
) => Awaited<ReturnType<Method>> | ReturnType<Method>;

/** A function in place of each method of a resource. */
type ResourceDoubles = {
  [Name in keyof Resources]?: {
    [
      Method in (typeof RESOURCES)[Name]['methods'][number] & keyof Resources[Name]
    ]?: Resources[Name][Method] extends (...args: never[]) => unknown
      ? DoubledMethod<Resources[Name][Method]>
      : never;
  };
};

/** A function in place of a method of ServiceHttpService: it gets the path and what is sent there. */
export type DoubledRequest<Rest extends unknown[]> = (path: string, ...rest: Rest) => unknown;

/** A call of ServiceHttpService as its double sees it. */
export interface StubbedRequest {
  method: string;
  /** In lower case, without those that authenticate. */
  headers: Readonly<Record<string, string>>;
  /** The body; parsed where it is JSON. */
  data: unknown;
}

/** What `http.response` answers in a test. Default: status 200, or 204 without `data`, and the headers of JSON. */
export type StubbedResponse = Partial<Pick<HttpResponse, 'data' | 'status' | 'headers'>>;

/**
 * What the services answer in a test: a function in place of each method, with the method's own arguments. It may be a
 * mock of any test framework. It returns the answer or a promise, or throws; see `serviceErrors`. It is called when the
 * input has been checked. What is left out has an answer of its own in the form of docs/service.md.
 */
export interface ServiceDoubles extends ResourceDoubles {
  auth?: {
    getToken?: DoubledMethod<ServiceAuthService['getToken']>;
    getApiToken?: DoubledMethod<ServiceAuthService['getApiToken']>;
    getCustomerToken?: DoubledMethod<ServiceAuthService['getCustomerToken']>;
    authorizationHeaders?: DoubledMethod<ServiceAuthService['authorizationHeaders']>;
    reloadCertificate?: DoubledMethod<ServiceAuthService['reloadCertificate']>;
    invalidate?: (accessToken: string) => void;
    /** Default: none. */
    certificate?: CertificateSummary;
    /** Default: healthy, with `certificate`. */
    identityStatus?: IdentityStatus;
  };
  sdk?: { connectParameters?: DoubledMethod<LinkSdkService['connectParameters']> };
  http?: {
    get?: DoubledRequest<[options?: HttpCallOptions]>;
    delete?: DoubledRequest<[options?: HttpRequestOptions]>;
    post?: DoubledRequest<[data?: unknown, options?: HttpCallOptions]>;
    put?: DoubledRequest<[data?: unknown, options?: HttpCallOptions]>;
    patch?: DoubledRequest<[data?: unknown, options?: HttpCallOptions]>;
    /** `request()`, calls on `axiosRef` and `httpService`, and the methods above that are left out; path with query. */
    request?: DoubledRequest<[request: StubbedRequest]>;
    /** `response()`, which `request` answers where this is left out. */
    response?: (path: string, request: StubbedRequest) => StubbedResponse | PromiseLike<StubbedResponse>;
  };
}

export interface ServiceStubOptions extends ServiceDoubles {
  /** The answers of named modules, by name. They share none with the module without a name. */
  named?: Readonly<Record<string, ServiceDoubles>>;
  /** The answers of clients that ServiceClients makes, by their names. */
  clients?: Readonly<Record<string, ServiceDoubles>>;
}

/** One call of a double. */
export interface RecordedCall {
  /** `banks.list`, `customers.create`, `http.get`, ... */
  method: string;
  /** What it was called with. */
  args: readonly unknown[];
  /** The name of its module or client; absent for the module without a name. */
  module?: string;
}

/** The methods that are doubled and recorded. */
export const DOUBLED = {
  auth: [
    'getToken',
    'getApiToken',
    'getCustomerToken',
    'authorizationHeaders',
    'reloadCertificate',
    'invalidate',
  ],
  ...resourceMethods(),
  sdk: ['connectParameters'],
  http: ['request', 'response', 'get', 'delete', 'post', 'put', 'patch'],
} as const;

/** The services that are doubled. */
export type Doubled = keyof typeof DOUBLED;

/** The other keys of the doubles. */
const FURTHER_KEYS: Partial<Record<Doubled, readonly string[]>> = { auth: ['certificate', 'identityStatus'] };

function resourceMethods(): Record<keyof Resources, readonly string[]> {
  const entries = Object.entries(RESOURCES).map(([name, { methods }]) => [name, methods]);
  return Object.fromEntries(entries) as Record<keyof Resources, readonly string[]>;
}

/** @throws TypeError for a service or method that there is not, as a misspelt one would never be called; and for no function */
export function checkDoubles({ named, clients, ...doubles }: ServiceStubOptions): void {
  for (const [service, methods] of Object.entries(doubles)) {
    checkKey(service, Object.keys(DOUBLED), 'service');
    const keys = [...DOUBLED[service as Doubled], ...(FURTHER_KEYS[service as Doubled] ?? [])];
    for (const [method, double] of Object.entries((methods ?? {}) as Record<string, unknown>)) {
      checkKey(method, keys, `member of ${service}`);
      const isMethod = !FURTHER_KEYS[service as Doubled]?.includes(method);
      if (isMethod && double !== undefined && typeof double !== 'function') {
        throw new TypeError(
          `The double ${service}.${method} must be a function that returns the answer: ${method}: () => answer.`,
        );
      }
    }
  }
  for (const each of [named, clients].flatMap((all) => Object.values(all ?? {}))) checkDoubles(each);
}

function checkKey(key: string, known: readonly string[], what: string): void {
  if (known.includes(key)) return;
  throw new TypeError(
    `There is no ${what} called '${key}' that can be doubled. There are: ${known.join(', ')}.`,
  );
}
