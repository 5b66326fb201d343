import {
  formToJSON,
  toFormData,
  type AxiosRequestHeaders,
  type FormSerializerOptions,
  type InternalAxiosRequestConfig,
} from 'axios';
import { cleanText, ServiceRequestError } from '../errors/index.js';

export interface EncodedBody {
  body?: string | Uint8Array;
  /** Where the body brings a type of its own (a form's boundary). */
  contentType?: string;
}

// Both written out: a property that is missing would be looked for in Object.prototype.
const NO_BODY: EncodedBody = { body: undefined, contentType: undefined };
const INSTEAD =
  'send a string, Buffer, FormData or Blob; to stream, use a client of your own with auth.httpsAgent and auth.authorizationHeaders()';

/**
 * Refuses streams as body, and leaves them as they are: not read, not closed, without a listener. A stream can be sent
 * once only, so no retry and no second try with another token would be possible. Throws ServiceRequestError.
 */
export function refuseStream(data: unknown): void {
  if (typeof data !== 'object' || data === null) return;
  const { pipe, getReader, getBoundary } = data as Record<string, unknown>;
  if (typeof pipe === 'function' && typeof getBoundary === 'function') {
    throw ServiceRequestError.of(
      'data',
      "is a form of the form-data package; use the global FormData, with Blobs for a file's bytes",
    );
  }
  const isStream =
    typeof pipe === 'function' || typeof getReader === 'function' || Symbol.asyncIterator in data;
  if (isStream) throw ServiceRequestError.of('data', `is a stream; ${INSTEAD}`);
}

/** The same for the fields of a form, where axios would send the text "[object Object]" for a stream. */
function refuseStreamFields(data: unknown, seen = new Set<unknown>()): void {
  refuseStream(data);
  if (typeof data !== 'object' || data === null || ArrayBuffer.isView(data) || seen.has(data)) return;
  seen.add(data);
  for (const value of Object.values(data)) refuseStreamFields(value, seen);
}

/** The error for data or params of which neither JSON nor a form can be made. */
export function notEncoded(property: string, error: unknown): ServiceRequestError {
  if (error instanceof ServiceRequestError) return error;
  const { message } = Object(error) as Partial<Error>;
  return ServiceRequestError.of(property, cleanText(`could not be encoded (${String(message)})`, [], 200));
}

const MAX_LEVELS = 1_000;

/** Refuses what contains itself, and what is nested deeper than readers of JSON accept. Throws ServiceRequestError. */
export function refuseNesting(property: string, value: unknown, levels = MAX_LEVELS): void {
  if (!Array.isArray(value) && !isPlainObject(value)) return;
  if (levels === 0) {
    throw ServiceRequestError.of(property, `contains itself, or is nested deeper than ${MAX_LEVELS} levels`);
  }
  for (const inner of Object.values(value)) refuseNesting(property, inner, levels - 1);
}

/** Also one of another realm, or without a prototype. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Runs the transforms of a request's body, ours and a host's, which may also change the config. */
export function transformBody(config: InternalAxiosRequestConfig): void {
  const { transformRequest, headers } = config;
  if (typeof config.data === 'object' && config.data !== null) {
    refuseStream(config.data);
    if (/form/i.test(String(headers.getContentType() ?? ''))) refuseStreamFields(config.data);
    config.data = wholeBuffer(config.data);
    // For postForm and the like axios would take the form-data package.
    config.env = { FormData };
  }
  for (const transform of [transformRequest ?? []].flat()) {
    config.data = transform.call(config, config.data, headers) as unknown;
  }
}

/** Left to `encodeBody`, also where they are of another realm or a polyfill. */
const SENT_AS_IS = new Set(['ArrayBuffer', 'Blob', 'File']);
const FORM_TYPE = 'application/x-www-form-urlencoded';

/**
 * Makes text of an object, and sets the content type where the host set none. It is the first of `transformRequest`, and
 * does what axios's own does. That one is not used: a host may have changed it, for its calls of other services.
 */
export function encodeData(
  this: Pick<InternalAxiosRequestConfig, 'formSerializer'> | undefined,
  data: unknown,
  headers: AxiosRequestHeaders,
): unknown {
  try {
    return encode(data, headers, this?.formSerializer);
  } catch (error) {
    throw notEncoded('data', error);
  }
}

function encode(
  data: unknown,
  headers: AxiosRequestHeaders,
  formSerializer?: FormSerializerOptions,
): unknown {
  const type = String(headers.getContentType() ?? '');
  const isJson = type.includes('application/json');
  const kind = Object.prototype.toString.call(data).slice(8, -1);
  if (kind === 'FormData') return isJson ? JSON.stringify(formToJSON(data as FormData)) : data;
  if (SENT_AS_IS.has(kind)) return data;
  if (ArrayBuffer.isView(data)) return wholeBuffer(data);
  if (kind === 'URLSearchParams') {
    headers.setContentType(`${FORM_TYPE};charset=utf-8`, false);
    return String(data);
  }
  const isObject = typeof data === 'object' && data !== null;
  if (isObject) {
    refuseStream(data);
    if (type.includes(FORM_TYPE)) return toUrlEncoded(data, formSerializer);
    if (type.includes('multipart/form-data')) return toFormData(data, new FormData(), formSerializer);
  }
  if (!isObject && !isJson) return data;
  headers.setContentType('application/json', false);
  return toJson(data);
}

/** A text that is JSON already is sent as it is. */
function toJson(data: unknown): string | undefined {
  if (typeof data !== 'string') return JSON.stringify(data);
  try {
    JSON.parse(data);
    return data.trim();
  } catch {
    return JSON.stringify(data);
  }
}

function toUrlEncoded(data: object, options?: FormSerializerOptions): string {
  const visitor: FormSerializerOptions['visitor'] = function (value, key, path, helpers) {
    if (!Buffer.isBuffer(value)) return helpers.defaultVisitor.call(this, value, key, path, helpers);
    this.append(String(key), value.toString('base64'));
    return false;
  };
  const params = new URLSearchParams();
  toFormData(data, params, { visitor, ...options });
  return params.toString();
}

/**
 * What axios's transforms made of a body -> bytes; a promise for forms and Blobs only. Throws ServiceRequestError for
 * what cannot be sent.
 */
export function encodeBody(data: unknown): EncodedBody | Promise<EncodedBody> {
  if (data === undefined || data === null) return NO_BODY;
  refuseStream(data);
  if (typeof data === 'string' || data instanceof Uint8Array) return { ...NO_BODY, body: data };
  if (data instanceof ArrayBuffer) return { ...NO_BODY, body: Buffer.from(data) };
  if (data instanceof URLSearchParams) return { ...NO_BODY, body: data.toString() };
  if (data instanceof FormData || data instanceof Blob) return encodeForm(data);
  throw ServiceRequestError.of('data', 'is of a kind that cannot be sent');
}

async function encodeForm(data: FormData | Blob): Promise<EncodedBody> {
  const encoded = new Response(data);
  const contentType = encoded.headers.get('content-type') ?? undefined;
  return { body: Buffer.from(await encoded.arrayBuffer()), contentType };
}

/** Axios would send all of the memory that a view is part of. */
function wholeBuffer(data: unknown): unknown {
  if (!ArrayBuffer.isView(data) || Buffer.isBuffer(data)) return data;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
