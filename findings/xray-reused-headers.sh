#!/usr/bin/env bash
# aws-xray-sdk-core 3.12.0, captureHTTPsGlobal(): a client that sends a request, and then the retry with the same headers object.
#
# Expected: a subsegment for each request, and in each request the trace header of its own subsegment.
# Seen: X-Ray writes its header into the caller's object, and takes a headers object that has one for a request that is traced already. So the
# retry has no subsegment, and its trace header names the subsegment of the first request, which has ended.
#
#   the same object twice: 1 subsegment, 1 trace header in 2 requests
#   a copy each time:      2 subsegments, 2 trace headers in 2 requests
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts aws-xray-sdk-core@3.12.0
cat >run.cjs <<'JS'
const assert = require('node:assert/strict');
const http = require('node:http');
const xray = require('aws-xray-sdk-core');

const silence = () => undefined;
xray.setLogger({ debug: silence, info: silence, warn: silence, error: silence });
xray.setDaemonAddress('127.0.0.1:9');
xray.captureHTTPsGlobal(http);

async function twice(headersOf) {
  const traces = new Set();
  const server = http.createServer((request, response) => {
    traces.add(request.headers['x-amzn-trace-id']);
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  const segment = new xray.Segment('test');
  const send = (headers) =>
    new Promise((resolve) =>
      http.request({ host: '127.0.0.1', port, headers, agent: false }, (response) => response.resume().on('end', resolve)).end(),
    );
  await xray.getNamespace().runPromise(async () => {
    xray.setSegment(segment);
    for (let attempt = 0; attempt < 2; attempt += 1) await send(headersOf());
  });
  server.close();
  return [segment.subsegments.length, traces.size];
}

(async () => {
  const shared = { accept: 'text/plain' };
  const seen = [await twice(() => shared), await twice(() => ({ accept: 'text/plain' }))];
  console.log(seen);
  assert.deepEqual(seen, [[1, 1], [2, 2]]);
  process.exit();
})();
JS
node run.cjs
