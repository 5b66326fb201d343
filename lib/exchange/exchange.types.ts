import { type Agent, type IncomingHttpHeaders } from 'node:http';
import { type Socket } from 'node:net';
import { type ConnectionErrorKind } from '../errors/index.js';

/** An agent that knows its own connections; of any other agent, all connections are used. */
export type ExchangeAgent = Agent & { stateOf?(socket: Socket): ExchangeConnection | undefined };

/** What such an agent knows of a connection. */
export interface ExchangeConnection {
  /** It was idle for so long before this request that it may be dead without anybody having said so. */
  readonly isOld: boolean;
  /** A TLS session ticket has come, so the server has accepted our certificate. */
  readonly hasTicket: boolean;
}

/** One bounded HTTP exchange: one request, one answer, without redirects and retries. */
export interface ExchangeRequest {
  url: Readonly<Pick<URL, 'protocol' | 'hostname' | 'port' | 'pathname' | 'search'>>;
  method: string;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  agent: ExchangeAgent;
  /** It may be sent again if its connection turns out to be closed: it takes connections that were idle for longer. */
  mayRepeat?: boolean;
  /** The agent offers a client certificate to servers that ask for one. */
  hasCertificate?: boolean;
  /** Milliseconds for the whole exchange: the wait for a free connection and the answer's body included. */
  timeoutMs: number;
  /** The same without the wait for a free connection. Default: no other limit. */
  attemptTimeoutMs?: number;
  /** Milliseconds to connect: name, TCP, proxy and TLS handshake. Default: no other limit. */
  connectTimeoutMs?: number;
  /** Milliseconds to the first byte of the answer on a connection that was idle for over 4 s. Default: no other limit. */
  oldConnectionTimeoutMs?: number;
  /** Bytes of the answer's body after decompression. */
  maxResponseBytes: number;
  /** The caller's signal: on abort, rejects with `signal.reason`. */
  signal?: AbortSignal;
}

export interface ExchangeResponse {
  status: number;
  statusText: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** The body ends only with the connection (RFC 9112, 6.3): it may have been cut. */
  untilClose: boolean;
}

/**
 * How far an exchange got, which decides whether the server can have acted: it waits for a free connection, it connects, the
 * request is sent, the answer is read.
 */
export type ExchangePhase = 'queued' | 'connecting' | 'sent' | 'reading';

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Whether nothing of the request was sent. */
export function isUnsent({ phase = 'connecting' }: { phase?: ExchangePhase }): boolean {
  return phase === 'queued' || phase === 'connecting';
}

/** Headers that only the HTTP client may set: with them, a caller could change the connection or name another host. */
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

/** The reason of a fault if connecting took longer than its own limit. */
export const CONNECT_TIMEOUT = 'ERR_CONNECT_TIMEOUT';

/** The reason of a time-out if an interceptor of the application had not settled. */
export const INTERCEPTOR_TIMEOUT = 'ERR_INTERCEPTOR_TIMEOUT';

/** The reason of a fault if no answer began within `oldConnectionTimeoutMs`. */
export const OLD_CONNECTION_TIMEOUT = 'ERR_OLD_CONNECTION_TIMEOUT';

/** The reason of a fault if the agent of the request was replaced, so that the connection is not one of ours. */
export const FOREIGN_CONNECTION = 'ERR_FOREIGN_CONNECTION';

/** An exchange rejects with this if there is no whole answer. Plain values only. */
export class ExchangeFault extends Error {
  readonly kind!: ConnectionErrorKind;
  readonly phase!: ExchangePhase;
  /** System, Node or OpenSSL code. */
  readonly reason?: string;
  /** OpenSSL's words if the reason is UNSPECIFIED. */
  readonly opensslText?: string;
  /** The time limit that was exceeded, in milliseconds. */
  readonly limitMs?: number;
  /** The addresses that were tried, with their ports, if the name has several. */
  readonly addresses?: readonly string[];
  /** A kept-alive connection was used again. */
  readonly reusedSocket: boolean = false;
  /** The TLS peer refused our certificate, or missed it. */
  readonly certificateRefused: boolean = false;
  /** The TLS peer ended the handshake without a reason, or for one that can be anything: it may have refused our certificate. */
  readonly certificateSuspected: boolean = false;
  /** The TLS peer ended the handshake with an alert, so it has looked at no request. */
  readonly refusedInHandshake: boolean = false;

  constructor(details: ExchangeFaultDetails) {
    super(`${details.kind} while ${details.phase}`);
    Object.assign(this, details);
  }
}

export type ExchangeFaultDetails = Pick<ExchangeFault, 'kind' | 'phase'> &
  Partial<Omit<ExchangeFault, keyof Error>>;

/**
 * The reason of the signal of a call that axios's cancel token ended: an exchange then fails as `closed`, with the phase
 * that it had reached.
 */
export class CallCancelled extends Error {}

/** Performs one exchange; rejects with an {@link ExchangeFault}, or with `signal.reason` if the caller aborted. */
export type Exchange = (request: ExchangeRequest) => Promise<ExchangeResponse>;

/** The outcome of an exchange: exactly one of the two. */
export type Outcome =
  { response: ExchangeResponse; fault?: undefined } | { fault: ExchangeFault; response?: undefined };

/** Rejects only with errors other than {@link ExchangeFault}: a caller's abort. */
export async function outcomeOf(exchanged: () => Promise<ExchangeResponse>): Promise<Outcome> {
  try {
    return { response: await exchanged() };
  } catch (error) {
    if (error instanceof ExchangeFault) return { fault: error };
    throw error;
  }
}

/** Whether the request took an idle connection that the server, or something on the way to it, had closed or forgotten. */
export function hadDeadConnection(fault: ExchangeFault | undefined): boolean {
  if (fault?.reason === OLD_CONNECTION_TIMEOUT) return true;
  return fault?.reusedSocket === true && fault.kind === 'reset' && fault.phase === 'sent';
}
