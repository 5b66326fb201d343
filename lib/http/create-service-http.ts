import { HttpService } from '@nestjs/axios';
import { Logger } from '@nestjs/common';
import axios, { type AxiosInstance } from 'axios';
import { type ServiceAuthService } from '../auth/index.js';
import { moduleLabel } from '../config/variables.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { exchange } from '../exchange/exchange.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type Agents, type ClientIdentity } from '../tls/index.js';
import { useAuthHeaders, type AuthHeadersParts } from './auth-headers.interceptor.js';
import { CallObserver } from './call-observer.js';
import { CallRunner } from './call-runner.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { RetryBudget } from './retry-policy.js';
import { serviceAdapter, unjudgedAdapter, type ServiceAdapterParts } from './service-adapter.js';

/** Puts the authenticated client of one module together. */
export function createServiceHttp(
  options: ResolvedOptions,
  auth: ServiceAuthService,
  identity: ClientIdentity,
  agents: Agents,
  inFlight: CallsInFlight,
  telemetry: Telemetry,
): HttpService {
  const { http, appTokenHeader, addresses } = options;
  const logger = new Logger(moduleLabel(options.name));
  const runner = new CallRunner({
    exchange,
    agentFor: (url) => agents.api(url),
    credentials: {
      renewedHeaders: ({ authorization = '' }, wait) => auth.renewedHeaders(authorization, wait),
    },
    identity,
    budget: new RetryBudget(),
    http,
    random: Math.random,
    closed: inFlight.closed,
  });
  const instance = createServiceAxios({
    rules: addresses,
    source: {
      peekHeaders: () => auth.peekHeaders(),
      headers: (wait) => auth.headers(wait),
    },
    inFlight,
    appTokenHeader,
    timeoutMs: http.timeout,
    runner,
    observer: new CallObserver(telemetry, logger),
    correlationIdHeader: http.correlationIdHeader,
    credentials: {
      authentication: options.authentication,
      name: options.name,
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
    adapter: unjudgedAdapter,
    // The adapter parses: axios would keep text that is no JSON, in silence.
    transformResponse: [],
    // Its statuses are the adapter's to judge; a call may still bring its own validateStatus.
    validateStatus: undefined,
    headers: { common: { Accept: 'application/json' } },
  });
  dropUnused(instance);
  useAuthHeaders(instance, { ...parts, send: serviceAdapter(parts) });
  return instance;
}

/** What axios's browser and node adapters want, and ours does not: axios copies all of it at each call. */
function dropUnused({ defaults }: AxiosInstance): void {
  const unused = [
    'transitional',
    'env',
    'xsrfCookieName',
    'xsrfHeaderName',
    'maxContentLength',
    'maxBodyLength',
  ] as const;
  for (const key of [...unused, 'timeout', 'validateStatus'] as const) delete defaults[key];
}
