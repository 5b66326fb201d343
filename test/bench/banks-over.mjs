// BanksService as the module puts it together, over the exchange that is handed in.
import { HttpService } from '@nestjs/axios';
import { built } from './harness.mjs';
import { mtlsOptions, startModule } from './service.mjs';

const FILES = [
  'banks/banks.service.js',
  'http/allowed-urls.js',
  'http/call-observer.js',
  'http/call-runner.js',
  'http/calls-in-flight.js',
  'http/resource-paths.js',
  'http/retry-policy.js',
  'http/service-axios.js',
  'http/service-http.service.js',
  'telemetry/telemetry.js',
];

export async function banksOver(exchange, api) {
  const lib = Object.assign({}, ...(await Promise.all(FILES.map(built))));
  const { auth, close } = await startModule(mtlsOptions(api));
  const http = { timeout: 30_000, retries: 2, maxResponseBytes: 10 * 2 ** 20 };
  const inFlight = new lib.CallsInFlight();
  const runner = new lib.CallRunner({
    exchange,
    agentFor: () => auth.httpsAgent,
    credentials: { renewedHeaders: async () => undefined },
    identity: { certificate: auth.certificate, reloadAfterRefusal: async () => false },
    budget: new lib.RetryBudget(),
    http,
    random: Math.random,
    closed: inFlight.closed,
  });
  const axios = lib.createServiceAxios({
    urls: new lib.AllowedUrls({ baseUrl: api.origin, origins: new Set([api.origin]) }),
    source: { peekHeaders: () => auth.peekHeaders(), headers: () => auth.authorizationHeaders() },
    inFlight,
    appTokenHeader: 'service-app-token',
    timeoutMs: http.timeout,
    runner,
    observer: new lib.CallObserver(new lib.Telemetry(), console),
    correlationIdHeader: 'x-correlation-id',
    credentials: { authentication: 'mtls', certificate: () => auth.certificate },
  });
  const service = new lib.ServiceHttpService(new HttpService(axios));
  const banks = new lib.BanksService(service, new lib.ResourcePaths(false));
  return { call: () => banks.list(), close };
}
