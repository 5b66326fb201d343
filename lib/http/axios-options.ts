import { type InternalAxiosRequestConfig } from 'axios';
import { ServiceRequestError } from '../errors/index.js';

const PARSED =
  "is not used, because the response is parsed before axios would call it: set responseType 'text', and parse the text in parse";
const BROWSER = 'is for browsers: leave it out';
const CONNECTS =
  'is not used, because the module opens its own connections: set its options urls, tls and http, or use a client of your own with auth.httpsAgent';
const REDIRECTS = 'is not used, because redirects are never followed: set the address they lead to';
const PROGRESS = 'is never called, because bodies are sent and read as a whole: leave it out';
const FORMS = 'is not used, because objects are never converted to forms: send URLSearchParams or FormData';
const UNSET = [null];

/**
 * The options of axios that have no effect here. If they were ignored silently, an application that moves its calls to this
 * module would get other data, or use another connection, without noticing. So a call with one of them is refused.
 */
const REFUSALS: readonly [names: string, instead: string, same?: readonly unknown[]][] = [
  // In axios, `transformResponse: null` switches the parsing off, so null is refused too.
  ['transformResponse', PARSED, []],
  ['parseReviver', PARSED],
  ['responseEncoding', "is not used: set responseType 'bytes', and decode them", [null, 'utf8', 'utf-8']],
  ['auth', 'is not sent, because the module authenticates its calls by itself: leave it out'],
  ['proxy', "is not used: set the module's option http.proxy", [null, false]],
  // `auth.httpsAgent` itself is accepted.
  ['httpAgent httpsAgent', CONNECTS],
  ['socketPath allowedSocketPaths transport lookup family env fetchOptions http2Options', CONNECTS],
  ['httpVersion', CONNECTS, [null, 1]],
  ['insecureHTTPParser', CONNECTS, [null, false]],
  ['maxRedirects', REDIRECTS, [null, 0]],
  ['beforeRedirect', REDIRECTS],
  ['decompress', 'is not used, because responses are always decompressed: leave it out', [null, true]],
  ['maxContentLength', 'is not used: set maxResponseBytes'],
  ['maxBodyLength', 'is not used, because a body may be of any size: leave it out', [null, -1, Infinity]],
  ['maxRate', 'is not used: leave it out'],
  ['timeoutErrorMessage', 'is not used: a time-out is a ServiceConnectionError, with a message of its own'],
  ['onUploadProgress onDownloadProgress', PROGRESS],
  ['formSerializer formDataHeaderPolicy', FORMS],
  ['withCredentials withXSRFToken', BROWSER, [null, false]],
  ['xsrfCookieName xsrfHeaderName', BROWSER, [null, '']],
];

/** The refusals, by the name of the option. */
export const REFUSED = new Map(
  REFUSALS.flatMap(([names, instead, same = UNSET]) =>
    names.split(' ').map((name) => [name, { instead, same }] as const),
  ),
);

/**
 * Throws ServiceRequestError for an option of axios that has no effect here.
 * @param config the options of a call, merged with the defaults of its instance
 * @param ownAgent `auth.httpsAgent`, over which calls are sent anyway
 */
export function refuseAxiosOptions(config: InternalAxiosRequestConfig, ownAgent: unknown): void {
  for (const name of Object.keys(config)) {
    const refusal = REFUSED.get(name);
    if (refusal === undefined) continue;
    const value = config[name as 'auth'] as unknown;
    const isSame = value === undefined || value === ownAgent || refusal.same.includes(value);
    if (!isSame) throw ServiceRequestError.ofMisuse(name, refusal.instead);
  }
  if (config.transitional?.forcedJSONParsing === false)
    throw ServiceRequestError.ofMisuse('transitional.forcedJSONParsing', PARSED);
}
