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

interface Waiter {
  predicate: (request: RecordedRequest) => boolean;
  resolve: (request: RecordedRequest) => void;
  reject: (error: unknown) => void;
  timer: NodeJS.Timeout;
}

/** The requests in order of arrival, and the callers that wait for one. */
export class RequestLog {
  readonly #entries: RecordedRequest[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Grows as requests arrive. */
  get entries(): readonly RecordedRequest[] {
    return this.#entries;
  }

  add(request: RecordedRequest): void {
    this.#entries.push(request);
    // Half of them at once: removing one at each request would move the whole array each time.
    if (this.#entries.length > this.#limit) this.#entries.splice(0, Math.ceil(this.#limit / 2));
    for (const waiter of [...this.#waiters]) {
      try {
        if (waiter.predicate(request)) this.#settle(waiter, () => waiter.resolve(request));
      } catch (error) {
        this.#settle(waiter, () => waiter.reject(error));
      }
    }
  }

  clear(): void {
    this.#entries.length = 0;
  }

  async waitFor(
    predicate: (request: RecordedRequest) => boolean,
    timeoutMs: number,
  ): Promise<RecordedRequest> {
    const present = this.#entries.find(predicate);
    if (present) return present;
    return new Promise((resolve, reject) => {
      const expire = () => this.#settle(waiter, () => reject(new Error(this.#explain(timeoutMs))));
      const waiter: Waiter = { predicate, resolve, reject, timer: setTimeout(expire, timeoutMs) };
      this.#waiters.add(waiter);
    });
  }

  /** Rejects all who wait. */
  close(): void {
    for (const waiter of [...this.#waiters]) {
      this.#settle(waiter, () => waiter.reject(new Error('The simulator was stopped')));
    }
  }

  #settle(waiter: Waiter, settle: () => void): void {
    clearTimeout(waiter.timer);
    this.#waiters.delete(waiter);
    settle();
  }

  #explain(timeoutMs: number): string {
    const seen = this.#entries
      .slice(-10)
      .map((request) => `${request.face} ${request.method} ${request.path}`);
    return `No such request within ${timeoutMs} ms. The last ones: ${seen.join(', ') || 'none'}`;
  }
}
