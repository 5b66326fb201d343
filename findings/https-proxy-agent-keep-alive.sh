#!/usr/bin/env bash
# https-proxy-agent 9.1.0 (agent-base 9) on Node 20: new HttpsProxyAgent(proxy, { keepAlive: true }), three requests, one after the other.
#
# Expected: one connection through the proxy serves all three, as with https.Agent, however a request names its target.
# Seen: it does for https.get('https://localhost/'), and for an object that has `protocol`. For an object without it, as Node allows for
# https.get({ host, port }), the agent looks for https.js in the stack to learn the protocol. That frame is there when the request starts,
# but not when its socket becomes free, so the agent files the socket under another name. No connection is ever reused, and each one stays
# open in `freeSockets`.
#
#   'https://localhost/':                       1 CONNECT, 1 free socket
#   { protocol: 'https:', host: 'localhost' }:  1 CONNECT, 1 free socket
#   { host: 'localhost' }:                      3 CONNECT, 3 free sockets
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts https-proxy-agent@9.1.0
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 2 2>/dev/null
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { HttpsProxyAgent } from 'https-proxy-agent';

const wait = (time) => new Promise((resolve) => setTimeout(resolve, time));
const listen = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
const ca = readFileSync('cert.pem');
const port = await listen(https.createServer({ key: readFileSync('key.pem'), cert: ca }, (_, response) => response.end('{}')));
let connects = 0;
const proxy = http.createServer().on('connect', (_, socket) => {
  connects++;
  const target = net.connect(port, '127.0.0.1', () => (socket.write('HTTP/1.1 200 OK\r\n\r\n'), target.pipe(socket).pipe(target)));
});
const proxyUrl = `http://127.0.0.1:${await listen(proxy)}`;

const forms = {
  url: (agent, done) => https.get(`https://localhost:${port}/`, { agent, ca }, done),
  protocol: (agent, done) => https.get({ protocol: 'https:', host: 'localhost', port, agent, ca }, done),
  host: (agent, done) => https.get({ host: 'localhost', port, agent, ca }, done),
};
const seen = {};
for (const [name, get] of Object.entries(forms)) {
  const agent = new HttpsProxyAgent(proxyUrl, { keepAlive: true });
  connects = 0;
  for (const _ of [1, 2, 3]) {
    await new Promise((resolve) => get(agent, (response) => response.resume().on('end', resolve)));
    await wait(50);
  }
  seen[name] = [connects, Object.values(agent.freeSockets).flat().length];
}
console.log(seen);
assert.deepEqual(seen, { url: [1, 1], protocol: [1, 1], host: [3, 3] });
process.exit();
JS
node run.mjs
