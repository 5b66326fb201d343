import { ServiceConnectionError } from '../errors/index.js';
import { type ExchangeFault } from '../exchange/exchange.types.js';
import { explainServerCertificate, HANDSHAKE_FAILURE, isUntrusted } from '../exchange/tls-explanation.js';

type Fault = Pick<ExchangeFault, 'kind' | 'reason'> & Partial<Pick<ExchangeFault, 'certificateRefused'>>;

const ADDRESS = 'urls.authUrl (SERVICE_AUTH_URL) or urls.sandboxAuthUrl (SERVICE_SANDBOX_AUTH_URL)';

/** There was no whole answer of the token endpoint: names its host and what to check. */
export function tokenConnectionError(url: URL, fault: Fault): ServiceConnectionError {
  const { kind, reason } = fault;
  const why = reason ? `${kind}, ${reason}` : kind;
  const hint = hintFor(fault);
  return new ServiceConnectionError({
    kind,
    message: `No token: the token endpoint at ${url.host} gave no usable answer (${why})${hint ? `; ${hint}` : ''}`,
    method: 'POST',
    path: url.pathname,
    reason,
  });
}

function hintFor({ kind, reason = '', certificateRefused }: Fault): string | undefined {
  if (reason.startsWith('ERR_PROXY_')) return 'check http.proxy (SERVICE_HTTP_PROXY)';
  if (certificateRefused)
    return 'where it asks for the client certificate, set oauth.mtls (SERVICE_OAUTH_MTLS)';
  if (reason === HANDSHAKE_FAILURE)
    return 'it may ask for a client certificate, of a kind it takes: set oauth.mtls (SERVICE_OAUTH_MTLS), and check tls.certificate';
  const cause = explainServerCertificate(reason);
  if (cause) return cause;
  if (isUntrusted(reason))
    return "it is verified against Node's public roots and tls.chain (SERVICE_TLS_CHAIN or SERVICE_TLS_CHAIN_FILE: the service's public chain from the developer portal)";
  if (kind === 'redirect') return `redirects are not followed, check ${ADDRESS}`;
  return kind === 'dns' || kind === 'refused' ? `check ${ADDRESS}` : undefined;
}
