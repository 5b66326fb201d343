import { ServiceAuthService } from '../../auth/service-auth.service.js';
import { RESOURCE_CLASSES, type Resources } from '../../engine/resources.js';
import { type CertificateSummary } from '../../errors/index.js';
import { type HttpResponse, ServiceHttpService } from '../../http/service-http.service.js';
import { LinkSdkService } from '../../link-sdk/link-sdk.service.js';
import { type IdentityStatus } from '../../tls/client-identity.js';
import { WebhooksService } from '../../webhooks/webhooks.service.js';
import { type RequestQuery, RouteTable } from '../route-table.js';

/** A function in place of a method: it gets the arguments of the call, and returns the answer or a promise. */
export type DoubledMethod<Method> = Method extends (...args: infer Args) => infer Answer
  ? (...args: Args) => Answer | Awaited<Answer>
  : never;

/** A function in place of each method of a class. */
export type DoubledMethods<Service> = {
  [Name in keyof Service as Service[Name] extends (...args: never[]) => unknown ? Name : never]?:
    DoubledMethod<Service[Name]> | undefined;
};

type ResourceDoubles = { [Name in keyof Resources]?: DoubledMethods<Resources[Name]> | undefined };

/** A call of ServiceHttpService as its double sees it. */
export interface StubbedRequest {
  method: string;
  /** In lower case, without those that authenticate. */
  headers: Readonly<Record<string, string>>;
  /** The body; parsed if it is JSON, undefined if there is none. */
  data: unknown;
}

/** A call as a double by route sees it: what {@link SimulatedRequest} has, by the same names. */
export interface RoutedRequest extends StubbedRequest {
  /** With query. */
  path: string;
  /** By the names in the route, decoded: `{ account_id: 'a-1' }` for `GET /accounts/{account_id}`. */
  pathParams: Readonly<Record<string, string>>;
  /** The query; a list for a name that is repeated. */
  params: RequestQuery;
}

/** Doubles by method and path, for example `GET /accounts/{account_id}`. Each returns the body, or throws. */
export type RouteDoubles = Readonly<
  Record<
    `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'} /${string}`,
    (request: RoutedRequest) => unknown
  >
>;

/** What `http.response` answers in a test. Default: status 200, or 204 without `data`, and the headers of JSON. */
export type StubbedResponse = {
  [Part in 'data' | 'status' | 'headers']?: HttpResponse[Part] | undefined;
};

/**
 * What the services answer in a test: a function in place of each method, with the method's own arguments. It may be a
 * mock of any test framework. It returns the answer or a promise, or throws; see `serviceErrors`. It is called when the
 * input has been checked. What is left out has an answer of its own in the form of docs/service.md.
 */
export interface ServiceDoubles extends ResourceDoubles {
  auth?:
    | (DoubledMethods<ServiceAuthService> & {
        /** Default: none. */
        certificate?: CertificateSummary | undefined;
        /** Default: healthy, with `certificate`. */
        identityStatus?: IdentityStatus | undefined;
      })
    | undefined;
  sdk?: DoubledMethods<LinkSdkService> | undefined;
  /** Default: the secret is `stub-webhook-secret`. With `verify: () => true`, webhooks of the test need no signature. */
  webhooks?: DoubledMethods<WebhooksService> | undefined;
  /**
   * A route, `GET /accounts/{account_id}`, goes before the function of a verb, and a literal segment before a name. It
   * answers all calls of its path but those of the resources (`banks`, `customers`). If there is one, a call that has no
   * double fails.
   */
  http?:
    | (Partial<RouteDoubles> &
        DoubledMethods<Pick<ServiceHttpService, 'get' | 'delete' | 'post' | 'put' | 'patch'>> & {
          /** `request()`, calls on `axiosRef` and `httpService`, and the methods above that are left out; path with query. */
          request?: ((path: string, request: StubbedRequest) => unknown) | undefined;
          /** `response()`, which `request` answers if this is left out. */
          response?:
            | ((path: string, request: StubbedRequest) => StubbedResponse | PromiseLike<StubbedResponse>)
            | undefined;
        })
    | undefined;
}

export interface ServiceStubOptions extends ServiceDoubles {
  /** The answers of named modules, by name. They share none with the module without a name. */
  named?: Readonly<Record<string, ServiceDoubles>> | undefined;
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

/** A service that is doubled. */
export type Doubled = keyof ServiceDoubles;

const CLASSES = {
  auth: ServiceAuthService,
  ...RESOURCE_CLASSES,
  sdk: LinkSdkService,
  webhooks: WebhooksService,
  http: ServiceHttpService,
};

/** The methods that are doubled and recorded: all public ones. */
export const DOUBLED: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(CLASSES).map(([service, { prototype }]) => [service, methodsOf(prototype)]),
);

function methodsOf(prototype: object): string[] {
  const members = Object.entries(Object.getOwnPropertyDescriptors(prototype));
  const isPublic = (name: string) => name !== 'constructor' && name !== 'pathOf';
  return members
    .filter(([name, { value }]) => typeof value === 'function' && isPublic(name))
    .map(([name]) => name);
}

/** The doubles of `auth` that are values. */
const VALUES = ['certificate', 'identityStatus'];

/** @throws TypeError for a misspelt service or method, which would never be called, and for a double that is no function */
export function checkDoubles({ named, ...doubles }: ServiceStubOptions): void {
  for (const [service, given] of Object.entries(doubles)) {
    checkKey(service, Object.keys(DOUBLED), 'service');
    const values = service === 'auth' ? VALUES : [];
    for (const [method, double] of Object.entries((given ?? {}) as Record<string, unknown>)) {
      const isRoute = service === 'http' && method.includes(' ');
      if (!isRoute) checkKey(method, [...DOUBLED[service], ...values], `member of ${service}`);
      if (double === undefined || typeof double === 'function' || values.includes(method)) continue;
      throw new TypeError(
        `The double ${service}.${method} must be a function that returns the answer: ${method}: () => answer.`,
      );
    }
  }
  routesOf(doubles.http ?? {});
  for (const each of Object.values(named ?? {})) checkDoubles(each);
}

/** The doubles of `http` that are for a route. @throws TypeError for a method or path that no call can have */
export function routesOf(http: object): RouteTable<(request: RoutedRequest) => unknown> {
  const table = new RouteTable<(request: RoutedRequest) => unknown>();
  for (const [key, double] of Object.entries(http) as [string, () => unknown][]) {
    const [method, path] = key.split(/ +(.*)/s);
    if (path === undefined || double === undefined) continue;
    try {
      table.add(method, path, double);
    } catch (error) {
      throw new TypeError(`The double http['${key}']: ${(error as Error).message}`, { cause: error });
    }
  }
  return table;
}

export function checkKey(key: string, known: readonly string[], what: string): void {
  if (known.includes(key)) return;
  throw new TypeError(
    `There is no ${what} called '${key}' that can be doubled. There are: ${known.join(', ')}.`,
  );
}
