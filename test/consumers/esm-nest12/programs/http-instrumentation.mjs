// OpenTelemetry's own HTTP instrumentation in the host: it makes a span of each attempt, and the service gets its id.
import assert from 'node:assert/strict';
import { register } from 'node:module';
import { SpanKind } from '@opentelemetry/api';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';

register('@opentelemetry/instrumentation/hook.mjs', import.meta.url);
const exporter = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
registerInstrumentations({ instrumentations: [new HttpInstrumentation()] });

const { NestFactory } = await import('@nestjs/core');
const { BanksService, ServiceModule } = await import('nestjs-service');
const { ServiceSimulator } = await import('nestjs-service/testing');
const simulator = await ServiceSimulator.start();
const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
const app = await NestFactory.createApplicationContext(ServiceModule.forRoot(options), { logger: false });
await app.get(BanksService).list();
await app.close();

const clients = exporter.getFinishedSpans().filter(({ kind }) => kind === SpanKind.CLIENT);
const of = (path) => clients.find(({ attributes }) => String(attributes['url.full']).endsWith(path));
const exchange = of('/banks/v1');
assert.ok(exchange && of('/oauth2/token'));

const { traceId, spanId } = exchange.spanContext();
const [{ headers }] = simulator.apiRequests;
assert.equal(headers.traceparent, `00-${traceId}-${spanId}-01`);

const told = JSON.stringify(clients.map(({ name, attributes, events }) => ({ name, attributes, events })));
const bearer = headers.authorization.replace('Bearer ', '');
for (const secret of [simulator.clientSecret, simulator.appToken, bearer]) assert.ok(!told.includes(secret));
await simulator.stop();
