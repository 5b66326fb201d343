#!/usr/bin/env bash
# @opentelemetry/instrumentation-http 0.223.0, dd-trace 5.132.0 and @sentry/node 11.12.0 on Node 20: a CONNECT request to a proxy.
#
# Expected: a span that names the proxy, or the target in the form that HTTP gives it (host:port); and no trace headers, as a CONNECT is
# not part of the request to the service (RFC 9110, 9.3.6).
# Seen: the target is appended to the proxy's address as if it was a path, which makes something that is no URL; Sentry takes
# only the port of the target. All send their trace headers to the proxy.
#
#   OpenTelemetry: url.full http://127.0.0.1:<proxy>api.example:443; headers: traceparent
#   Datadog:       http.url http://127.0.0.1:<proxy>api.example:443; headers: traceparent, x-datadog-trace-id ...
#   Sentry:        url.full 443; headers: sentry-trace, baggage
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts @opentelemetry/sdk-node@0.223.0 @opentelemetry/instrumentation-http@0.223.0 \
  @opentelemetry/api@1.9.0 @sentry/node@11.12.0 dd-trace@5.132.0
cat >run.cjs <<'JS'
const [apm] = process.argv.slice(2);
const seen = [];
const note = (name, value, port) => name === 'CONNECT' && seen.push(String(value).replace(port, '<proxy>'));

const setups = {
  otel() {
    const { NodeSDK } = require('@opentelemetry/sdk-node');
    const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
    const spans = [];
    const traceExporter = { export: (found, done) => (spans.push(...found), done({ code: 0 })), shutdown: async () => {} };
    const sdk = new NodeSDK({ traceExporter, instrumentations: [new HttpInstrumentation()] });
    sdk.start();
    const tracer = require('@opentelemetry/api').trace.getTracer('t');
    return {
      run: (work) => tracer.startActiveSpan('root', async (span) => (await work(), span.end())),
      end: async (port) => {
        await sdk.shutdown();
        for (const { name, attributes } of spans) note(name, attributes['url.full'], port);
      },
    };
  },
  datadog() {
    const spans = [];
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = (text, ...more) => {
      if (!String(text).startsWith('{"traces"')) return write(text, ...more);
      spans.push(...JSON.parse(text).traces.flat());
      return true;
    };
    const tracer = require('dd-trace').init({ startupLogs: false, experimental: { exporter: 'log' } });
    return {
      run: (work) => tracer.trace('root', work),
      end: async (port) => {
        await new Promise((resolve) => setTimeout(resolve, 2_500));
        for (const { resource, meta } of spans) note(resource, meta['http.url'], port);
      },
    };
  },
  sentry() {
    const Sentry = require('@sentry/node');
    const spans = [];
    const send = async ([, items]) => {
      for (const [{ type }, { items: found = [] }] of items) if (type === 'span') spans.push(...found);
      return {};
    };
    Sentry.init({ dsn: 'http://key@127.0.0.1:1/1', tracesSampleRate: 1, transport: () => ({ send, flush: async () => true }) });
    return {
      run: (work) => Sentry.startSpan({ name: 'root' }, work),
      end: async (port) => {
        await Sentry.flush(2_000);
        for (const { attributes: { 'http.request.method': method = {}, 'url.full': url = {} } } of spans) note(method.value, url.value, port);
      },
    };
  },
};
process.env.DD_INSTRUMENTATION_TELEMETRY_ENABLED = process.env.DD_REMOTE_CONFIGURATION_ENABLED = 'false';
const { run, end } = setups[apm]();
const http = require('node:http');

(async () => {
  let headers;
  const proxy = http.createServer().on('connect', (request, socket) => ((headers = request.headers), socket.end('HTTP/1.1 200 OK\r\n\r\n')));
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address();
  await run(
    () =>
      new Promise((resolve) => {
        const request = http.request({ host: '127.0.0.1', port, method: 'CONNECT', path: 'api.example:443', agent: false });
        request.on('connect', (_, socket) => (socket.destroy(), resolve())).on('error', resolve).end();
      }),
  );
  await end(port);
  const traced = Object.keys(headers).filter((name) => /trace|baggage/.test(name));
  console.log(`${apm}: ${seen.join()}; ${['traceparent', 'sentry-trace', 'x-datadog-trace-id'].filter((name) => traced.includes(name))}`);
  process.exit();
})();
JS
seen=$(for each in otel datadog sentry; do node run.cjs $each | grep "^$each: "; done)
echo "$seen"
test "$seen" = 'otel: http://127.0.0.1:<proxy>api.example:443; traceparent
datadog: http://127.0.0.1:<proxy>api.example:443; traceparent,x-datadog-trace-id
sentry: 443; sentry-trace'
