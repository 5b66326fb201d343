// Attaching the headers to a call while the token is in the cache: microseconds, and that no promise is made.
import axios, { AxiosHeaders } from 'axios';
import { createHook } from 'node:async_hooks';
import { built, must, microsecondsOf, printFigure, printTable, round, startProcess } from './harness.mjs';
import { startModule } from './service.mjs';

const { guardInterceptor } = await built('http/guard.interceptor.js');
const { attachHeaders } = await built('http/attach-headers.js');

const { resolveTarget } = await built('http/target.js');
const { Targets } = await built('http/targets.js');
const { CallsInFlight } = await built('http/calls-in-flight.js');

const server = await startProcess('tokens', { lifetimeS: 3600, delayMs: 1 });
const address = `http://127.0.0.1:${server.port}/headers`;
const { auth, close } = await startModule({
  environment: 'sandbox',
  authentication: 'oauth',
  urls: { sandboxUrl: address, sandboxAuthUrl: address },
  oauth: { clientId: '7d1f6a4e-3c52-4e0b-9a55-0f8f6e1c2b3a', clientSecret: 'secret' },
});
await auth.getApiToken();

const rules = { baseUrl: address, origins: new Set([new URL(address).origin]) };
const targets = new Targets(rules);
const source = { peekHeaders: () => auth.peekHeaders(), headers: () => auth.authorizationHeaders() };
const guard = guardInterceptor(
  axios.create(),
  { targets, inFlight: new CallsInFlight(), appTokenHeader: 'service-app-token', timeoutMs: 30_000 },
  () => undefined,
);
const makeConfig = () => ({
  url: '/banks/v1',
  method: 'get',
  headers: new AxiosHeaders({ Accept: 'application/json' }),
});
const makeCall = () => ({ headers: { accept: 'application/json' } });
const wait = { timeoutMs: 30_000 };

function promisesOf(step, times = 1_000) {
  let promises = 0;
  const hook = createHook({ init: (_id, type) => (promises += type === 'PROMISE' ? 1 : 0) }).enable();
  for (let i = 0; i < times; i += 1) step();
  hook.disable();
  return promises / times;
}

const call = makeCall();
must(attachHeaders(call, source, wait) === undefined, 'a promise where the token is fresh');
must(/^Bearer ./.test(call.headers.authorization), 'no bearer was attached');

const peek = () => auth.peekHeaders();
const step = () => {
  guard(makeConfig());
  attachHeaders(makeCall(), source, wait);
};
// Else a count of 0 would say nothing.
must(promisesOf(() => Promise.resolve()) === 1, 'promises are not counted');

const resolve = () => resolveTarget('/banks/v1', rules);

const inResolve = microsecondsOf(resolve);
const inStep = microsecondsOf(step) - microsecondsOf(makeConfig) - microsecondsOf(makeCall);
const row = (name, us, run) => ({ step: name, 'CPU us': round(us, 2), promises: promisesOf(run) });
printTable('Headers with the token in the cache (oauth)', [
  row('auth.peekHeaders(): the look at the cache', microsecondsOf(peek), peek),
  row('resolveTarget(): is this address ours, the first time', inResolve, resolve),
  row('the guard and the headers attached, address known', inStep, step),
]);
printFigure('Attaching the headers, us', round(inStep, 2), 2);
printFigure('Promises on the fresh path', promisesOf(step), 0);

await close();
server.stop();
