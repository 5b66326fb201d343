import { HttpService } from '@nestjs/axios';
import { type ServiceAuthService } from '../auth/index.js';
import { withoutSlashes } from '../config/address.js';
import { systemClock } from '../config/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { exchange } from '../exchange/exchange.js';
import { type Log } from '../telemetry/log.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type Agents, type ClientIdentity } from '../tls/index.js';
import { AllowedUrls } from './allowed-urls.js';
import { CallObserver } from './call-observer.js';
import { CallRunner } from './call-runner.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { RequestIds } from './request-ids.js';
import { RetryBudget } from './retry-policy.js';
import { type ServiceAdapterParts } from './service-adapter.js';
import { createServiceAxios } from './service-axios.js';

/** Puts the authenticated client of one module together. */
export function createServiceHttp(
  options: ResolvedOptions,
  auth: ServiceAuthService,
  identity: ClientIdentity,
  agents: Agents,
  inFlight: CallsInFlight,
  telemetry: Telemetry,
  log: Log,
): HttpService {
  const runner = new CallRunner({
    exchange,
    agentFor: (url) => agents.api(url),
    renewedHeaders: ({ authorization = '' }, wait) => auth.renewedHeaders(authorization, wait),
    identity,
    budget: new RetryBudget(),
    http: options.http,
    describeOption: options.describeOption,
    random: Math.random,
    closed: inFlight.closed,
  });
  return serviceHttpOver(runner, options, auth, identity, inFlight, telemetry, log);
}

/** The same with another runner: that of the test doubles sends nothing. */
export function serviceHttpOver(
  runner: ServiceAdapterParts['runner'],
  options: ResolvedOptions,
  auth: ServiceAuthService,
  identity: ClientIdentity,
  inFlight: CallsInFlight,
  telemetry: Telemetry,
  log: Log,
): HttpService {
  const { http, appTokenHeader, addresses, describeOption } = options;
  const { requestId, correlationIdHeader } = http;
  const instance = createServiceAxios({
    urls: new AllowedUrls(addresses),
    source: auth,
    inFlight,
    appTokenHeader: appTokenHeader.toLowerCase(),
    timeoutMs: http.timeout,
    runner,
    observer: new CallObserver(telemetry, log, withoutSlashes(new URL(addresses.baseUrl).pathname)),
    correlationIdHeader,
    requestIds: requestId && new RequestIds(requestId, correlationIdHeader, log, systemClock),
    credentials: {
      authentication: options.authentication,
      describeOption,
      certificate: () => identity.certificate,
    },
    appToken: options.appToken,
  });
  return new HttpService(instance);
}
