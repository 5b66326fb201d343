import { type Agent, type IncomingHttpHeaders } from 'node:http';
import { type ConnectionErrorKind } from '../errors/index.js';

/** One bounded HTTP exchange: one request, one answer, no redirect, no retry, no proxy of its own. */
export interface ExchangeRequest {
  url: Readonly<Pick<URL, 'protocol' | 'hostname' | 'port' | 'pathname' | 'search'>>;
  method: string;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  agent: Agent;
  /** Milliseconds for the whole exchange: the wait for a free connection and the answer's body included. */
  timeoutMs: number;
  /** The same without the wait for a free connection. Default: no other limit. */
  attemptTimeoutMs?: number;
  /** Milliseconds to connect: name, TCP, proxy and TLS handshake. The agent is given it too. Default: no other limit. */
  connectTimeoutMs?: number;
  /** Bytes of the answer's body after decompression. */
  maxResponseBytes: number;
  /** The caller's own; rejects with `signal.reason`. */
  signal?: AbortSignal;
  /** Called once with the milliseconds that it waited for a free connection, also where it got none. Does not throw. */
  onQueued?: (waitedMs: number, url: ExchangeRequest['url']) => void;
}

export interface ExchangeResponse {
  status: number;
  statusText: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** False where it answers the first request of its connection. */
  reusedSocket: boolean;
  /** Nothing but the end of the connection says where the body ends (RFC 9112, 6.3): it may have been cut. */
  untilClose: boolean;
}

/** How far the exchange got: it decides whether the server can have acted. */
export type ExchangePhase = 'connecting' | 'sent' | 'answering';

/** Headers that only the HTTP client may set: a caller could change the connection or name another host with them. */
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

/** The reason of a fault where connecting took longer than its own limit. */
export const CONNECT_TIMEOUT = 'ERR_CONNECT_TIMEOUT';

/** What an exchange rejects with when there is no whole answer. Plain values only. */
export class ExchangeFault extends Error {
  readonly kind!: ConnectionErrorKind;
  readonly phase!: ExchangePhase;
  /** System, Node or OpenSSL code. */
  readonly reason?: string;
  /** The time limit that was over, in milliseconds. */
  readonly limitMs?: number;
  /** Milliseconds after that at which it was seen: more than a few if the process did not run meanwhile. */
  readonly lateMs?: number;
  /** Of a name that has several: the addresses that were tried, with their ports. */
  readonly addresses?: readonly string[];
  /** A kept-alive connection was used again. */
  readonly reusedSocket: boolean = false;
  /** The TLS peer said something about our certificate. */
  readonly certificateRefused: boolean = false;
  /** It said so as its verdict on the handshake, so it looked at no request. */
  readonly refusedInHandshake: boolean = false;

  constructor(details: ExchangeFaultDetails) {
    super(`${details.kind} while ${details.phase}`);
    Object.assign(this, details);
  }
}

export type ExchangeFaultDetails = Pick<ExchangeFault, 'kind' | 'phase'> &
  Partial<Omit<ExchangeFault, keyof Error>>;

/**
 * The reason of a signal that ends a call for a caller who gave no reason: an exchange then fails as `closed`, which
 * says how far it got.
 */
export class CallCancelled extends Error {}

/** Performs one exchange; rejects with an {@link ExchangeFault}, or with `signal.reason` where the caller aborted. */
export type Exchange = (request: ExchangeRequest) => Promise<ExchangeResponse>;

/** What an exchange brought: exactly one of the two. */
export type Outcome =
  { response: ExchangeResponse; fault?: undefined } | { fault: ExchangeFault; response?: undefined };

/** Rejects only with what is no {@link ExchangeFault}: a caller's own abort. */
export async function outcomeOf(exchanged: Promise<ExchangeResponse>): Promise<Outcome> {
  try {
    return { response: await exchanged };
  } catch (error) {
    if (error instanceof ExchangeFault) return { fault: error };
    throw error;
  }
}
