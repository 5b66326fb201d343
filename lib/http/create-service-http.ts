import { HttpService } from '@nestjs/axios';
import { type ServiceAuthService } from '../auth/index.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { exchange } from '../exchange/exchange.js';
import { type Agents, type ClientIdentity } from '../tls/index.js';
import { CallRunner } from './call-runner.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { RetryBudget } from './retry-budget.js';
import { createServiceAxios } from './service-axios.js';

/** Puts the authenticated client of one module together. */
export function createServiceHttp(
  options: ResolvedOptions,
  auth: ServiceAuthService,
  identity: ClientIdentity,
  agents: Agents,
  inFlight: CallsInFlight,
): HttpService {
  const { http, appTokenHeader, addresses } = options;
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
  });
  const axios = createServiceAxios(
    {
      source: {
        peekHeaders: () => auth.peekHeaders(),
        headers: (wait) => auth.authorizationHeaders(wait),
      },
      rules: addresses,
      appTokenHeader,
      timeoutMs: http.timeout,
    },
    {
      runner,
      inFlight,
      timeoutMs: http.timeout,
      correlationIdHeader: http.correlationIdHeader,
      appTokenHeader,
    },
  );
  return new HttpService(axios);
}
