import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type AttemptOutcome, type AttemptTrace } from '../telemetry/telemetry.js';
import { setImmediate, systemClock } from '../time/time.js';
import { isUntilClose, readBody } from './body.js';
import { type OfferedCertificate, refusesHandshake, verdictOfEnd } from './response.js';
import {
  CallCancelled,
  classify,
  type ClassifiedError,
  CONNECT_TIMEOUT,
  ExchangeFault,
  type ExchangeFaultDetails,
  type ExchangePhase,
  type OccurredFault,
  FOREIGN_CONNECTION,
  IDLE_CONNECTION_TIMEOUT,
  isUnsent,
} from './fault.js';
import { type ExchangeConnection, type ExchangeRequest, type ExchangeResponse } from './io.js';

/**
 * Sends one request with node:http or node:https and reads the whole response. Every status is a response, redirects too.
 * Rejects with an {@link ExchangeFault} if there is no whole response, or with `signal.reason` if the caller aborted.
 */
export function exchange(request: ExchangeRequest): Promise<ExchangeResponse> {
  return new Promise((resolve, reject) => new RunningExchange(request, resolve, reject).start());
}

/** A time limit that applies in the phase of the moment. */
interface PhaseLimit {
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
    this.#progress = new ExchangeProgress(request.certificate, request.trace);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(): void {
    const { signal } = this.#request;
    if (signal?.aborted) return this.#settle('aborted', () => this.#reject(signal.reason));
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
    outgoing.on('socket', (socket: Socket | TLSSocket) => this.#onSocket(outgoing, socket));
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
  #onSocket(outgoing: ClientRequest, socket: Socket | TLSSocket): void {
    const { agent } = this.#request;
    const connection = agent.stateOf?.(socket);
    const isReal = socket instanceof TLSSocket || socket.constructor === Socket;
    if (agent.stateOf && !connection && isReal) this.#fail({ kind: 'tls', reason: FOREIGN_CONNECTION });
    else this.#progress.onSocket(outgoing, socket, connection);
  }

  /**
   * Sets one timer for all time limits, for the shortest. If that limit does not apply when the timer fires, the timer is set
   * again. Timers of equal whole milliseconds are cheap, because Node keeps them in one list.
   */
  #setTimer(leftMs: number): void {
    const { timeoutMs, attemptTimeoutMs = Infinity, connectTimeoutMs = Infinity } = this.#request;
    const { idleConnectionTimeoutMs: idleMs = Infinity } = this.#request;
    const shortestMs = Math.min(leftMs, timeoutMs, attemptTimeoutMs, connectTimeoutMs, idleMs);
    this.#stopTimer = systemClock.schedule(() => this.#onTimer(), Math.ceil(shortestMs));
  }

  #onTimer(): void {
    const { limitMs, endsAt, reason } = this.#nextLimit();
    const leftMs = endsAt - performance.now();
    if (leftMs > 0) this.#setTimer(leftMs);
    else this.#fail({ kind: 'timeout', reason, limitMs });
  }

  /** Of the time limits that apply now, the one that ends first. While the request waits for a connection, only `timeoutMs` applies. */
  #nextLimit(): PhaseLimit {
    const { timeoutMs, attemptTimeoutMs = Infinity, connectTimeoutMs = Infinity } = this.#request;
    const { idleConnectionTimeoutMs: idleMs = Infinity } = this.#request;
    const { phase, socketAt = Infinity, connection } = this.#progress;
    const limits: PhaseLimit[] = [
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
    this.#request.trace?.mark('firstByteMs');
    this.#incoming = incoming;
    const onBody = (body: Buffer): void => this.#finish(incoming, body);
    readBody(incoming, this.#request.maxResponseBytes, onBody, (fault) => this.#fail(fault));
  }

  #finish(incoming: IncomingMessage, body: Buffer): void {
    // A fast response may arrive before Node has learned that the request was written. Wait for one turn of the event loop.
    if (this.#outgoing?.writableFinished === false) setImmediate(() => this.#conclude(incoming, body));
    else this.#conclude(incoming, body);
  }

  #conclude(incoming: IncomingMessage, body: Buffer): void {
    const { statusCode: status = 0, statusMessage: statusText = '', headers } = incoming;
    const untilClose = isUntilClose(incoming);
    this.#settle(status, () => this.#resolve({ status, statusText, headers, body, untilClose }));
    // The server has responded before the whole request was sent. It may never read the rest, so close the connection
    // (https://www.rfc-editor.org/rfc/rfc9112#section-9.3).
    if (this.#outgoing?.writableFinished === false) this.#outgoing.destroy();
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#request.signal?.reason;
    if (reason instanceof CallCancelled) return this.#fail({ kind: 'closed', reason: 'ERR_CANCELED' });
    if (!isUnsent(this.#progress)) this.#request.onLost?.();
    this.#settle('aborted', () => this.#reject(reason));
    this.#outgoing?.destroy();
  };

  #fail(fault: OccurredFault): void {
    const { alert: _, ...known } = fault;
    const details = { ...known, ...this.#progress.describeFault(fault) };
    this.#settle(fault.kind, () => this.#reject(new ExchangeFault(details)));
    this.#outgoing?.destroy();
  }

  #settle(outcome: AttemptOutcome, conclude: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#request.trace?.end(outcome);
    this.#stopTimer?.();
    this.#request.signal?.removeEventListener('abort', this.#onAbort);
    conclude();
  }
}

/** Observes how far a request gets, which decides whether the server can have executed it. */
export class ExchangeProgress {
  phase: ExchangePhase = 'queued';
  reusedSocket = false;
  /** When the wait for a free connection ended, on the monotonic clock. */
  socketAt: number | undefined = undefined;
  /** What the agent knows about the connection. */
  connection: ExchangeConnection | undefined = undefined;
  #socket: Socket | TLSSocket | undefined = undefined;
  #isTls13 = false;
  #isAccepted = false;
  /** The server has sent its ServerHello, so an alert or reset from now on may be about our certificate. */
  #hasServerHello = false;

  constructor(
    private readonly certificate?: OfferedCertificate,
    private readonly trace?: AttemptTrace,
  ) {}

  onSocket(request: ClientRequest, socket: Socket | TLSSocket, connection?: ExchangeConnection): void {
    this.socketAt = performance.now();
    this.phase = 'connecting';
    this.connection = connection;
    this.#socket = socket;
    // Node does not set `reusedSocket` for a request that waited in the agent's queue.
    this.reusedSocket = request.reusedSocket || socket.bytesRead > 0;
    if (this.trace) this.trace.attempt.connection = this.reusedSocket ? 'reused' : 'new';
    const secure = 'secureConnecting' in socket;
    const pending = secure ? socket.secureConnecting : socket.connecting;
    // On a preconnected socket the handshake may be over, and its session ticket may have arrived already.
    this.#isAccepted = secure && !pending && connection?.hasTicket !== false;
    if (secure && !this.reusedSocket) socket.once('session', () => (this.#isAccepted = true));
    if (!pending) return this.#onConnected();
    socket.once(secure ? 'secureConnect' : 'connect', () => this.#onConnected());
    // Node emits `keylog` from the ServerHello on. The listener ignores the key material.
    if (secure && this.certificate) socket.once('keylog', () => (this.#hasServerHello = true));
    // A real socket accepts the request only once TCP has connected. The socket of a mock (nock 15, msw 3) accepts it before
    // and never emits `connect`. Count the request as sent then, so that a slow mock looks like a slow service.
    request.once('finish', () => socket.connecting && !socket.destroyed && this.#onConnected());
  }

  /** The details of a fault that occurs at this moment. */
  describeFault({ kind, alert }: Partial<ClassifiedError>): Omit<ExchangeFaultDetails, 'kind'> {
    const { phase, reusedSocket } = this;
    const addresses = this.#socket?.autoSelectFamilyAttemptedAddresses;
    // Over TLS 1.3, the server refuses our certificate only after the request was sent.
    const isSent = !isUnsent(this);
    const isPending = this.isHandshakePending && (isSent || this.#hasServerHello);
    const handshake = { isOverForUs: isSent, isPending };
    return {
      // An error with the kind `proxy` occurs only before the tunnel is open, so nothing of the request was sent.
      phase: kind === 'proxy' ? 'connecting' : phase,
      reusedSocket,
      certificateVerdict: verdictOfEnd({ kind, alert }, this.certificate, handshake),
      handshakeRefused: isSent && isPending && refusesHandshake(alert),
      ...(phase === 'connecting' && addresses && { addresses }),
    };
  }

  /**
   * Whether a fatal alert can still mean that the server refuses our handshake. In TLS 1.3 the client sends its certificate and
   * its first request together, so the refusal arrives after the request was sent. In TLS 1.2 it arrives before. The server
   * has accepted the handshake as soon as there is a session ticket
   * (https://www.rfc-editor.org/rfc/rfc8446#section-4.6.1), a byte of a response (1xx too), or a later request.
   */
  get isHandshakePending(): boolean {
    if (isUnsent(this)) return true;
    if (this.phase !== 'sent' || !this.#isTls13 || this.#isAccepted) return false;
    return !this.reusedSocket && this.#socket?.bytesRead === 0;
  }

  #onConnected(): void {
    if (this.phase !== 'connecting') return;
    this.phase = 'sent';
    this.trace?.mark('connectedMs');
    const socket = this.#socket;
    if (this.reusedSocket || socket === undefined || !('getProtocol' in socket)) return;
    // Read the protocol now, because a failed socket no longer has it.
    this.#isTls13 = socket.getProtocol() === 'TLSv1.3';
  }
}
