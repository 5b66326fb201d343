import { propagation, type Context, type TextMapSetter } from '@opentelemetry/api';

/** W3C Trace Context. Baggage is left out: a host may keep data of its users in it, which is not for the service. */
const SENT: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);
const SENDABLE = /^[\x20-\x7e]+$/;

const setter: TextMapSetter<Record<string, string>> = {
  set: (headers, name, value) => {
    const key = name.toLowerCase();
    if (SENT.has(key) && headers[key] === undefined && SENDABLE.test(value)) headers[key] = value;
  },
};

/**
 * Adds `traceparent` and `tracestate` by the host's propagator, unless the caller set a `traceparent`. HTTP
 * instrumentation puts those of its own spans, one for each attempt, in their place.
 * @param headers with names in lower case
 */
export function addTraceHeaders(headers: Record<string, string>, traced: Context): void {
  if (headers.traceparent === undefined) propagation.inject(traced, headers, setter);
}
