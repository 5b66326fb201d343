import { formToJSON, toFormData, type AxiosRequestHeaders, type FormSerializerOptions } from 'axios';
import { notEncoded, refuseStream, wholeBuffer } from './body.js';

/** Left to `encodeBody`, also where they are of another realm or a polyfill. */
const SENT_AS_IS = new Set(['ArrayBuffer', 'Blob', 'File']);
const FORM_TYPE = 'application/x-www-form-urlencoded';

interface Options {
  formSerializer?: FormSerializerOptions;
}

/**
 * Makes text of an object, and sets the content type where the host set none. It is the first of `transformRequest`, and
 * does what axios's own does. That one is not used: a host may have changed it, for its calls of other services.
 */
export function encodeData(this: Options | undefined, data: unknown, headers: AxiosRequestHeaders): unknown {
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
