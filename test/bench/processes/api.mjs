// GET anything over mTLS: 1.6 kB of JSON. `/close` ends the connection after its answer. `/oauth2/token` has a token.
import { createServer } from 'node:https';
import { listen, respond } from './respond.mjs';

const BANKS = Array.from({ length: 16 }, (_, i) => ({
  bank_identifier: `bank-${i}`,
  name: `Bank number ${i} of the benchmark`,
  country: 'AE',
  supported: true,
}));
const BODY = Buffer.from(JSON.stringify({ banks: BANKS }));
const TOKEN = JSON.stringify({ access_token: 'x'.repeat(600), token_type: 'bearer', expires_in: 86_400 });

respond(async ({ key, cert, ca, delayMs }) => {
  const counts = { requests: 0, connections: 0, resumed: 0 };
  const tls = { key, cert, ca, requestCert: true, rejectUnauthorized: true };
  const server = createServer({ ...tls, keepAliveTimeout: 120_000 }, (request, response) => {
    counts.requests += 1;
    if (request.url === '/oauth2/token') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(TOKEN);
    } else if (delayMs > 0) setTimeout(send, delayMs, request, response);
    else send(request, response);
  });
  function send(request, response) {
    const { authorization, 'service-app-token': appToken } = request.headers;
    response.writeHead((authorization ?? appToken) === undefined ? 401 : 200, {
      'content-type': 'application/json',
      'content-length': BODY.length,
      ...(request.url === '/close' ? { connection: 'close' } : {}),
    });
    response.end(BODY);
  }
  server.on('secureConnection', (socket) => {
    counts.connections += 1;
    if (socket.isSessionReused()) counts.resumed += 1;
  });
  const answer = () => {
    const now = { ...counts };
    Object.assign(counts, { requests: 0, connections: 0, resumed: 0 });
    return now;
  };
  return { ready: { port: await listen(server), body: BODY.toString() }, answer };
});
