import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { context, metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { hrTimeToMilliseconds } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { BanksService, ServiceModule, type ServiceCallEvent } from 'nestjs-service';
import { OPTIONS } from '../../lib/config/options.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { readDocument, writeSnippets, type Fence, type Snippets } from '../helpers/readme.js';
import { startSimulator } from '../helpers/simulators.js';

const before = { ...process.env };

describe('docs/operation.md', () => {
  let text: string;
  let fences: Fence[];
  let snippets: Snippets;

  beforeAll(async () => {
    ({ text, fences } = await readDocument('docs/operation.md'));
    // A drain that a test can wait for.
    const shortened = fences.map((fence) => ({ ...fence, text: fence.text.replace('8_000', '1_500') }));
    snippets = await writeSnippets(shortened, { name: 'operation' });
  });
  afterEach(() => {
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
  });
  afterAll(() => snippets.remove());

  const manifest = () => fences.find(({ language }) => language === 'yaml')?.text ?? '';
  const numberOf = (key: string, source = text) =>
    Number(new RegExp(`${key}\\D+([\\d_]+)`).exec(source)?.[1]?.replace('_', ''));

  it('has a route for readiness that answers 503 from SIGTERM on, while calls are served', async () => {
    const { HealthModule } = (await import(snippets.path('health.module.ts'))) as { HealthModule: Type };
    @Controller('banks')
    class BanksController {
      constructor(private readonly banks: BanksService) {}
      @Get()
      list() {
        return this.banks.list();
      }
    }
    const simulator = await startSimulator();
    Object.assign(process.env, simulator.env({ environment: 'production', authentication: 'mtls' }));
    process.env.SERVICE_HTTP_SHUTDOWN_TIMEOUT = String(numberOf('SHUTDOWN_TIMEOUT', manifest()));
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ isGlobal: true }), HealthModule],
      controllers: [BanksController],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    const probe = manifest().split('readinessProbe')[1];
    const path = /path: ([\w/]+)/.exec(probe)?.[1] ?? '';
    const ready = async () => (await fetch(url + path)).status;
    const up = (await (await fetch(url + path)).json()) as { details: object };
    expect(up.details).toMatchObject({
      service: { status: 'up', certificate: { daysLeft: expect.any(Number) }, ping: { ok: true } },
    });
    expect(await ready()).toBe(200);
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    const closed = (app.close as (signal: string) => Promise<void>).call(app, 'SIGTERM');
    // Nest's hooks run one after the other, in steps of the event loop.
    while ((await ready()) === 200);
    expect(await ready()).toBe(503);
    expect((await fetch(`${url}/banks`)).status).toBe(200);
    await closed;
    await expect(fetch(`${url}/banks`)).rejects.toThrow();
    await simulator.stop();
  });

  it('has a Deployment whose times fit, and whose variables there are', () => {
    const drainMs = numberOf('gracefulShutdownTimeoutMs');
    const callsMs = numberOf('SHUTDOWN_TIMEOUT', manifest());
    const graceMs = 1_000 * numberOf('terminationGracePeriodSeconds', manifest());
    expect(drainMs).toBeGreaterThan(0);
    expect(callsMs).toBeGreaterThan(drainMs);
    expect(graceMs).toBeGreaterThan(callsMs);
    const known = new Set(
      OPTIONS.flatMap(({ suffix }) => (suffix ? [`SERVICE_${suffix}`, `SERVICE_${suffix}_FILE`] : [])),
    );
    const named = manifest().match(/SERVICE_\w+/g) ?? [];
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  it('makes a metric and a span of each call and token request, below the active span, without a secret', async () => {
    const spans = new InMemorySpanExporter();
    const points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter: points, exportIntervalMillis: 3_600_000 });
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
    );
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
    const { onCall } = (await import(snippets.path('call-telemetry.ts'))) as {
      onCall: (event: ServiceCallEvent) => void;
    };
    const simulator = await startSimulator();
    const options = simulator.moduleOptions({ authentication: 'oauth' });
    const api = await startModule({ ...options, http: { ...options.http, onCall } });
    const parent = trace.getTracer('host').startSpan('host');
    const begunAt = Date.now();
    await context.with(trace.setSpan(context.active(), parent), async () => {
      await api.banks.list({ params: { q: 'private' } });
      simulator.fail({ path: /orders/, fault: { status: 404 } });
      await rejection(api.http.get('/orders/v1/private'));
    });
    const made = spans.getFinishedSpans();
    const { spanId } = parent.spanContext();
    expect(made.map(({ name, status, parentSpanContext }) => [name, status.code, parentSpanContext])).toEqual(
      [
        ['POST /oauth2/token', SpanStatusCode.UNSET],
        ['GET /banks/v1', SpanStatusCode.UNSET],
        ['GET /orders/v1', SpanStatusCode.ERROR],
      ].map((each) => [...each, expect.objectContaining({ spanId })]),
    );
    for (const { startTime, duration, kind } of made) {
      expect(kind).toBe(SpanKind.CLIENT);
      expect(hrTimeToMilliseconds(startTime)).toBeGreaterThanOrEqual(begunAt - 1);
      expect(hrTimeToMilliseconds(duration)).toBeGreaterThan(0);
      expect(hrTimeToMilliseconds(startTime) + hrTimeToMilliseconds(duration)).toBeLessThan(Date.now() + 1);
    }
    await reader.forceFlush();
    const [{ scopeMetrics }] = points.getMetrics();
    const counted = scopeMetrics[0].metrics[0].dataPoints.map(({ attributes }) => attributes);
    expect(counted).toEqual([
      { route: '/oauth2/token', status: 200, error: undefined },
      { route: '/banks/v1', status: 200, error: undefined },
      { route: '/orders/v1', status: 404, error: 'api_error' },
    ]);
    const told = JSON.stringify(made.map(({ name, attributes }) => ({ name, attributes })));
    for (const secret of [simulator.clientSecret, (await api.auth.getApiToken()).accessToken, 'private'])
      expect(told).not.toContain(secret);
    for (const each of [context, trace, metrics]) each.disable();
    await reader.shutdown();
    await api.module.close();
    await simulator.stop();
  });
});
