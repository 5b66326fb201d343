#!/usr/bin/env bash
# @opentelemetry/instrumentation-http 0.223.0, dd-trace 5.132.0 and elastic-apm-node 4.18.0 on Node 20: http.request() with its headers as
# an array, ['Host', 'a.example', 'X-Key', '1'], which Node accepts in the form of `rawHeaders`, for headers in a given order.
#
# Expected: the server gets Host and X-Key, and the trace headers beside them, as with a headers object.
# Seen: to add a trace header, each APM copies the array into an object. The names of the headers become the positions in the array, so
# the server gets "0: Host", "1: a.example", "2: X-Key" and "3: 1". Node then adds a Host header of its own. If the array has an
# Authorization header, the server refuses the request as soon as the APM is on. @sentry/node 11.12.0 and aws-xray-sdk-core 3.12.0 keep the
# names.
#
#   no APM, Sentry, X-Ray:           x-key: 1; host: a.example
#   OpenTelemetry, Datadog, Elastic: no x-key; 2: X-Key; host: 127.0.0.1:<port>
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts @opentelemetry/sdk-node@0.223.0 @opentelemetry/instrumentation-http@0.223.0 \
  @opentelemetry/api@1.9.0 dd-trace@5.132.0 elastic-apm-node@4.18.0 @sentry/node@11.12.0 aws-xray-sdk-core@3.12.0
cat >run.cjs <<'JS'
const [apm] = process.argv.slice(2);
const nowhere = 'http://127.0.0.1:9';

// Each function starts an APM and returns a function that runs its argument in a trace.
const setups = {
  none: () => (run) => run(),
  otel() {
    const { NodeSDK } = require('@opentelemetry/sdk-node');
    const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
    const traceExporter = { export: (_, done) => done({ code: 0 }), shutdown: async () => {} };
    new NodeSDK({ traceExporter, instrumentations: [new HttpInstrumentation()] }).start();
    return (run) => require('@opentelemetry/api').trace.getTracer('t').startActiveSpan('t', run);
  },
  datadog() {
    const tracer = require('dd-trace').init({ startupLogs: false, url: nowhere, telemetry: { enabled: false }, remoteConfig: { enabled: false } });
    return (run) => tracer.trace('t', run);
  },
  elastic() {
    const agent = require('elastic-apm-node').start({ serviceName: 't', serverUrl: nowhere, logLevel: 'off', disableSend: true, centralConfig: false });
    return (run) => (agent.startTransaction('t'), run());
  },
  sentry() {
    const sentry = require('@sentry/node');
    sentry.init({ dsn: 'http://a@127.0.0.1:9/1', tracesSampleRate: 1 });
    return (run) => sentry.startSpan({ name: 't' }, run);
  },
  xray() {
    const xray = require('aws-xray-sdk-core');
    const silence = () => undefined;
    xray.setLogger({ debug: silence, info: silence, warn: silence, error: silence });
    xray.setDaemonAddress('127.0.0.1:9');
    xray.captureHTTPsGlobal(require('http'));
    return (run) => xray.getNamespace().run(() => (xray.setSegment(new xray.Segment('t')), run()));
  },
};

const trace = setups[apm]();
const http = require('http');
const server = http.createServer((request, response) => {
  const { host, 'x-key': key, 2: third } = request.headers;
  console.log(`${apm}: host ${host.replace(/\d+$/, '<port>')}, x-key ${key}, 2 ${third}`);
  response.end();
});
server.listen(0, '127.0.0.1', () =>
  trace(() => {
    const { port } = server.address();
    const headers = ['Host', 'a.example', 'X-Key', '1'];
    http.request({ host: '127.0.0.1', port, headers }, (response) => response.resume().on('end', () => process.exit())).end();
  }),
);
JS
seen=$(for apm in none sentry xray otel datadog elastic; do node run.cjs "$apm" 2>/dev/null | grep "^$apm:"; done)
echo "$seen"
test "$seen" = 'none: host a.example, x-key 1, 2 undefined
sentry: host a.example, x-key 1, 2 undefined
xray: host a.example, x-key 1, 2 undefined
otel: host 127.0.0.1:<port>, x-key undefined, 2 X-Key
datadog: host 127.0.0.1:<port>, x-key undefined, 2 X-Key
elastic: host 127.0.0.1:<port>, x-key undefined, 2 X-Key'
