// /<contender>/oauth2/token issues opaque tokens after a delay; /<contender>/api checks them when they arrive.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen, respond } from './respond.mjs';

respond(async ({ lifetimeS, delayMs }) => {
  const counts = new Map();
  const ends = new Map();
  const countsOf = (contender) => {
    if (!counts.has(contender)) counts.set(contender, { tokenRequests: 0, calls: 0, expired: 0, unknown: 0 });
    return counts.get(contender);
  };

  async function issue(contender, response) {
    countsOf(contender).tokenRequests += 1;
    await sleep(delayMs);
    const token = `${contender}.${ends.size}.${'x'.repeat(400)}`;
    // To the millisecond and from the moment it leaves: nothing is kinder to a client.
    ends.set(token, Date.now() + lifetimeS * 1000);
    const body = { access_token: token, token_type: 'bearer', expires_in: lifetimeS, scope: 'api' };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  function check(contender, authorization = '', response) {
    const count = countsOf(contender);
    const end = ends.get(authorization.replace(/^bearer /i, ''));
    count.calls += 1;
    if (end === undefined) count.unknown += 1;
    else if (end <= Date.now()) count.expired += 1;
    response.writeHead(204).end();
  }

  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const [, contender, ...rest] = request.url.split('/');
    request.resume();
    request.once('end', () => {
      if (rest.join('/') === 'oauth2/token') issue(contender, response);
      else check(contender, request.headers.authorization, response);
    });
  });
  return { ready: { port: await listen(server) }, answer: countsOf };
});
