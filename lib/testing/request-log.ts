import { EventEmitter } from 'node:events';
import { type ServiceEnvironment } from '../config/options.js';

export const FACES = ['base', 'oauth-base', 'sandbox', 'sandbox-mtls', 'token'] as const;

/**
 * The server that a request arrived at: {base_url}, {oauth_base_url}, {sandbox_url}, {sandbox_mtls_url}, or one of the
 * two token endpoints ({auth_url}, {sandbox_auth_url}: see the request's `environment`).
 */
export type SimulatorFace = (typeof FACES)[number];

/** One request. Requests on refused connections are not read, so they are not recorded. */
export interface RecordedRequest {
  readonly face: SimulatorFace;
  readonly environment: ServiceEnvironment;
  readonly method: string;
  /** As on the wire, with query. */
  readonly path: string;
  /** Names are in lower case. Several values of one name are joined as node:http joins them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values alternate, as on the wire. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
  /** The body, parsed, if its content type is JSON and it parses. */
  readonly json?: unknown;
  /** The fields of a form-encoded body. */
  readonly form?: Readonly<Record<string, string>>;
  /** The client certificate's subject on one line: `CN=billing, O=Example`. Absent: none was offered. */
  readonly certificateSubject?: string;
  readonly certificateFingerprint256?: string;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  /** The number of the connection on its server. Requests with the same number shared a connection. */
  readonly connection: number;
  /** The HTTP status of the answer; absent while there is none. */
  status?: number;
  /** What a function of the test threw, if the answer is `SIMULATOR_FAULT` for that. */
  error?: string;
}

/** The requests in order of arrival, and the callers that wait for one. */
export class RequestLog {
  /** Grows as requests arrive. */
  readonly entries: RecordedRequest[] = [];
  readonly #arrivals = new EventEmitter().setMaxListeners(0);
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(request: RecordedRequest): void {
    this.entries.push(request);
    // Half of them at once: removing one at each request would move the whole array each time.
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
      const timer = setTimeout(() => fail(new Error(this.#explain(timeoutMs))), timeoutMs);
      this.#arrivals.on('request', look).on('end', fail);
    });
  }

  /** Rejects all who wait. */
  close(): void {
    this.#arrivals.emit('end', new Error('The simulator was stopped'));
  }

  #explain(timeoutMs: number): string {
    const seen = this.entries
      .slice(-10)
      .map((request) => `${request.face} ${request.method} ${request.path}`);
    return `No such request within ${timeoutMs} ms. The last ones: ${seen.join(', ') || 'none'}`;
  }
}
