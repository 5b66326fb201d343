import { type CertificateSummary } from '../errors/index.js';
import { type ExchangeResponse, type Outcome } from './exchange.types.js';

const LONGEST_PAGE = 4_096;

/**
 * What an answer says of our client certificate where a proxy before the service looks at it. The service itself
 * answers in JSON; a page (HTML) is a proxy's own.
 * - `refused`: nginx's 495 and 496, and a page of 400, 401 or 403 that speaks of certificates.
 * - `perhaps`: any other page of 401 or 403: HAProxy and Apache do not say why they deny.
 */
export function certificateVerdict({
  status,
  headers,
  body,
}: ExchangeResponse): 'refused' | 'perhaps' | undefined {
  if (status === 495 || status === 496) return 'refused';
  if (status !== 400 && status !== 401 && status !== 403) return undefined;
  const text = body.subarray(0, LONGEST_PAGE).toString('latin1');
  if (!/html/i.test(headers['content-type'] ?? '') && !/^\s*</.test(text)) return undefined;
  if (/certificate/i.test(text)) return 'refused';
  return status === 400 ? undefined : 'perhaps';
}

/** The client identity, as one needs it whose certificate was refused. */
export interface ReloadableIdentity {
  readonly certificate?: CertificateSummary;
  /** Reads it again; true where another certificate than the refused one is in use now. */
  reloadAfterRefusal(refused: CertificateSummary | undefined): Promise<boolean>;
}

/** Whether an exchange failed because of our client certificate: by a TLS alert, or by a proxy's answer. */
export function certificateRefusal({ response, fault }: Outcome): 'refused' | 'perhaps' | undefined {
  if (response) return certificateVerdict(response);
  return fault.certificateRefused ? 'refused' : undefined;
}

/**
 * Where our client certificate was refused, reads it again. True: another one is in use now, so one more attempt makes
 * sense. False as soon as `signal` is aborted.
 * @param used the certificate of that exchange
 */
export async function reloadIfRefused(
  outcome: Outcome,
  identity: ReloadableIdentity,
  used: CertificateSummary | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (certificateRefusal(outcome) === undefined || signal.aborted) return false;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(false);
    signal.addEventListener('abort', onAbort, { once: true });
    identity
      .reloadAfterRefusal(used)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', onAbort));
  });
}
