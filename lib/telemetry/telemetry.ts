import {
  createNoopMeter,
  metrics,
  trace,
  type Attributes,
  type Counter,
  type Histogram,
  type Meter,
  type ObservableResult,
  type ProxyTracerProvider,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { isPromise } from 'node:util/types';
import { type ExchangeRequest } from '../exchange/exchange.types.js';
import { VERSION } from '../version.js';

const NAME = 'nestjs-service';
const PREFIX = 'nestjs_service.';
/** Seconds, as the HTTP conventions advise. The default of an SDK is in milliseconds. */
const HTTP_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/**
 * The module's OpenTelemetry instruments. They do nothing without an SDK in the host, and need no configuration with
 * one. None throws, whatever the SDK does. No attribute contains a token, a key, a customer or a query.
 */
export class Telemetry {
  #tracer: Tracer | undefined = undefined;
  /** Not named as in the HTTP conventions: under that name, HTTP instrumentation measures each attempt. */
  readonly callDuration = duration('call.duration', 'Duration of calls of the service, retries included.');
  readonly retries = counter('retries', 'retry', 'Attempts of calls after the first.');
  readonly tokenRequests = counter('token.requests', 'request', 'Requests to the token endpoint.');
  readonly tokenCacheHits = counter('token.cache_hits', 'hit', 'Tokens served from the cache.');
  readonly storeHits = counter('token.store_hits', 'hit', 'Tokens that the token store had.');
  readonly storeMisses = counter('token.store_misses', 'miss', 'Tokens that the token store did not have.');
  readonly storeFaults = counter('token.store_faults', 'fault', 'Failed or late calls of the token store.');
  readonly storeLockWaits = counter(
    'token.store_lock_waits',
    'wait',
    'Token requests that waited for another process.',
  );
  /** The attributes of every measurement: the module's name, if it has one. */
  readonly attributes: Attributes;
  /** Measures how long a request waited for a free connection. Undefined if nothing is measured. */
  readonly onQueued?: ExchangeRequest['onQueued'];

  constructor(module?: string) {
    const queueTime = duration('connection.queue_time', 'Time that requests wait for a free connection.');
    if (queueTime) this.onQueued = (ms, url) => queueTime.record(ms / 1000, this.attributesOf(url));
    this.attributes = module === undefined ? {} : { [`${PREFIX}module`]: module };
  }

  /** Undefined while the host has no SDK: the attributes of spans need not be made then. */
  get tracer(): Tracer | undefined {
    return (this.#tracer ??= harmless(() => {
      const provider: TracerProvider & Partial<ProxyTracerProvider> = trace.getTracerProvider();
      // The API's own stands in for the SDK until there is one.
      const { getDelegateTracer: delegate } = provider;
      return delegate ? delegate.call(provider, NAME, VERSION) : provider.getTracer(NAME, VERSION);
    }));
  }

  /** The attributes of a request to this server. */
  attributesOf({ protocol, hostname, port }: ExchangeRequest['url']): Attributes {
    return {
      ...this.attributes,
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
    };
  }

  /** Reports the days until the client certificate expires, if there is one. Returns a function that stops this. */
  observeCertificate(daysLeft: () => number | undefined): () => void {
    const settings = { unit: 'd', description: 'Days until the client certificate expires.' };
    const gauge = made((meter) => meter.createObservableGauge(`${PREFIX}certificate.days_left`, settings));
    const report = (result: ObservableResult): void => {
      const days = daysLeft();
      if (days !== undefined) result.observe(days, this.attributes);
    };
    harmless(() => gauge?.addCallback(report));
    return () => void harmless(() => gauge?.removeCallback(report));
  }
}

function counter(name: string, counted: string, description: string): Pick<Counter, 'add'> {
  const found = made((meter) => meter.createCounter(PREFIX + name, { unit: `{${counted}}`, description }));
  return { add: (value, attributes) => void harmless(() => found?.add(value, attributes)) };
}

/** Undefined if nothing is measured: the attributes need not be made then. */
function duration(name: string, description: string): Pick<Histogram, 'record'> | undefined {
  const settings = { unit: 's', description, advice: { explicitBucketBoundaries: HTTP_BUCKETS } };
  const found = made((meter) => meter.createHistogram(PREFIX + name, settings));
  return found && { record: (value, attributes) => void harmless(() => found.record(value, attributes)) };
}

function made<T>(make: (meter: Meter) => T): T | undefined {
  return harmless(() => {
    const meter = metrics.getMeter(NAME, VERSION);
    return meter === createNoopMeter() ? undefined : make(meter);
  });
}

/**
 * Calls code of the host that only watches: a logger, OpenTelemetry. Its errors and rejections are dropped: a call, a
 * rotation or a token is worth more.
 */
export function harmless<T>(call: () => T): T | undefined {
  try {
    const result = call();
    // Nobody waits for it: its rejection would end the process.
    if (isPromise(result)) result.catch(() => undefined);
    return result;
  } catch {
    return undefined;
  }
}
