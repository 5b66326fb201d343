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
export function refuseStreamFields(data: unknown, seen = new Set<unknown>()): void {
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
export function wholeBuffer(data: unknown): unknown {
  if (!ArrayBuffer.isView(data) || Buffer.isBuffer(data)) return data;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
