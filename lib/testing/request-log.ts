import { EventEmitter } from 'node:events';
import { type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { type ServiceEnvironment } from '../config/options.js';
import { type CertificateVerdict } from './servers/client-certificate.js';

export const FACES = ['base', 'oauth-base', 'sandbox', 'sandbox-mtls', 'token'] as const;

/**
 * The server at which a request arrived: {base_url}, {oauth_base_url}, {sandbox_url}, {sandbox_mtls_url}, or one of the two
 * token endpoints ({auth_url} and {sandbox_auth_url}; the request's `environment` says which).
 */
export type SimulatorFace = (typeof FACES)[number];

/** A request that arrived. Requests on connections that were refused are never read, so they are not recorded. */
export interface RecordedRequest {
  readonly face: SimulatorFace;
  readonly environment: ServiceEnvironment;
  readonly method: string;
  /** As it was sent, with query. */
  readonly path: string;
  /** Names are in lower case. Repeated headers are joined as node:http does it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values alternate, as they were sent. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
  /** The parsed body. Absent unless the content type is JSON and the body is valid. */
  readonly json?: unknown;
  /** The fields of a form-encoded body. */
  readonly form?: Readonly<Record<string, string>>;
  /** The subject of the client certificate on one line: `CN=billing, O=Example`. Absent if none was offered. */
  readonly certificateSubject?: string;
  readonly certificateFingerprint256?: string;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  /** The number of the connection at its server. Requests with the same number arrived on the same connection. */
  readonly connection: number;
  /** The HTTP status of the response. Absent until there is one. */
  status?: number;
  /** The message of the error that a function of the test threw. The response is then a 500 with `SIMULATOR_FAULT`. */
  error?: string;
}

/** The requests in the order of their arrival. Callers can wait for one. */
export class RequestLog {
  /** The same array all the time: it grows as requests arrive. */
  readonly entries: RecordedRequest[] = [];
  readonly #arrivals = new EventEmitter().setMaxListeners(0);
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(request: RecordedRequest): void {
    this.entries.push(request);
    // Removes half of them at once, because removing the first element copies the whole array.
    if (this.entries.length > this.#limit) this.entries.splice(0, Math.ceil(this.#limit / 2));
    this.#arrivals.emit('request', request);
  }

  clear(): void {
    this.entries.length = 0;
  }

  async waitFor(
    predicate: (request: RecordedRequest) => boolean,
    timeoutMs: number,
  ): Promise<RecordedRequest> {
    const present = this.entries.find(predicate);
    if (present) return present;
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        clearTimeout(timer);
        this.#arrivals.off('request', look).off('end', fail);
        end();
      };
      const fail = (error: Error) => settle(() => reject(error));
      const look = (request: RecordedRequest) => {
        try {
          if (predicate(request)) settle(() => resolve(request));
        } catch (error) {
          fail(error as Error);
        }
      };
      const timer = setTimeout(() => fail(new Error(this.#describeTimeout(timeoutMs))), timeoutMs);
      this.#arrivals.on('request', look).on('end', fail);
    });
  }

  /** Rejects all callers that wait for a request. */
  close(): void {
    this.#arrivals.emit('end', new Error('The simulator was stopped'));
  }

  #describeTimeout(timeoutMs: number): string {
    const seen = this.entries
      .slice(-10)
      .map((request) => `${request.face} ${request.method} ${request.path}`);
    return `No matching request arrived within ${timeoutMs} ms. The last requests: ${seen.join(', ') || 'none'}`;
  }
}

interface Arrival {
  face: SimulatorFace;
  environment: ServiceEnvironment;
  verdict: CertificateVerdict;
  /** The number of the connection. */
  number: number;
}

/** Makes the entry of the request log. */
export function makeRecord(request: IncomingMessage, body: string, arrival: Arrival): RecordedRequest {
  const headers = Object.entries(request.headers).map(([name, value]) => [name, [value].flat().join(', ')]);
  const { subject, fingerprint256 } = arrival.verdict;
  return {
    face: arrival.face,
    environment: arrival.environment,
    method: request.method ?? '',
    path: request.url ?? '',
    headers: Object.fromEntries(headers) as Record<string, string>,
    rawHeaders: request.rawHeaders,
    body,
    ...parseBody(body, request.headers['content-type'] ?? ''),
    ...(subject === undefined ? {} : { certificateSubject: subject }),
    ...(fingerprint256 === undefined ? {} : { certificateFingerprint256: fingerprint256 }),
    receivedAt: Date.now(),
    connection: arrival.number,
  };
}

function parseBody(body: string, contentType: string): Pick<RecordedRequest, 'json' | 'form'> {
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) {
    return { form: Object.fromEntries(new URLSearchParams(body)) };
  }
  if (!/^application\/(?:[\w.+-]*\+)?json\b/i.test(contentType) || body === '') return {};
  try {
    return { json: JSON.parse(body) as unknown };
  } catch {
    return {};
  }
}

/** Reads the whole body. Resolves to undefined if the client closes the connection before the end. */
export async function readRequestBody(request: IncomingMessage): Promise<string | undefined> {
  try {
    return await text(request);
  } catch {
    return undefined;
  }
}
