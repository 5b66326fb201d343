import { type AddressOption, explain, type Explanation, type Words } from '../errors/index.js';
import { formatDate } from '../time/time.js';
import { type ExchangeFaultDetails, isUnsent } from './fault.js';

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
