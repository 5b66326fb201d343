// TCP relays that add a round trip's time, as a distant server has it. The first bytes of a connection come one round trip later
// still: on loopback, connecting takes no time.
import { connect, createServer } from 'node:net';
import { respond } from './respond.mjs';

/** Passes on what `from` sends, so much later and in order. */
function relay(from, to, delayMs, firstDelayMs = delayMs) {
  let due = performance.now() + firstDelayMs;
  const later = (act) => {
    due = Math.max(due, performance.now() + delayMs);
    setTimeout(act, due - performance.now());
  };
  from.on('data', (chunk) => later(() => to.write(chunk)));
  from.on('end', () => later(() => to.end()));
  from.on('error', () => to.destroy());
  from.on('close', () => later(() => to.destroy()));
}

/** The ports take turns, as the backends behind one address do. */
async function listen(ports, roundTripMs) {
  let connections = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const port = ports[connections++ % ports.length];
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    relay(client, upstream, roundTripMs / 2, roundTripMs * 1.5);
    relay(upstream, client, roundTripMs / 2);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server.address().port;
}

respond(async ({ port, roundTripsMs }) => {
  const backends = [port].flat();
  const ports = {};
  // Two addresses each: of the API and of the token endpoint.
  for (const ms of roundTripsMs) ports[ms] = await Promise.all([listen(backends, ms), listen(backends, ms)]);
  const answer = ({ backends: next }) => {
    backends.splice(0, Infinity, ...next);
    return {};
  };
  return { ready: { ports }, answer };
});
