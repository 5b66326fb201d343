import { type InternalAxiosRequestConfig } from 'axios';
import { Readable } from 'node:stream';
import { EXCHANGE_HEADERS } from '../config/reserved-headers.js';
import { ServiceRequestError } from '../errors/index.js';
import { ACCEPTED_ENCODINGS } from '../exchange/decode.js';
import { type Targets } from './targets.js';

/** One call as it goes over the wire, however many attempts it takes. */
export interface Call {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body?: string | Uint8Array | Readable;
  /** A stream can be sent once only. */
  replayable: boolean;
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

const NO_BODY: { body?: Call['body']; contentType?: string } = {};

/** Axios's config after its interceptors -> a call. Throws ServiceRequestError for what cannot be sent. */
export async function toCall(config: InternalAxiosRequestConfig, targets: Targets): Promise<Call> {
  const { body, contentType } = config.data === undefined ? NO_BODY : await toBody(config.data);
  const headers = toHeaders(config);
  if (contentType) headers['content-type'] = contentType;
  if (body === undefined) delete headers['content-type'];
  return {
    method: toMethod(config.method),
    url: targets.resolve(config.url),
    headers,
    body,
    replayable: !(body instanceof Readable),
  };
}

function toMethod(given: unknown = 'get'): string {
  const method = typeof given === 'string' ? given.toUpperCase() : '';
  if (METHOD.test(method) && method !== 'CONNECT' && method !== 'TRACE') return method;
  throw new ServiceRequestError([{ property: 'method', message: 'is none that can be sent' }]);
}

function toHeaders(config: InternalAxiosRequestConfig): Record<string, string> {
  const headers: Record<string, string> = { 'accept-encoding': ACCEPTED_ENCODINGS };
  for (const [name, value] of Object.entries(config.headers)) {
    const key = name.toLowerCase();
    if (value === null || value === undefined || value === false || EXCHANGE_HEADERS.has(key)) continue;
    const text = Array.isArray(value) ? value.join(', ') : String(value);
    if (!HEADER_NAME.test(key)) throw refusedHeader('a header', 'has a name that no header can have');
    if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
      throw refusedHeader(`header ${key}`, 'holds a character no header can hold');
    }
    headers[key] = text;
  }
  return headers;
}

function refusedHeader(property: string, message: string): ServiceRequestError {
  return new ServiceRequestError([{ property, message }]);
}

async function toBody(data: unknown): Promise<{ body?: Call['body']; contentType?: string }> {
  if (data === undefined || data === null) return {};
  if (typeof data === 'string' || data instanceof Uint8Array || data instanceof Readable)
    return { body: data };
  if (data instanceof ArrayBuffer) return { body: Buffer.from(data) };
  if (data instanceof URLSearchParams) return { body: data.toString() };
  if (data instanceof FormData || data instanceof Blob) {
    const encoded = new Response(data);
    const contentType = encoded.headers.get('content-type') ?? undefined;
    return { body: Buffer.from(await encoded.arrayBuffer()), contentType };
  }
  throw new ServiceRequestError([{ property: 'data', message: 'is of a kind that cannot be sent' }]);
}
