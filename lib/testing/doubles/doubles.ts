import { ServiceAuthService } from '../../auth/service-auth.service.js';
import { RESOURCE_CLASSES, type Resources } from '../../engine/create-client.js';
import { type CertificateSummary } from '../../errors/index.js';
import { type HttpResponse, ServiceHttpService } from '../../http/service-http.service.js';
import { LinkSdkService } from '../../link-sdk/link-sdk.service.js';
import { type IdentityStatus } from '../../tls/identity-source.js';
import { WebhooksService } from '../../webhooks/webhooks.service.js';
import { type RequestQuery, RouteTable } from '../route-table.js';

/** A function that replaces a method. It receives the method's arguments, and returns the response or a promise of it. */
export type DoubledMethod<Method> = Method extends (...args: infer Args) => infer Answer
  ? (...args: Args) => Answer | Awaited<Answer>
  : never;

/** Functions that replace methods of a class. */
export type DoubledMethods<Service> = {
  [Name in keyof Service as Service[Name] extends (...args: never[]) => unknown ? Name : never]?:
    DoubledMethod<Service[Name]> | undefined;
};

type ResourceDoubles = { [Name in keyof Resources]?: DoubledMethods<Resources[Name]> | undefined };

/** A call of ServiceHttpService, as its double receives it. */
export interface StubbedRequest {
  method: string;
  /** Names are in lower case. The headers that authenticate the call are left out. */
  headers: Readonly<Record<string, string>>;
  /** The body: parsed if it is JSON. Undefined without a body. */
  data: unknown;
}

/** A call, as the double of a route receives it. The fields have the same names as those of {@link SimulatedRequest}. */
export interface RoutedRequest extends StubbedRequest {
  /** With query. */
  path: string;
  /** The path parameters, decoded: `{ account_id: 'a-1' }` for `GET /accounts/{account_id}`. */
  pathParams: Readonly<Record<string, string>>;
  /** The query parameters. One that occurs several times is a list. */
  params: RequestQuery;
}

/** Doubles for routes, for example `GET /accounts/{account_id}`. Each returns the body of the response, or throws. */
export type RouteDoubles = Readonly<
  Record<
    `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'} /${string}`,
    (request: RoutedRequest) => unknown
  >
>;

/** What a double of `http.response` returns. Default: status 200, or 204 without `data`, and the content type of JSON. */
export type StubbedResponse = {
  [Part in 'data' | 'status' | 'headers']?: HttpResponse[Part] | undefined;
};

/**
 * The responses of the services in a test: a function for each method that the test replaces. The function receives the
 * method's arguments after they have been checked, and returns the response or a promise, or throws an error of
 * `serviceErrors`. It may be a mock of any test framework. A method that is left out returns a default response in the form
 * of docs/service.md.
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
  /** Default: signatures are verified with the secret `stub-webhook-secret`. `verify: () => true` accepts any signature. */
  webhooks?: DoubledMethods<WebhooksService> | undefined;
  /**
   * Doubles by route, such as `GET /accounts/{account_id}`, or by method, such as `get`.
   *
   * - A route takes precedence over a method, and a literal segment over a parameter.
   * - A route gets all calls of its path, except those of the resources (`banks`, `customers`).
   * - If there is any route, a call without a double fails.
   */
  http?:
    | (Partial<RouteDoubles> &
        DoubledMethods<Pick<ServiceHttpService, 'get' | 'delete' | 'post' | 'put' | 'patch'>> & {
          /**
           * Answers `request()`, calls through `axiosRef` and `httpService`, and the methods above that are left out. The
           * path includes the query.
           */
          request?: ((path: string, request: StubbedRequest) => unknown) | undefined;
          /** Called for `response()`. If it is left out, `request` is called. */
          response?:
            | ((path: string, request: StubbedRequest) => StubbedResponse | PromiseLike<StubbedResponse>)
            | undefined;
        })
    | undefined;
}

export interface ServiceStubOptions extends ServiceDoubles {
  /** The doubles of named modules, by name. The doubles above are for the module without a name only. */
  named?: Readonly<Record<string, ServiceDoubles>> | undefined;
}

/** A call that was recorded. */
export interface RecordedCall {
  /** `banks.list`, `customers.create`, `http.get`, ... */
  method: string;
  args: readonly unknown[];
  /** The name of the module. Absent for the module without a name. */
  module?: string;
}

export type DoubledService = keyof ServiceDoubles;

const CLASSES = {
  auth: ServiceAuthService,
  ...RESOURCE_CLASSES,
  sdk: LinkSdkService,
  webhooks: WebhooksService,
  http: ServiceHttpService,
};

/** Methods that call `http.get()`, which doubles answer by route. `collectionPath` is internal. */
const NOT_DOUBLED = new Set(['constructor', 'collectionPath', 'paginate', 'find']);

/** The methods that are doubled and recorded: all public methods of each service but {@link NOT_DOUBLED}. */
export const DOUBLED: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(CLASSES).map(([service, { prototype }]) => [service, listPublicMethods(prototype)]),
);

function listPublicMethods(prototype: object): string[] {
  const members = Object.entries(Object.getOwnPropertyDescriptors(prototype));
  return members
    .filter(([name, { value }]) => typeof value === 'function' && !NOT_DOUBLED.has(name))
    .map(([name]) => name);
}

/** The doubles of `auth` that are values and not functions. */
const VALUES = ['certificate', 'identityStatus'];

/**
 * A double with a misspelt name would never be called, and the test would pass or fail for another reason.
 *
 * @throws TypeError for an unknown service or method, and for a double that is not a function
 */
export function checkDoubles({ named, ...doubles }: ServiceStubOptions): void {
  for (const [service, given] of Object.entries(doubles)) {
    checkDoubleName(service, Object.keys(DOUBLED), 'service');
    const values = service === 'auth' ? VALUES : [];
    for (const [method, double] of Object.entries((given ?? {}) as Record<string, unknown>)) {
      const isRoute = service === 'http' && method.includes(' ');
      if (!isRoute) checkDoubleName(method, [...DOUBLED[service], ...values], `member of ${service}`);
      if (double === undefined || typeof double === 'function' || values.includes(method)) continue;
      throw new TypeError(
        `The double ${service}.${method} must be a function that returns the response: ${method}: () => response.`,
      );
    }
  }
  collectRoutes(doubles.http ?? {});
  for (const each of Object.values(named ?? {})) checkDoubles(each);
}

/** Collects the doubles of `http` that are for a route. @throws TypeError for an invalid method or path */
export function collectRoutes(http: object): RouteTable<(request: RoutedRequest) => unknown> {
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

export function checkDoubleName(key: string, known: readonly string[], what: string): void {
  if (known.includes(key)) return;
  const routes = what === 'member of http' ? " A route starts with its method: 'GET /banks/v1'." : '';
  throw new TypeError(`'${key}' is not a ${what} that can be doubled. Known: ${known.join(', ')}.${routes}`);
}
