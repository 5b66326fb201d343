// Attaching the headers to a call while the token is in the cache: microseconds, and that no promise is made.
import { AxiosHeaders } from 'axios';
import { createHook } from 'node:async_hooks';
import { built, must, microsecondsOf, printFigure, printTable, round, startProcess } from './harness.mjs';
import { startModule } from './service.mjs';

const { AuthHeadersInterceptor } = await built('http/auth-headers.interceptor.js');
const { AllowedUrls } = await built('http/allowed-urls.js');
const { CallsInFlight } = await built('http/calls-in-flight.js');

const server = await startProcess('tokens', { lifetimeS: 3600, delayMs: 1 });
const address = `http://127.0.0.1:${server.port}/headers`;
const { auth, close } = await startModule({
  environment: 'sandbox',
  authentication: 'oauth',
  urls: { sandboxUrl: address, sandboxAuthUrl: address },
  oauth: { clientId: '7d1f6a4e-3c52-4e0b-9a55-0f8f6e1c2b3a', clientSecret: 'secret' },
});
const credentials = await auth.authorizationHeaders();

const addresses = { baseUrl: address, origins: new Set([new URL(address).origin]) };
const urls = new AllowedUrls(addresses);
const interceptor = new AuthHeadersInterceptor(
  {
    options: { addresses, appTokenHeader: 'service-app-token', http: { timeout: 30_000 } },
    calls: new CallsInFlight(),
  },
  { use: () => credentials },
);
// With the keys that a config has once axios has merged its defaults.
const makeConfig = () => ({
  __proto__: null,
  url: '/banks/v1',
  method: 'get',
  transitional: { legacyInterceptorReqResOrdering: true },
  headers: new AxiosHeaders({ Accept: 'application/json' }),
});

function promisesOf(step, times = 1_000) {
  let promises = 0;
  const hook = createHook({ init: (_id, type) => (promises += type === 'PROMISE' ? 1 : 0) }).enable();
  for (let i = 0; i < times; i += 1) step();
  hook.disable();
  return promises / times;
}

const step = () => interceptor.attach(makeConfig());
must(!(step() instanceof Promise), 'a promise where the token is fresh');
must(/^Bearer ./.test(step().headers.Authorization), 'no bearer was attached');
// Otherwise a count of 0 would mean nothing.
must(promisesOf(() => Promise.resolve()) === 1, 'promises are not counted');

const resolve = () => urls.resolve('/banks/v1');

const inResolve = microsecondsOf(resolve);
const inStep = microsecondsOf(step) - microsecondsOf(makeConfig);
const row = (name, us, run) => ({ step: name, 'CPU us': round(us, 2), promises: promisesOf(run) });
printTable('Headers with the token in the cache (oauth)', [
  row('AllowedUrls: is this address ours', inResolve, resolve),
  row('the interceptor: call checked, headers attached', inStep, step),
]);
printFigure('Attaching the headers, us', round(inStep, 2), 2);
printFigure('Promises on the fresh path', promisesOf(step), 0);

await close();
server.stop();
