import { type ServiceAuthService } from '../../auth/index.js';
import { type BanksService } from '../../banks/banks.service.js';
import { type CustomersService } from '../../customers/customers.service.js';
import { type CertificateSummary } from '../../errors/index.js';
import { type HttpCallOptions, type HttpRequestOptions } from '../../http/service-http.service.js';
import { type LinkSdkService } from '../../link-sdk/link-sdk.service.js';
import { type IdentityStatus } from '../../tls/index.js';

/** A function in place of a method: it gets the arguments of the call. */
export type DoubledMethod<Method extends (...args: never[]) => unknown> = (
  ...args: Parameters<Method>
) => Awaited<ReturnType<Method>> | ReturnType<Method>;

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

/**
 * What the services answer in a test: a function in place of each method, with the method's own arguments. It may be a
 * mock of any test framework. It returns the answer or a promise, or throws; see `serviceErrors`. It is called when the
 * input has been checked. What is left out has an answer of its own in the form of the specification.
 */
export interface ServiceDoubles {
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
  banks?: { list?: DoubledMethod<BanksService['list']> };
  customers?: { create?: DoubledMethod<CustomersService['create']> };
  sdk?: { connectParameters?: DoubledMethod<LinkSdkService['connectParameters']> };
  http?: {
    get?: DoubledRequest<[options?: HttpCallOptions]>;
    delete?: DoubledRequest<[options?: HttpRequestOptions]>;
    post?: DoubledRequest<[data?: unknown, options?: HttpCallOptions]>;
    put?: DoubledRequest<[data?: unknown, options?: HttpCallOptions]>;
    patch?: DoubledRequest<[data?: unknown, options?: HttpCallOptions]>;
    /** `request()`, calls on `axiosRef` and `httpService`, and the methods above that are left out; path with query. */
    request?: DoubledRequest<[request: StubbedRequest]>;
  };
}

export interface ServiceStubOptions extends ServiceDoubles {
  /** The answers of named modules, by name. They share none with the module without a name. */
  named?: Readonly<Record<string, ServiceDoubles>>;
}

/** One call of a double. */
export interface RecordedCall {
  /** `banks.list`, `customers.create`, `http.get`, ... */
  method: string;
  /** What it was called with. */
  args: readonly unknown[];
  /** The name of its module; absent for the module without a name. */
  module?: string;
}

/** The methods that are doubled and recorded, and the other keys of the doubles. */
export const DOUBLED = {
  auth: ['getToken', 'getApiToken', 'getCustomerToken', 'authorizationHeaders', 'reloadCertificate'],
  banks: ['list'],
  customers: ['create'],
  sdk: ['connectParameters'],
  http: ['request', 'get', 'delete', 'post', 'put', 'patch'],
} as const;

const FURTHER_KEYS: Readonly<Record<string, readonly string[]>> = {
  auth: ['invalidate', 'certificate', 'identityStatus'],
};

/** @throws TypeError for a service or method that there is not, as a misspelt one would never be called */
export function checkDoubles({ named, ...doubles }: ServiceStubOptions): void {
  for (const [service, methods] of Object.entries(doubles)) {
    checkKey(service, Object.keys(DOUBLED), 'service');
    const keys = [...DOUBLED[service as keyof typeof DOUBLED], ...(FURTHER_KEYS[service] ?? [])];
    for (const method of Object.keys(methods ?? {})) {
      checkKey(method, keys, `member of ${service}`);
    }
  }
  for (const each of Object.values(named ?? {})) checkDoubles(each);
}

function checkKey(key: string, known: readonly string[], what: string): void {
  if (known.includes(key)) return;
  throw new TypeError(
    `There is no ${what} called '${key}' that can be doubled. There are: ${known.join(', ')}.`,
  );
}
