import { type CertificateSummary } from '../errors/index.js';
import { type ExchangeResponse, type Outcome } from './exchange.types.js';
import { untilAborted } from '../time/timers.js';

const MAX_PAGE_BYTES = 4_096;

/** Whether the answer is a page (HTML). The service talks JSON: this is a proxy, a login page or a website. */
export function isPage(answer: Pick<ExchangeResponse, 'headers' | 'body'>): boolean {
  const isHtml = /html/i.test(answer.headers['content-type'] ?? '');
  return isHtml || /^\s*<(!doctype|html|\?xml)/i.test(beginning(answer));
}

/**
 * What an answer says about our client certificate, if a proxy before the service checks it.
 * - `refused`: nginx's 495 and 496, and a page of 400, 401 or 403 that speaks of certificates.
 * - `perhaps`: any other page of 401 or 403: HAProxy and Apache do not say why they deny.
 */
export function certificateVerdict(answer: ExchangeResponse): 'refused' | 'perhaps' | undefined {
  const { status } = answer;
  if (status === 495 || status === 496) return 'refused';
  if (![400, 401, 403].includes(status) || !isPage(answer)) return undefined;
  if (/certificate/i.test(beginning(answer))) return 'refused';
  return status === 400 ? undefined : 'perhaps';
}

// ngx_http_special_response.c: the pages as nginx makes them, for a certificate that is missing or does not verify.
const NGINX_PAGE =
  /^<html>\s*(<head>)?\s*<title>400 (No required SSL certificate was sent|The SSL certificate error)<\/title>/;

/**
 * Whether an answer proves that a proxy refused the handshake and not the call: nginx's own statuses and pages, on the
 * first request of a connection. On a connection that was used before, the certificate cannot be the reason. Any other
 * page may come from a filter that looks at answers, after the service acted.
 */
export function isHandshakeVerdict(answer: ExchangeResponse): boolean {
  const { status, headers, reusedSocket } = answer;
  if (reusedSocket) return false;
  if (status === 495 || status === 496) return true;
  const isHtml = /^text\/html\b/i.test(headers['content-type'] ?? '');
  return status === 400 && isHtml && NGINX_PAGE.test(beginning(answer));
}

function beginning({ body }: Pick<ExchangeResponse, 'body'>): string {
  return body.subarray(0, MAX_PAGE_BYTES).toString('latin1');
}

/** The parts of the client identity that count once its certificate was refused. */
export interface ReloadableIdentity {
  readonly certificate?: CertificateSummary;
  /** Reads it again. Resolves with true if another certificate than the refused one is in use then. */
  reloadAfterRefusal(refused: CertificateSummary | undefined): Promise<boolean>;
}

/** Whether an exchange failed because of our client certificate: by a TLS alert, or by a proxy's answer. */
export function certificateRefusal({ response, fault }: Outcome): 'refused' | 'perhaps' | undefined {
  if (response) return certificateVerdict(response);
  return fault.certificateRefused ? 'refused' : undefined;
}

/**
 * Reads our refused client certificate again. Resolves with true if another one is in use then, so that one more attempt
 * makes sense; with false as soon as `signal` is aborted. Never rejects.
 */
export async function reloadRefused(
  identity: ReloadableIdentity,
  refused: CertificateSummary | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (signal.aborted) return false;
  return untilAborted(identity.reloadAfterRefusal(refused), signal).catch(() => false);
}
