import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { setImmediate, systemClock } from '../time/time.js';
import {
  classify,
  type ClassifiedError,
  CallCancelled,
  CONNECT_TIMEOUT,
  ExchangeFault,
  type ExchangeFaultDetails,
  FOREIGN_CONNECTION,
  IDLE_CONNECTION_TIMEOUT,
  isUnsent,
} from './fault.js';
import { decode } from './decode.js';
import { ExchangeProgress } from './exchange-progress.js';
import { type ExchangeRequest, type ExchangeResponse } from './io.js';
import { isSuccess } from './response.js';

/**
 * Sends one request with node:http or node:https and reads the whole response. Every status is a response, redirects too.
 * Rejects with an {@link ExchangeFault} if there is no whole response, or with `signal.reason` if the caller aborted.
 */
export function exchange(request: ExchangeRequest): Promise<ExchangeResponse> {
  return new Promise((resolve, reject) => new RunningExchange(request, resolve, reject).start());
}

/** The body of a response without success may have this size, even if `maxResponseBytes` is smaller: it explains the failure. */
const MIN_ERROR_BYTES = 65_536;

interface TimeLimit {
  limitMs: number;
  /** Milliseconds on the monotonic clock. */
  endsAt: number;
  /** The code of the fault when this limit is exceeded. */
  reason?: string;
}

class RunningExchange {
  readonly #progress: ExchangeProgress;
  readonly #startedAt = performance.now();
  #settled = false;
  #stopTimer: (() => void) | undefined = undefined;
  #outgoing: ClientRequest | undefined = undefined;
  #incoming: IncomingMessage | undefined = undefined;

  readonly #request: ExchangeRequest;
  readonly #resolve: (response: ExchangeResponse) => void;
  readonly #reject: (reason: unknown) => void;

  constructor(
    request: ExchangeRequest,
    resolve: (response: ExchangeResponse) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#request = request;
    this.#progress = new ExchangeProgress(request.hasCertificate);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(): void {
    const { signal } = this.#request;
    if (signal?.aborted) return this.#settle(() => this.#reject(signal.reason));
    signal?.addEventListener('abort', this.#onAbort);
    this.#setTimer(Infinity);
    try {
      this.#send();
    } catch (error) {
      // Node throws at once for an invalid method, header name or header value.
      this.#fail({ kind: 'protocol', reason: (error as NodeJS.ErrnoException).code });
    }
  }

  #send(): void {
    const { url, body } = this.#request;
    // Read `request` from the module at each call, because instrumentation and nock replace it.
    const outgoing = (url.protocol === 'https:' ? https : http).request(this.#options());
    this.#outgoing = outgoing;
    // Register this listener before that of the progress: a foreign connection is found before the request counts as sent.
    outgoing.on('socket', (socket) => this.#onSocket(socket));
    this.#progress.observe(outgoing);
    outgoing.on('response', (incoming) => this.#onResponse(incoming));
    // A 101 response, which was not asked for, ends the request in Node without an error or a response.
    outgoing.on('upgrade', (_, socket) => {
      socket.destroy();
      this.#fail({ kind: 'protocol', reason: 'ERR_HTTP_UPGRADE' });
    });
    outgoing.on('error', (error) => {
      // Ignore an error after a whole response, for example because the server sends a body after HEAD.
      if (!this.#incoming?.complete) this.#fail(classify(error));
    });
    // A preconnected socket may fail before its request takes it, for example because the server refuses the client
    // certificate. Node then closes the request without an error, and the call would wait for its time limit.
    outgoing.on('close', () => {
      if (!this.#incoming) this.#fail({ kind: 'reset', reason: 'ECONNRESET' });
    });
    outgoing.end(body);
  }

  /**
   * Fails if another agent has made the connection. Libraries such as global-agent replace the agent of all requests in the
   * process. Their connections lack the client certificate, trust other roots than `tls.chain`, and obey
   * NODE_TLS_REJECT_UNAUTHORIZED. The sockets of mocks have other classes and are allowed.
   */
  #onSocket(socket: Socket): void {
    const { agent } = this.#request;
    const connection = agent.stateOf?.(socket);
    this.#progress.connection = connection;
    const isReal = socket instanceof TLSSocket || socket.constructor === Socket;
    if (agent.stateOf && !connection && isReal) this.#fail({ kind: 'tls', reason: FOREIGN_CONNECTION });
  }

  /**
   * Sets one timer for all time limits, for the shortest. If that limit does not apply when the timer fires, the timer is set
   * again. Timers of equal whole milliseconds are cheap, because Node keeps them in one list.
   */
  #setTimer(leftMs: number): void {
    const { timeoutMs, attemptTimeoutMs = Infinity, connectTimeoutMs = Infinity } = this.#request;
    const { idleConnectionTimeoutMs = Infinity } = this.#request;
    const shortestMs = Math.min(
      leftMs,
      timeoutMs,
      attemptTimeoutMs,
      connectTimeoutMs,
      idleConnectionTimeoutMs,
    );
    this.#stopTimer = systemClock.schedule(() => this.#onTimer(), Math.ceil(shortestMs));
  }

  #onTimer(): void {
    const { limitMs, endsAt, reason } = this.#nextLimit();
    const leftMs = endsAt - performance.now();
    if (leftMs > 0) this.#setTimer(leftMs);
    else this.#fail({ kind: 'timeout', reason, limitMs });
  }

  /** Of the time limits that apply now, the one that ends first. While the request waits for a connection, only `timeoutMs` applies. */
  #nextLimit(): TimeLimit {
    const { timeoutMs, attemptTimeoutMs = Infinity, connectTimeoutMs = Infinity } = this.#request;
    const { idleConnectionTimeoutMs: idleMs = Infinity } = this.#request;
    const { phase, socketAt = Infinity, connection } = this.#progress;
    const limits: TimeLimit[] = [
      { limitMs: timeoutMs, endsAt: this.#startedAt + timeoutMs },
      { limitMs: attemptTimeoutMs, endsAt: socketAt + attemptTimeoutMs },
    ];
    if (isUnsent({ phase }))
      limits.push({
        limitMs: connectTimeoutMs,
        endsAt: socketAt + connectTimeoutMs,
        reason: CONNECT_TIMEOUT,
      });
    else if (phase === 'sent' && connection?.wasIdleLong)
      limits.push({ limitMs: idleMs, endsAt: socketAt + idleMs, reason: IDLE_CONNECTION_TIMEOUT });
    return limits.reduce((first, limit) => (limit.endsAt < first.endsAt ? limit : first));
  }

  #options(): RequestOptions & Pick<ExchangeRequest, 'mayUseOlderConnection'> {
    const { url, method, headers, body, agent, mayUseOlderConnection } = this.#request;
    return {
      protocol: url.protocol,
      hostname: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
      port: url.port,
      path: url.pathname + url.search,
      method,
      // For DELETE and GET, Node does not set Content-Length. Without it, the server would read the body as the next request on
      // the connection (https://www.rfc-editor.org/rfc/rfc9112#section-6).
      // Always a new object: an APM may add its trace header to it (AWS X-Ray does), and the next attempt must not send that one.
      headers: {
        ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
        ...headers,
      },
      agent,
      mayUseOlderConnection,
    };
  }

  #onResponse(incoming: IncomingMessage): void {
    this.#progress.phase = 'reading';
    this.#incoming = incoming;
    const body = new BodyBuffer();
    incoming.on('data', (chunk: Buffer) => {
      if (body.length + chunk.length > this.#maxBytes(incoming)) this.#fail({ kind: 'too_large' });
      else body.add(chunk);
    });
    incoming.on('error', (error) => this.#fail(classify(error)));
    incoming.on('end', () => {
      if (!incoming.complete) return this.#fail({ kind: 'reset' });
      this.#onBody(incoming, body.toBuffer());
    });
  }

  /** A call with a small `maxResponseBytes` may get an error or a redirect, whose body is read up to 64 KiB. */
  #maxBytes(incoming: IncomingMessage): number {
    const { maxResponseBytes } = this.#request;
    return isSuccess(incoming.statusCode ?? 0)
      ? maxResponseBytes
      : Math.max(maxResponseBytes, MIN_ERROR_BYTES);
  }

  #onBody(incoming: IncomingMessage, body: Buffer): void {
    const encoding = incoming.headers['content-encoding'];
    if (!encoding || body.length === 0) return this.#finish(incoming, body);
    decode(body, encoding, this.#maxBytes(incoming)).then(
      (decoded) => this.#finish(incoming, decoded),
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ERR_BUFFER_TOO_LARGE')
          return this.#fail({ kind: 'too_large', reason: error.code });
        // Keep a response without success: its status says what happened. A proxy may have replaced the body by a page of its
        // own and kept the Content-Encoding header.
        if (!isSuccess(incoming.statusCode ?? 0)) return this.#finish(incoming, body);
        this.#fail({ kind: 'protocol', reason: error.code });
      },
    );
  }

  #finish(incoming: IncomingMessage, body: Buffer): void {
    // A fast response may arrive before Node has learned that the request was written. Wait for one turn of the event loop.
    if (this.#outgoing?.writableFinished === false) setImmediate(() => this.#conclude(incoming, body));
    else this.#conclude(incoming, body);
  }

  #conclude(incoming: IncomingMessage, body: Buffer): void {
    const { statusCode: status = 0, statusMessage: statusText = '', headers } = incoming;
    const untilClose = isUntilClose(incoming);
    this.#settle(() => this.#resolve({ status, statusText, headers, body, untilClose }));
    // The server has responded before the whole request was sent. It may never read the rest, so close the connection
    // (https://www.rfc-editor.org/rfc/rfc9112#section-9.3).
    if (this.#outgoing?.writableFinished === false) this.#outgoing.destroy();
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#request.signal?.reason;
    if (reason instanceof CallCancelled) return this.#fail({ kind: 'closed', reason: 'ERR_CANCELED' });
    this.#settle(() => this.#reject(reason));
    this.#outgoing?.destroy();
  };

  #fail(fault: Partial<ClassifiedError> & Pick<ExchangeFaultDetails, 'kind' | 'limitMs'>): void {
    const { kind, reason, opensslText, limitMs } = fault;
    const details = { kind, reason, opensslText, limitMs, ...this.#progress.describeFault(fault) };
    this.#settle(() => this.#reject(new ExchangeFault(details)));
    this.#outgoing?.destroy();
  }

  #settle(outcome: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#stopTimer?.();
    this.#request.signal?.removeEventListener('abort', this.#onAbort);
    outcome();
  }
}

/**
 * Collects the bytes of a body in one buffer, which doubles when it is full. A list of chunks would cost 200 bytes for each
 * chunk, and a server may send chunks of one byte.
 */
class BodyBuffer {
  length = 0;
  #held: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const length = this.length + chunk.length;
    // Most bodies are a single chunk, so use that chunk without a copy. A second chunk never fits into it and copies both.
    if (this.length === 0) this.#held = chunk;
    else {
      if (length > this.#held.length) this.#grow(length);
      chunk.copy(this.#held, this.length);
    }
    this.length = length;
  }

  toBuffer(): Buffer {
    return this.#held.subarray(0, this.length);
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafe(2 * length);
    this.#held.copy(grown, 0, 0, this.length);
    this.#held = grown;
  }
}

/**
 * Whether only the end of the connection ends the body, so that a cut body looks like a whole one
 * (https://www.rfc-editor.org/rfc/rfc9112#section-6.3).
 */
function isUntilClose({ headers }: IncomingMessage): boolean {
  // Chunks end the body only if `chunked` is the last transfer coding. Node does not decode other codings.
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return headers['content-length'] === undefined;
  return !/(^|,)\s*chunked$/i.test(coding);
}
