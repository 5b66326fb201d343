import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { codedError } from '../errors/error-codes.js';
import { setImmediate, systemClock } from '../time/clock.js';
import { classify, type ClassifiedError } from './classify.js';
import { decode } from './decode.js';
import { ExchangeProgress } from './exchange-progress.js';
import {
  CallCancelled,
  CONNECT_TIMEOUT,
  ExchangeFault,
  type ExchangeFaultDetails,
  type ExchangeRequest,
  type ExchangeResponse,
  FOREIGN_CONNECTION,
  isSuccess,
  isUnsent,
  OLD_CONNECTION_TIMEOUT,
} from './exchange.types.js';

/**
 * One exchange over node:http or node:https. Judges neither status nor redirect.
 * Rejects with {@link ExchangeFault}, or with `signal.reason`.
 */
export function exchange(request: ExchangeRequest): Promise<ExchangeResponse> {
  return new Promise((resolve, reject) => new RunningExchange(request, resolve, reject).start());
}

/** Up to here, the body of an answer that is no success is kept. */
const MIN_ERROR_BYTES = 65_536;

interface Limit {
  limitMs: number;
  /** On the monotonic clock. */
  endsAt: number;
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
      // Node checks methods, header names and values before it connects.
      this.#fail({ kind: 'protocol', reason: (error as NodeJS.ErrnoException).code });
    }
  }

  #send(): void {
    const { url, body } = this.#request;
    // Looked up for each call: instrumentation and nock replace it.
    const outgoing = (url.protocol === 'https:' ? https : http).request(this.#options());
    this.#outgoing = outgoing;
    // Before the progress counts it as connected: nothing has been written yet.
    outgoing.on('socket', (socket) => this.#onSocket(socket));
    this.#progress.observe(outgoing);
    outgoing.on('response', (incoming) => this.#onResponse(incoming));
    // Nobody asked for another protocol (101), and Node would say nothing more of this request.
    outgoing.on('upgrade', (_, socket) => {
      socket.destroy();
      this.#fail({ kind: 'protocol', reason: 'ERR_HTTP_UPGRADE' });
    });
    outgoing.on('error', (error) => {
      // An error after a whole answer is ignored: a body after HEAD, for example.
      if (!this.#incoming?.complete) this.#fail(classify(error));
    });
    // Node reports no error if the connection already had one when the request took it: for example if the server refused the
    // client certificate of a connection that was made while the call waited for its token. The call would wait for its time limit.
    outgoing.on('close', () => {
      if (!this.#incoming) this.#fail(classify(codedError('socket hang up', 'ECONNRESET')));
    });
    outgoing.end(body);
  }

  /**
   * Libraries such as global-agent replace the agent of all requests in the process. Their connections lack our client
   * certificate, trust other roots than `tls.chain`, and obey NODE_TLS_REJECT_UNAUTHORIZED. Mocks have sockets of other classes.
   */
  #onSocket(socket: Socket): void {
    const { agent } = this.#request;
    const connection = agent.stateOf?.(socket);
    this.#progress.connection = connection;
    const isReal = socket instanceof TLSSocket || socket.constructor === Socket;
    if (agent.stateOf && !connection && isReal) this.#fail({ kind: 'tls', reason: FOREIGN_CONNECTION });
  }

  /** One timer for all limits: when the shortest is over but does not apply, it is set again. Node shares timers of whole ms. */
  #setTimer(leftMs: number): void {
    const { timeoutMs, attemptTimeoutMs = Infinity, connectTimeoutMs = Infinity } = this.#request;
    const { oldConnectionTimeoutMs = Infinity } = this.#request;
    const shortestMs = Math.min(
      leftMs,
      timeoutMs,
      attemptTimeoutMs,
      connectTimeoutMs,
      oldConnectionTimeoutMs,
    );
    this.#stopTimer = systemClock.schedule(() => this.#onTime(), Math.ceil(shortestMs));
  }

  #onTime(): void {
    const { limitMs, endsAt, reason } = this.#nextLimit();
    const leftMs = endsAt - performance.now();
    if (leftMs > 0) this.#setTimer(leftMs);
    else this.#fail({ kind: 'timeout', reason, limitMs });
  }

  /** The first to end of the limits that apply now: while it waits for a connection, only the whole limit does. */
  #nextLimit(): Limit {
    const { timeoutMs, attemptTimeoutMs = Infinity, connectTimeoutMs = Infinity } = this.#request;
    const { oldConnectionTimeoutMs: oldMs = Infinity } = this.#request;
    const { phase, socketAt = Infinity, connection } = this.#progress;
    const limits: Limit[] = [
      { limitMs: timeoutMs, endsAt: this.#startedAt + timeoutMs },
      { limitMs: attemptTimeoutMs, endsAt: socketAt + attemptTimeoutMs },
    ];
    if (isUnsent({ phase }))
      limits.push({
        limitMs: connectTimeoutMs,
        endsAt: socketAt + connectTimeoutMs,
        reason: CONNECT_TIMEOUT,
      });
    else if (phase === 'sent' && connection?.isOld)
      limits.push({ limitMs: oldMs, endsAt: socketAt + oldMs, reason: OLD_CONNECTION_TIMEOUT });
    return limits.reduce((first, limit) => (limit.endsAt < first.endsAt ? limit : first));
  }

  #options(): RequestOptions & Pick<ExchangeRequest, 'mayRepeat'> {
    const { url, method, headers, body, agent, mayRepeat } = this.#request;
    return {
      protocol: url.protocol,
      hostname: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
      port: url.port,
      path: url.pathname + url.search,
      method,
      // Node sets it by itself for some methods only. A body without it, on DELETE or GET, would be read as the next
      // request on the connection (RFC 9112, 6).
      headers:
        body === undefined ? headers : { 'content-length': String(Buffer.byteLength(body)), ...headers },
      agent,
      mayRepeat,
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

  /** The answer of a call with a small limit may be an error or a redirect, which is to be read. */
  #maxBytes(incoming: IncomingMessage): number {
    const { maxResponseBytes } = this.#request;
    return isSuccess(incoming.statusCode ?? 0)
      ? maxResponseBytes
      : Math.max(maxResponseBytes, MIN_ERROR_BYTES);
  }

  #onBody(incoming: IncomingMessage, body: Buffer): void {
    const encoding = incoming.headers['content-encoding'];
    if (!encoding || encoding.toLowerCase() === 'identity' || body.length === 0)
      return this.#finish(incoming, body);
    decode(body, encoding, this.#maxBytes(incoming)).then(
      (decoded) => this.#finish(incoming, decoded),
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ERR_BUFFER_TOO_LARGE')
          return this.#fail({ kind: 'too_large', reason: error.code });
        // Its status says what happened, and a proxy's own page may have kept the coding of another answer.
        if (!isSuccess(incoming.statusCode ?? 0)) return this.#finish(incoming, body);
        this.#fail({ kind: 'protocol', reason: error.code });
      },
    );
  }

  #finish(incoming: IncomingMessage, body: Buffer): void {
    // Over TLS, Node learns that a write is done only after it has read once more: a fast answer comes first.
    if (this.#outgoing?.writableFinished === false) setImmediate(() => this.#conclude(incoming, body));
    else this.#conclude(incoming, body);
  }

  #conclude(incoming: IncomingMessage, body: Buffer): void {
    const { statusCode: status = 0, statusMessage: statusText = '', headers } = incoming;
    const untilClose = isUntilClose(incoming);
    this.#settle(() => this.#resolve({ status, statusText, headers, body, untilClose }));
    // The server may never read the rest of the request, and the connection would not be free again (RFC 9112, 9.3).
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
 * Collects the bytes of a body in one buffer that doubles. A list of chunks would cost 200 bytes for each, and a server may
 * send chunks of one byte.
 */
class BodyBuffer {
  length = 0;
  #held: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const length = this.length + chunk.length;
    // Most bodies are one chunk, which is not copied, nor written into: it is full.
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

/** Chunks end a body only if `chunked` is the last coding (RFC 9112, 6.3). Node passes on other codings as they come. */
function isUntilClose({ headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return headers['content-length'] === undefined;
  return !/(^|,)\s*chunked$/i.test(coding);
}
