import {
  type ConnectionErrorKind,
  type AddressOption,
  explain,
  type Explanation,
  type Words,
} from '../errors/index.js';
import { type CertificateVerdict } from './response.js';
import { type ExchangeResponse } from './io.js';
import { formatDate } from '../time/time.js';

/**
 * How far an exchange got, which decides whether the server can have executed the request:
 * - `waiting`: it has not begun, because its call still waits, for example for a token or an interceptor of the host application
 * - `queued`: it waits for a free connection
 * - `connecting`: it connects, which includes the TLS handshake
 * - `sent`: the request is sent, at least a part of it
 * - `reading`: the response has begun
 */
export type ExchangePhase = 'waiting' | 'queued' | 'connecting' | 'sent' | 'reading';

/** Whether nothing of the request was sent. */
export function isUnsent({ phase }: Pick<ExchangeFaultDetails, 'phase'>): boolean {
  return phase !== 'sent' && phase !== 'reading';
}

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
  /** The size limit of the body that was exceeded, in bytes. */
  readonly limitBytes?: number;
  /** The size of that body by its Content-Length, if it is not compressed. */
  readonly bodyBytes?: number;
  /** The addresses that were tried, with their ports, if the host name has several. */
  readonly addresses?: readonly string[];
  /** Whether the request reused a keep-alive connection. */
  readonly reusedSocket: boolean = false;
  /** The verdict on our client certificate. Undefined if the fault has nothing to do with it. */
  readonly certificateVerdict?: CertificateVerdict;
  /** Whether the server ended the TLS handshake with an alert, so that it has not read the request, even if it was sent. */
  readonly handshakeRefused: boolean = false;

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

export interface ClassifiedError {
  kind: ConnectionErrorKind;
  /** A code of the system, Node or OpenSSL. */
  reason?: string;
  /** Why OpenSSL refused the server's certificate, in its own words, where Node has only the code UNSPECIFIED. */
  opensslText?: string;
  /** The number of the TLS alert with which the server ended the connection. */
  alert?: number;
}

/** What is known of a fault when it occurs, beside how far the exchange got. */
export type OccurredFault = Partial<ClassifiedError> &
  Pick<ExchangeFaultDetails, 'kind' | 'limitMs' | 'limitBytes' | 'bodyBytes'>;

/**
 * Numbers of the TLS alerts that a server may send because of a client certificate, by the end of OpenSSL's code
 * (https://www.rfc-editor.org/rfc/rfc8446#section-6.2, https://www.rfc-editor.org/rfc/rfc5246#section-7.2.2).
 */
const ALERTS: Readonly<Record<string, number>> = {
  HANDSHAKE_FAILURE: 40,
  BAD_CERTIFICATE: 42,
  UNSUPPORTED_CERTIFICATE: 43,
  CERTIFICATE_REVOKED: 44,
  CERTIFICATE_EXPIRED: 45,
  CERTIFICATE_UNKNOWN: 46,
  ILLEGAL_PARAMETER: 47,
  UNKNOWN_CA: 48,
  ACCESS_DENIED: 49,
  DECODE_ERROR: 50,
  DECRYPT_ERROR: 51,
  INTERNAL_ERROR: 80,
  CERTIFICATE_REQUIRED: 116,
};

const VERIFICATION_CODE =
  /^(CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|ERROR_IN_CERT|UNSPECIFIED|ERR_TLS_)/;

const KINDS: Readonly<Record<string, ConnectionErrorKind>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EAI_FAIL: 'dns',
  ENODATA: 'dns',
  ETIMEDOUT: 'timeout',
  [CONNECT_TIMEOUT]: 'timeout',
  ECONNRESET: 'reset',
  ECONNABORTED: 'reset',
  EPIPE: 'reset',
  ERR_STREAM_PREMATURE_CLOSE: 'reset',
  EPROTO: 'tls',
  ERR_AGENT_CLOSED: 'closed',
};

/**
 * Turns an error of Node, OpenSSL or the system into one of our kinds, and keeps its code. The text of the error is not kept,
 * because the other side may have written it. The exception is OpenSSL's own text about the server's certificate.
 */
export function classify(error: unknown): ClassifiedError {
  const { code: given, message } = readCodeAndMessage(error);
  // The tunnel of a proxy and the whole connection have the same time limit, and either timer may fire first.
  const code = given === 'ERR_PROXY_TIMEOUT' ? CONNECT_TIMEOUT : given;
  // Since Node 22.20, the codes of some alerts have a slash, as in ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE.
  const reason = code === 'EPROTO' ? opensslCode(message) : code?.replaceAll('/', '_');
  // An alert of the proxy is not about the client certificate, which only the service gets.
  const isOfProxy = code?.startsWith('ERR_PROXY_') === true;
  const named = ALERTS[/_ALERT_([A-Z_]+)$/.exec(reason ?? '')?.[1] ?? ''];
  const number = /SSL alert number (\d+)/.exec(message)?.[1] ?? named;
  const alert = (!isOfProxy && Number(number)) || undefined;
  const opensslText = code === 'UNSPECIFIED' ? /^[\w ,/()'-]{3,80}$/.exec(message)?.[0] : undefined;
  return { kind: kindFromCode(code, message), reason, opensslText, alert };
}

/**
 * Reads the code from the text of an EPROTO error, such as
 * `error:0A000152:SSL routines::unsafe legacy renegotiation disabled:`. OpenSSL has a fixed list of these texts. The code has
 * the form that Node uses elsewhere. Text after the last colon is ignored, because the other side may have written it.
 */
function opensslCode(message: string): string {
  const reason = /error:[\dA-F]{8}:[^:]*:[^:]*:([\w/ -]{3,60})(?=:|$)/i.exec(message)?.[1];
  return reason === undefined ? 'EPROTO' : `ERR_SSL_${reason.toUpperCase().replace(/\W+/g, '_')}`;
}

function kindFromCode(code: string | undefined, message: string): ConnectionErrorKind {
  if (code === undefined) return /socket hang up|aborted/.test(message) ? 'reset' : 'network';
  if (Object.hasOwn(KINDS, code)) return KINDS[code];
  if (code.startsWith('ERR_PROXY_')) return 'proxy';
  if (VERIFICATION_CODE.test(code) || code.startsWith('ERR_SSL_')) return 'tls';
  return code.startsWith('HPE_') || code.startsWith('ERR_HTTP_') ? 'protocol' : 'network';
}

// Does not use instanceof, because an error may come from another realm (a vm context, a worker).
function readCodeAndMessage(error: unknown): { code?: string; message: string } {
  if (typeof error !== 'object' || error === null) return { message: '' };
  const { code, message, errors } = error as { code?: unknown; message?: unknown; errors?: unknown };
  // Happy eyeballs (a host name with several addresses) ends with an AggregateError of one error per address.
  if (typeof code !== 'string' && Array.isArray(errors)) return readCodeAndMessage(errors[0]);
  return { code: typeof code === 'string' ? code : undefined, message: String(message) };
}

/** The destination of an exchange, and how it is configured. */
export interface FaultPlace extends AddressOption {
  url: Pick<URL, 'href' | 'protocol' | 'hostname' | 'port'>;
  server: 'api' | 'token';
  /** Whether `tls.chain` is set. */
  hasChain?: boolean;
  /** Whether a client certificate is offered to the server. */
  hasCertificate?: boolean;
  /** Whether the size limit of the response is one of the call itself. */
  hasOwnLimit?: boolean;
  /** Which proxy leads to the destination. The URL of a proxy may have a password. */
  http?: {
    proxyFor?: (address: string) => { reveal(): string } | undefined;
    /** The environment variable that names a proxy for the address, but is ignored because `http.proxy` is not set. */
    ignoredProxyFor?: (address: string) => string | undefined;
  };
}

/** The fault to explain. */
export type ExplainedFault = ExchangeFaultDetails & {
  /** A part of the message: the server's certificate that the doctor has seen. */
  detail?: string;
  /** Where a redirect leads. */
  target?: string;
};

/** What is known of a fault, as the table of explanations has it. */
export function faultWords(fault: ExplainedFault, { url, server, http, ...place }: FaultPlace): Words {
  const { kind, phase, reason, certificateVerdict } = fault;
  return [
    server,
    'fault',
    kind,
    phase,
    reason,
    certificateVerdict && `certificate-${certificateVerdict}`,
    !place.hasCertificate && 'no-certificate',
    url.protocol === 'http:' && 'sidecar',
    http?.proxyFor?.(url.href) && 'proxied',
    place.hasChain && 'with-chain',
    kind === 'too_large' && place.hasOwnLimit && 'own-limit',
    fault.detail !== undefined && 'doctor',
  ];
}

/** Explains a fault: what happened, and what to do. */
export function explainFault(where: string, fault: ExplainedFault, place: FaultPlace): Explanation {
  const { url, http } = place;
  const { kind, reason = '', opensslText, limitMs, addresses, detail, target } = fault;
  const { limitBytes, bodyBytes } = fault;
  const secret = http?.proxyFor?.(url.href);
  // Show only the host of the proxy, because its URL may have a password.
  const proxy = secret && new URL(secret.reveal()).host;
  const explained = explain(
    faultWords(fault, place),
    {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port || (url.protocol === 'https:' ? '443' : '80'),
      addresses: addresses?.length ? addresses.join(', ') : undefined,
      proxy,
      ignoredVariable: isServerUnreached(fault) ? http?.ignoredProxyFor?.(url.href) : undefined,
      limitBytes,
      bodyBytes,
      limit: limitMs && Math.max(0, Math.round(limitMs)),
      // For a code of the system, such as ECONNREFUSED, leave out our prefix ERR_PROXY_.
      reason: reason.replace(/^ERR_PROXY_(?=E[A-Z]+$)/, '') || undefined,
      rule: reason.replace('HPE_', '').replaceAll('_', ' ').toLowerCase(),
      opensslText,
      detail,
      target,
      now: formatDate(Date.now()),
    },
    place,
  );
  // The proxy may be the cause of any fault inside its tunnel, so name it in every message.
  const isNamed = proxy === undefined || kind === 'closed' || explained.message.includes(proxy);
  const through = isNamed ? '' : `, through the proxy ${proxy}`;
  return { ...explained, message: `${where}${through}: ${explained.message}` };
}

/** Whether no server has responded at all. */
function isServerUnreached({ kind, phase }: ExplainedFault): boolean {
  return /^(dns|refused|timeout|reset|network)$/.test(kind) && isUnsent({ phase }) && phase !== 'waiting';
}
