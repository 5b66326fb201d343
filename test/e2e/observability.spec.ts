import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  context,
  defaultTextMapGetter,
  metrics,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type TextMapPropagator,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
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
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { type TokenStore } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { VERSION } from '../../lib/version.js';
import { Telemetry } from '../../lib/telemetry/telemetry.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';

describe('observability', () => {
  const spans = new InMemorySpanExporter();
  const points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: points, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  let simulator: ServiceSimulator;

  beforeAll(async () => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
    );
    metrics.setGlobalMeterProvider(meterProvider);
    simulator = await ServiceSimulator.start();
  });
  afterEach(() => {
    simulator.clearFaults();
    spans.reset();
  });
  afterAll(async () => {
    await simulator.stop();
    await meterProvider.shutdown();
    for (const api of [context, trace, metrics]) api.disable();
  });

  const measured = async () => {
    points.reset();
    await reader.forceFlush();
    return points.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  };
  const names = async (): Promise<Record<string, unknown[]>> =>
    Object.fromEntries((await measured()).map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]));

  it('makes a client span of each call, by the conventions, under the span of the caller', async () => {
    const api = await startModule(simulator.moduleOptions({ authentication: 'mtls' }));
    simulator.fail({ path: /banks/, fault: { status: 503 } });
    const parent = trace.getTracer('host').startSpan('host');
    // HTTP instrumentation begins the spans of the attempts there.
    const active: unknown[] = [];
    const onAttempt = () => active.push(trace.getActiveSpan()?.spanContext().spanId);
    subscribe('http.client.request.start', onAttempt);
    await context.with(trace.setSpan(context.active(), parent), () => api.http.get('/banks/v1?secret=1'));
    unsubscribe('http.client.request.start', onAttempt);
    parent.end();
    const span = spans.getFinishedSpans().find(({ kind }) => kind === SpanKind.CLIENT);
    expect(active).toEqual([span?.spanContext().spanId, span?.spanContext().spanId]);
    const { hostname, port, origin } = new URL(simulator.urls.baseUrl);
    expect(span).toMatchObject({
      name: 'GET /banks/v1',
      instrumentationScope: { name: 'nestjs-service', version: VERSION },
      parentSpanContext: { spanId: parent.spanContext().spanId },
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        'http.request.method': 'GET',
        'server.address': hostname,
        'server.port': Number(port),
        'url.full': `${origin}/banks/v1`,
        'url.template': '/banks/v1',
        'http.response.status_code': 200,
        'http.request.resend_count': 1,
      },
    });
    await api.module.close();
  });

  it('names no customer: of a path below the address the resource and its version, and no query', async () => {
    const options = simulator.moduleOptions({ authentication: 'mtls' });
    const { origin } = new URL(simulator.urls.baseUrl);
    const api = await startModule({ ...options, urls: { ...options.urls, baseUrl: `${origin}/a/b/c` } });
    const asked = {
      '/banks/v1': '/a/b/c/banks/v1',
      '/banks/v1/': '/a/b/c/banks/v1/',
      '/customers/v1/c-private/accounts?id=private': '/a/b/c/customers/v1',
      [`${origin}/customers/v1/c-private`]: '/customers/v1',
      '/customers/private': '/a/b/c/customers',
      '/customers~': '/a/b/c/customers',
      '': '/a/b/c',
    };
    for (const path of Object.keys(asked)) await rejection(api.http.get(path));
    const urls = spans.getFinishedSpans().map(({ attributes }) => attributes['url.full']);
    expect(urls).toEqual(Object.values(asked).map((path) => origin + path));
    expect(spans.getFinishedSpans().map(({ name }) => name)).toEqual([
      'GET /banks/v1',
      'GET /banks/v1',
      'GET /customers/v1',
      'GET /customers/v1',
      'GET /customers',
      'GET /customers',
      'GET /',
    ]);
    expect(
      inspect([spans.getFinishedSpans().map(({ attributes }) => attributes), await names()], { depth: 10 }),
    ).not.toContain('private');
    await api.module.close();
  });

  it("names a call by its route, on spans and metrics alike, and shows the ids where the host's options say so", async () => {
    const options = simulator.moduleOptions({ authentication: 'mtls' });
    const api = await startModule({ ...options, http: { ...options.http, fullPaths: true } });
    const route = '/orders/v1/{id}';
    simulator.fail({ path: /orders/, fault: { status: 503 } });
    await rejection(api.http.get('/orders/v1/o-42?q=private', { route }));
    const [{ name, attributes }] = spans.getFinishedSpans();
    const { origin } = new URL(simulator.urls.baseUrl);
    expect(name).toBe('GET /orders/v1/{id}');
    expect(attributes).toMatchObject({ 'url.template': route, 'url.full': `${origin}/orders/v1/o-42` });
    const found = await names();
    for (const metric of ['call.duration', 'retries']) {
      const points = found[`nestjs_service.${metric}`] as { attributes: Record<string, unknown> }[];
      expect(points.filter(({ attributes }) => attributes['url.template'] === route)).toHaveLength(1);
    }
    expect(inspect(found, { depth: 10 })).not.toMatch(/o-42|private/);
    await api.module.close();
  });

  it('measures how long requests wait for a free connection, also those that got none', async () => {
    const before = ((await names())['nestjs_service.connection.queue_time'] ?? []) as QueuePoint[];
    const options = simulator.moduleOptions({ authentication: 'mtls' });
    const api = await startModule({ ...options, http: { ...options.http, maxSockets: 1 } });
    simulator.fail({ path: /slow/, fault: 'hang' });
    const slow = rejection(api.http.get('/slow/v1', { timeout: 300 }));
    const waiting = [rejection(api.http.get('/none/v1', { timeout: 200 })), api.banks.list()];
    await Promise.all([slow, ...waiting]);
    const { hostname, port } = new URL(simulator.urls.baseUrl);
    const place = { 'server.address': hostname, 'server.port': Number(port) };
    const of = (points: QueuePoint[]) =>
      points.find(({ attributes }) => attributes['server.port'] === place['server.port'])?.value;
    const after = (await names())['nestjs_service.connection.queue_time'] as QueuePoint[];
    expect(after.map(({ attributes }) => attributes)).toContainEqual(place);
    expect(Number(of(after)?.count) - (of(before)?.count ?? 0)).toBe(3);
    const seconds = Number(of(after)?.sum) - (of(before)?.sum ?? 0);
    expect(seconds).toBeGreaterThan(0.3);
    expect(seconds).toBeLessThan(30);
    await api.module.close();
  });

  it('measures times in seconds, in the buckets that the HTTP conventions advise', async () => {
    const api = await startModule(simulator.moduleOptions({ authentication: 'mtls' }));
    await api.banks.list();
    const times = (await measured()).filter(({ descriptor }) => descriptor.unit === 's');
    expect(times.map(({ descriptor }) => descriptor.name).sort()).toEqual([
      'nestjs_service.call.duration',
      'nestjs_service.connection.queue_time',
    ]);
    const boundaries = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
    for (const { dataPoints } of times)
      expect(dataPoints[0].value).toMatchObject({ buckets: { boundaries } });
    await api.module.close();
  });

  it('names the module where it has a name, and the port where the address has none', () => {
    const of = (url: string, name?: string) => new Telemetry(name).attributesOf(new URL(url));
    const server = { 'server.address': 'localhost', 'server.port': 443 };
    expect(of('https://localhost')).toEqual(server);
    expect(of('http://localhost')).toEqual({ ...server, 'server.port': 80 });
    expect(of('https://localhost', 'ksa')).toEqual({ ...server, 'nestjs_service.module': 'ksa' });
  });

  describe('traceparent', () => {
    /** As an SDK for Node sets it up. */
    const usual = new CompositePropagator({
      propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
    });
    let api: StartedModule;
    beforeAll(async () => {
      api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
      await api.auth.getApiToken();
    });
    afterAll(() => api.module.close());
    afterEach(() => propagation.disable());

    const sent = async (headers: Record<string, string> = {}) => {
      simulator.clearRequests();
      await api.banks.list({ headers });
      return simulator.apiRequests.map(({ headers: { traceparent, tracestate, baggage } }) => ({
        traceparent,
        tracestate,
        baggage,
      }));
    };
    const NONE = { traceparent: undefined, tracestate: undefined, baggage: undefined };
    const inbound = (flags: string) =>
      usual.extract(
        ROOT_CONTEXT,
        {
          traceparent: `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-${flags}`,
          tracestate: 'vendor=1',
          baggage: 'user=private',
        },
        defaultTextMapGetter,
      );

    it('is that of the span of the call, for all attempts; baggage is not sent', async () => {
      propagation.setGlobalPropagator(usual);
      simulator.fail({ path: /banks/, fault: { status: 503 } });
      const both = await context.with(inbound('01'), () => sent());
      const [span] = spans.getFinishedSpans().filter(({ kind }) => kind === SpanKind.CLIENT);
      const traceparent = `00-0af7651916cd43dd8448eb211c80319c-${span.spanContext().spanId}-01`;
      const headers = { traceparent, tracestate: 'vendor=1', baggage: undefined };
      expect(both).toEqual([headers, headers]);
    });

    it('says so where the call is not sampled', async () => {
      propagation.setGlobalPropagator(usual);
      const [{ traceparent }] = await context.with(inbound('00'), () => sent());
      expect(traceparent).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00$/);
    });

    it("is the caller's own where the call brings one", async () => {
      propagation.setGlobalPropagator(usual);
      const own = '00-11111111111111111111111111111111-2222222222222222-01';
      const given = await context.with(inbound('01'), () => sent({ TraceParent: own }));
      expect(given).toEqual([{ ...NONE, traceparent: own }]);
      const state = await context.with(inbound('01'), () => sent({ tracestate: 'mine=1' }));
      expect(state).toMatchObject([{ tracestate: 'mine=1' }]);
    });

    it('is not sent without a propagator, nor what no header can hold', async () => {
      expect(await sent()).toEqual([NONE]);
      const odd: TextMapPropagator = {
        inject: (_, carrier, setter) => {
          setter.set(carrier, 'traceparent', 'a\r\nx-evil: 1');
          setter.set(carrier, 'authorization', 'Bearer evil');
        },
        extract: (incoming) => incoming,
        fields: () => [],
      };
      propagation.setGlobalPropagator(odd);
      expect(await sent()).toEqual([NONE]);
    });
  });

  it('marks a failed call with its error type, and contains no secret', async () => {
    const api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    const { accessToken } = await api.auth.getApiToken();
    simulator.fail({ path: /customers/, fault: 'reset' });
    await rejection(api.customers.create({ app_user_id: 'private-user' }));
    simulator.fail({ path: /banks/, fault: { status: 404 } });
    await rejection(api.banks.list());
    const finished = spans.getFinishedSpans();
    expect(finished.map(({ attributes }) => attributes['error.type'])).toEqual(['connection_reset', '404']);
    expect(finished.every(({ status }) => status.code === SpanStatusCode.ERROR)).toBe(true);
    const seen = inspect(
      [finished.map(({ attributes, events }) => ({ attributes, events })), await names()],
      { depth: 10 },
    );
    for (const secret of [accessToken, simulator.clientSecret, 'private-user'])
      expect(seen).not.toContain(secret);
    await api.module.close();
  });

  it('counts calls, retries, token requests, cache hits and the days of the certificate', async () => {
    const options = simulator.moduleOptions({ authentication: 'oauth', clientCertificate: true });
    const api = await startModule(options);
    simulator.fail({ path: /banks/, fault: { status: 502 } });
    await api.banks.list();
    await api.banks.list();
    const found = await names();
    expect(found).toMatchObject({
      'nestjs_service.call.duration': expect.arrayContaining([
        expect.objectContaining({
          attributes: expect.objectContaining({ 'http.response.status_code': 200 }),
        }),
      ]),
      'nestjs_service.retries': expect.arrayContaining([
        expect.objectContaining({ value: 1, attributes: expect.objectContaining({ 'error.type': '502' }) }),
      ]),
      'nestjs_service.token.requests': [expect.objectContaining({ value: expect.any(Number) })],
      'nestjs_service.token.cache_hits': [expect.objectContaining({ value: expect.any(Number) })],
    });
    const gauge = (await measured()).find(
      ({ descriptor }) => descriptor.name === 'nestjs_service.certificate.days_left',
    );
    expect(gauge?.descriptor.unit).toBe('d');
    expect(gauge?.dataPoints[0]?.value).toBeGreaterThan(300);
    await api.module.close();
  });

  it('counts what a token store brings; a token from it is no request to the endpoint', async () => {
    const entries = new Map<string, string>();
    const tokenStore: TokenStore = {
      get: async (key) => entries.get(key),
      set: async (key, value) => void entries.set(key, value),
      delete: async (key) => void entries.delete(key),
    };
    const options = { ...simulator.moduleOptions({ authentication: 'oauth' }), tokenStore };
    const total = async (name: string): Promise<number> => {
      const points = ((await names())[name] ?? []) as { value: number }[];
      return points.reduce((sum, { value }) => sum + value, 0);
    };
    const counts = () =>
      ['requests', 'store_misses', 'store_hits', 'store_faults'].reduce<Promise<number[]>>(
        async (found, name) => [...(await found), await total(`nestjs_service.token.${name}`)],
        Promise.resolve([]),
      );
    const first = await counts();
    const change = async () => (await counts()).map((count, index) => count - first[index]);
    const one = await startModule(options);
    await one.auth.getApiToken();
    expect(await change()).toEqual([1, 1, 0, 0]);
    const other = await startModule(options);
    await other.auth.getApiToken();
    expect(await change()).toEqual([1, 1, 1, 0]);
    tokenStore.get = () => Promise.reject(new Error('down'));
    await other.auth.getCustomerToken('c-1');
    expect(await change()).toEqual([2, 1, 1, 1]);
    await Promise.all([one.module.close(), other.module.close()]);
  });

  it('asks for the days of the certificate no more once the module is closed', async () => {
    let asked = 0;
    const stop = new Telemetry().observeCertificate(() => (asked += 1));
    await names();
    expect(asked).toBe(1);
    stop();
    await names();
    expect(asked).toBe(1);
  });

  it('logs nothing for a successful call, and warns of retries', async () => {
    const logger = new CollectingLogger();
    const api = await startModule(simulator.moduleOptions({ authentication: 'mtls' }), logger);
    const lines = () => logger.lines.filter((line) => typeof line === 'string' && /banks/.test(line));
    await api.banks.list();
    expect(lines()).toEqual([]);
    simulator.fail({ path: /banks/, fault: { status: 503 } });
    await api.banks.list();
    expect(lines()).toEqual(['GET /banks/v1: 503; another attempt follows']);
    simulator.fail({ path: /banks/, fault: { status: 404 } });
    await rejection(api.banks.list());
    expect(lines().at(-1)).toMatch(/^GET \/banks\/v1: 404 after \d+ ms$/);
    await api.module.close();
  });
});

interface QueuePoint {
  attributes: Record<string, unknown>;
  value: { count: number; sum?: number };
}

it('makes spans from the moment on at which the host has an SDK', () => {
  const telemetry = new Telemetry();
  expect(telemetry.tracer).toBeUndefined();
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  expect(telemetry.tracer?.startSpan('call').isRecording()).toBe(true);
  trace.disable();
});
