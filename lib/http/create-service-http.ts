import { HttpService } from '@nestjs/axios';
import { Logger } from '@nestjs/common';
import axios, { type AxiosInstance } from 'axios';
import { type ServiceAuthService } from '../auth/index.js';
import { moduleLabel } from '../config/variables.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { exchange } from '../exchange/exchange.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type Agents, type ClientIdentity } from '../tls/index.js';
import { AllowedUrls } from './allowed-urls.js';
import { refusingAdapter, useAuthHeaders, type AuthHeadersParts } from './auth-headers.interceptor.js';
import { CallObserver } from './call-observer.js';
import { CallRunner } from './call-runner.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { RetryBudget } from './retry-policy.js';
import { serviceAdapter, type ServiceAdapterParts } from './service-adapter.js';

/** Puts the authenticated client of one module together. */
export function createServiceHttp(
  options: ResolvedOptions,
  auth: ServiceAuthService,
  identity: ClientIdentity,
  agents: Agents,
  inFlight: CallsInFlight,
  telemetry: Telemetry,
): HttpService {
  const runner = new CallRunner({
    exchange,
    agentFor: (url) => agents.api(url),
    credentials: {
      renewedHeaders: ({ authorization = '' }, wait) => auth.renewedHeaders(authorization, wait),
    },
    identity,
    budget: new RetryBudget(),
    http: options.http,
    describeOption: options.describeOption,
    random: Math.random,
    closed: inFlight.closed,
  });
  return serviceHttpOver(runner, options, auth, identity, inFlight, telemetry);
}

/** The same over another runner. */
export function serviceHttpOver(
  runner: ServiceAdapterParts['runner'],
  options: ResolvedOptions,
  auth: ServiceAuthService,
  identity: ClientIdentity,
  inFlight: CallsInFlight,
  telemetry: Telemetry,
): HttpService {
  const { http, appTokenHeader, addresses, describeOption } = options;
  const instance = createServiceAxios({
    urls: new AllowedUrls(addresses),
    source: {
      peekHeaders: () => auth.peekHeaders(),
      headers: (wait) => auth.headers(wait),
    },
    inFlight,
    appTokenHeader: appTokenHeader.toLowerCase(),
    timeoutMs: http.timeout,
    runner,
    observer: new CallObserver(telemetry, new Logger(moduleLabel(options.name))),
    correlationIdHeader: http.correlationIdHeader,
    credentials: {
      authentication: options.authentication,
      describeOption,
      certificate: () => identity.certificate,
    },
    appToken: options.appToken,
  });
  return new HttpService(instance);
}

export type ServiceAxiosParts = Omit<AuthHeadersParts, 'send'> & ServiceAdapterParts;

/** The module's own axios instance; the host's is not touched. */
export function createServiceAxios(parts: ServiceAxiosParts): AxiosInstance {
  const instance = axios.create({
    adapter: refusingAdapter,
  });
  dropUnused(instance);
  useAuthHeaders(instance, { ...parts, send: serviceAdapter(parts) });
  return instance;
}

/**
 * Axios's defaults that no call needs: this module has its own time limit, reads the JSON and checks the status itself,
 * and only axios's own adapters read the others. A `timeout`, `validateStatus` or `transformResponse` that a host sets
 * still applies.
 */
const UNUSED = [
  'transitional',
  'env',
  'xsrfCookieName',
  'xsrfHeaderName',
  'maxContentLength',
  'maxBodyLength',
  'timeout',
  'validateStatus',
  'transformResponse',
] as const;

/** Axios copies each default at each call, and merges the headers of each method: half of what it costs. */
function dropUnused({ defaults }: AxiosInstance): void {
  for (const key of UNUSED) delete defaults[key];
  const headers: Record<string, unknown> = defaults.headers;
  headers.common = {};
  for (const method of Object.keys(headers)) {
    if (method !== 'common') lazyHeaders(headers, method);
  }
}

/** An empty object that a host finds and can fill, and that axios does not see before. */
function lazyHeaders(headers: Record<string, unknown>, method: string): void {
  const set = (value: unknown): void => {
    Object.defineProperty(headers, method, { value, enumerable: true, writable: true, configurable: true });
  };
  const get = (): unknown => {
    set({});
    return headers[method];
  };
  Object.defineProperty(headers, method, { get, set, enumerable: false, configurable: true });
}
