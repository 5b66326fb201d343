import { type Agent, type IncomingHttpHeaders } from 'node:http';
import { type Socket } from 'node:net';
import { type Clock, type Signals } from '../time/time.js';
import { type OfferedCertificate } from './response.js';
import { type AttemptTrace, type Log } from '../telemetry/telemetry.js';

/** An agent. If it has `stateOf`, the exchange uses only connections that the agent knows. */
type ExchangeAgent = Agent & { stateOf?(socket: Socket): ExchangeConnection | undefined };

/** What such an agent knows about one of its connections. */
export interface ExchangeConnection {
  /** Whether the connection was idle for over 4 s before this request, so that it may be dead without a FIN or RST. */
  readonly wasIdleLong: boolean;
  /** Whether a TLS session ticket has arrived, which shows that the server has accepted our certificate. */
  readonly hasTicket: boolean;
}

/** One HTTP exchange with limits of time and size: one request and one response, without redirects and retries. */
export interface ExchangeRequest {
  url: Readonly<Pick<URL, 'protocol' | 'hostname' | 'port' | 'pathname' | 'search'>>;
  method: string;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  agent: ExchangeAgent;
  /** Whether the request may use a connection that was idle for long and may be closed, because it can be sent again then. */
  mayUseOlderConnection?: boolean;
  /** The client certificate that the agent offers to servers that ask for one. */
  certificate?: OfferedCertificate;
  /** Milliseconds for the whole exchange, with the wait for a free connection and the body of the response. */
  timeoutMs: number;
  /** Milliseconds for the exchange without the wait for a free connection. Default: no limit but `timeoutMs`. */
  attemptTimeoutMs?: number;
  /** Milliseconds to connect: DNS lookup, TCP, proxy and TLS handshake. Default: no limit but `timeoutMs`. */
  connectTimeoutMs?: number;
  /** Milliseconds to the first byte of the response on a connection that was idle for over 4 s. Default: no limit but `timeoutMs`. */
  idleConnectionTimeoutMs?: number;
  /** Maximum size of the response's body in bytes, after decompression. */
  maxResponseBytes: number;
  /** The signal of the caller. If it aborts, the exchange rejects with `signal.reason`. */
  signal?: AbortSignal;
  /** Called if the signal aborts an exchange whose request the server may have read. */
  onLost?: () => void;
  /** Gets the times and the outcome, if somebody listens. */
  trace?: AttemptTrace;
}

export interface ExchangeResponse {
  status: number;
  statusText: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /**
   * Whether only the end of the connection ended the body, so that the body may have been cut
   * (https://www.rfc-editor.org/rfc/rfc9112#section-6.3).
   */
  untilClose: boolean;
}

/** Headers that a caller may not set, because they control the connection or name another host. */
export const EXCHANGE_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Performs one exchange. Rejects with an ExchangeFault, or with `signal.reason` if the caller aborted. */
export type Exchange = (request: ExchangeRequest) => Promise<ExchangeResponse>;

/** What a client uses of the outside world. The test doubles and the specs of this package replace it. */
export interface ServiceIo {
  /**
   * Sends one request. Every call and every token request goes through this function. What does not: a connection that is opened
   * ahead for a call (`preconnect`), the host application's own requests over `auth.httpsAgent`, and its token store and vaults.
   */
  exchange: Exchange;
  clock: Clock;
  /** Waits before a retry. Rejects with the reason of a signal that aborts. Doubles do not wait. */
  pause: (delayMs: number, ...signals: Signals) => Promise<void>;
  /** Returns a number from 0 (inclusive) to 1 (exclusive), as Math.random() does. */
  random: () => number;
  log: Log;
}
