import { type Agent, type IncomingHttpHeaders } from 'node:http';
import { type Socket } from 'node:net';
import { type ConnectionErrorKind } from '../errors/index.js';

/** An agent. If it has `stateOf`, the exchange uses only connections that the agent knows. */
export type ExchangeAgent = Agent & { stateOf?(socket: Socket): ExchangeConnection | undefined };

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
  /** Whether the request may be sent again if its connection turns out to be closed. It may then reuse older idle connections. */
  isRepeatable?: boolean;
  /** Whether the agent offers a client certificate to servers that ask for one. */
  hasCertificate?: boolean;
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

/**
 * How far an exchange got, which decides whether the server can have executed the request:
 * - `queued`: it waits for a free connection
 * - `connecting`: it connects, which includes the TLS handshake
 * - `sent`: the request is sent, at least a part of it
 * - `reading`: the response has begun
 */
export type ExchangePhase = 'queued' | 'connecting' | 'sent' | 'reading';

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Whether nothing of the request was sent. */
export function isUnsent({ phase = 'connecting' }: { phase?: ExchangePhase }): boolean {
  return phase === 'queued' || phase === 'connecting';
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

/** The reason of a fault if connecting took longer than `connectTimeoutMs`. */
export const CONNECT_TIMEOUT = 'ERR_CONNECT_TIMEOUT';

/** The reason of a time-out while an interceptor of the host application was still running. */
export const INTERCEPTOR_TIMEOUT = 'ERR_INTERCEPTOR_TIMEOUT';

/** The reason of a fault if no response began within `idleConnectionTimeoutMs`. */
export const IDLE_CONNECTION_TIMEOUT = 'ERR_IDLE_CONNECTION_TIMEOUT';

/** The reason of a fault if another library replaced the agent of the request, so that our agent did not make the connection. */
export const FOREIGN_CONNECTION = 'ERR_FOREIGN_CONNECTION';

/** An exchange rejects with this error if there is no whole response. It has plain values only, and no cause. */
export class ExchangeFault extends Error {
  readonly kind!: ConnectionErrorKind;
  readonly phase!: ExchangePhase;
  /** A code of the system, Node, OpenSSL or this package. */
  readonly reason?: string;
  /** What OpenSSL says about the server's certificate, if the reason is UNSPECIFIED. */
  readonly opensslText?: string;
  /** The time limit that was exceeded, in milliseconds. */
  readonly limitMs?: number;
  /** The addresses that were tried, with their ports, if the host name has several. */
  readonly addresses?: readonly string[];
  /** Whether the request reused a keep-alive connection. */
  readonly reusedSocket: boolean = false;
  /** Whether the server refused our client certificate, or requires one and got none. */
  readonly certificateRefused: boolean = false;
  /** Whether the server ended the handshake without a clear reason, so that it may have refused our client certificate. */
  readonly certificateSuspected: boolean = false;
  /** Whether the server ended the handshake with an alert, so that it has not read the request. */
  readonly refusedInHandshake: boolean = false;

  constructor(details: ExchangeFaultDetails) {
    super(`${details.kind} while ${details.phase}`);
    Object.assign(this, details);
  }
}

export type ExchangeFaultDetails = Pick<ExchangeFault, 'kind' | 'phase'> &
  Partial<Omit<ExchangeFault, keyof Error>>;

/**
 * The abort reason for a call that ends by axios's cancel token. The exchange then fails with the kind `closed` and the phase
 * that it had reached, not with this error.
 */
export class CallCancelled extends Error {}

/** Performs one exchange. Rejects with an {@link ExchangeFault}, or with `signal.reason` if the caller aborted. */
export type Exchange = (request: ExchangeRequest) => Promise<ExchangeResponse>;

/** The outcome of an exchange: either a response or a fault. */
export type Outcome =
  { response: ExchangeResponse; fault?: undefined } | { fault: ExchangeFault; response?: undefined };

/** Runs an exchange and returns its response or fault. Rejects only if the caller aborted. */
export async function captureOutcome(exchanged: () => Promise<ExchangeResponse>): Promise<Outcome> {
  try {
    return { response: await exchanged() };
  } catch (error) {
    if (error instanceof ExchangeFault) return { fault: error };
    throw error;
  }
}

/** Whether the request reused a connection that was dead: the server, a firewall or a load balancer had closed or dropped it. */
export function hadDeadConnection(fault: ExchangeFault | undefined): boolean {
  if (fault?.reason === IDLE_CONNECTION_TIMEOUT) return true;
  return fault?.reusedSocket === true && fault.kind === 'reset' && fault.phase === 'sent';
}
