import { type ResolvedOptions } from '../config/resolved-options.js';
import { type CertificateSummary, type Remedy } from '../errors/index.js';
import { certificateVerdict, isPage } from '../exchange/certificate-refusal.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { describeCertificate } from '../tls/index.js';

/** What calls are authenticated with, and where they go, as far as an operator has to know it. */
export interface CredentialsInUse extends Pick<ResolvedOptions, 'authentication'> {
  /** The option with the API's address: `urls.baseUrl`. */
  baseOption: string;
  /** The client certificate in use; undefined where none is set. */
  certificate: () => CertificateSummary | undefined;
}

/** What an answer that is no success means; said after its status. */
interface ExplainedAnswer extends Remedy {
  /** Default: no more than the status. */
  what?: string;
}

interface Row extends ExplainedAnswer {
  when: (answer: ExchangeResponse, pathname: string) => boolean;
  authentication?: 'oauth' | 'mtls' | 'app-token';
}

/** Whether the service, or a proxy before it, refused our credentials or certificate: no caller's input changes that. */
export function isCredentialFault(response: ExchangeResponse): boolean {
  return response.status === 401 || response.status === 403 || certificateVerdict(response) === 'refused';
}

/** Explains an answer that is no success and no redirect. */
export function explainAnswer(
  response: ExchangeResponse,
  pathname: string,
  { authentication, baseOption, certificate }: CredentialsInUse,
): ExplainedAnswer {
  const row = ROWS.find(
    (each) =>
      (each.authentication === undefined || each.authentication === authentication) &&
      each.when(response, pathname),
  );
  const inUse = certificate();
  const values: Record<string, string> = {
    address: baseOption,
    path: pathname,
    inUse: inUse ? `in use is ${describeCertificate(inUse)}` : 'none is set',
  };
  const fill = (text: string): string => text.replace(/\{(\w+)\}/g, (_, name: string) => values[name]);
  return {
    what: row?.what,
    hint: row?.hint && fill(row.hint),
    options: row?.options?.map(fill),
  };
}

const ADDRESS = '{address}';
const CERTIFICATE =
  'check tls.certificate and tls.privateKey, that they are of this application and this environment; {inUse}.';
const APP_TOKEN = 'Check appToken, that it is of this application and this environment.';
const OAUTH = `check that OAuth is enabled for the application, and that the addresses of the API, in ${ADDRESS}, and of the token endpoint are of the same environment.`;
const MAY = 'check in the developer portal what the application may do';
const PAIR = ['tls.certificate', 'tls.privateKey'];
const has =
  (...statuses: number[]) =>
  ({ status }: ExchangeResponse): boolean =>
    statuses.includes(status);
const unauthorized = { when: has(401), what: ': the service refused the credentials' };
/** An app token has no sign of its own for a wrong one, and its option is checked sooner than the portal. */
const forbidden = { when: has(403), what: ': the service does not allow this call' };

/** The first that fits counts. `{address}`, `{path}` and `{inUse}` (the client certificate) are filled in. */
const ROWS: readonly Row[] = [
  {
    when: (answer) => certificateVerdict(answer) === 'refused' && isPage(answer),
    what: ', with a page (HTML) of a proxy before the service: it misses or rejects the client certificate',
    hint: `A proxy before the service looks at the client certificate: ${CERTIFICATE}`,
    options: PAIR,
  },
  {
    when: (answer) => certificateVerdict(answer) === 'refused',
    what: ': a proxy before the service misses or rejects the client certificate',
    hint: `A proxy before the service looks at the client certificate: ${CERTIFICATE}`,
    options: PAIR,
  },
  {
    when: (answer) => certificateVerdict(answer) === 'perhaps',
    what: ', with a page, not of the service itself: a proxy before it refused the call',
    hint: `Where that proxy looks at client certificates: ${CERTIFICATE} Else check ${ADDRESS}, or ask who runs the network.`,
    options: [...PAIR, ADDRESS],
  },
  {
    ...unauthorized,
    authentication: 'oauth',
    hint: `C${OAUTH.slice(1)}`,
    options: [ADDRESS],
  },
  {
    ...unauthorized,
    authentication: 'mtls',
    hint: `${APP_TOKEN} Also ${CERTIFICATE}`,
    options: ['appToken', ...PAIR],
  },
  { ...unauthorized, hint: APP_TOKEN, options: ['appToken'] },
  {
    ...forbidden,
    authentication: 'oauth',
    hint: `C${MAY.slice(1)}; ${OAUTH}`,
    options: [ADDRESS],
  },
  {
    ...forbidden,
    authentication: 'mtls',
    hint: `${APP_TOKEN} Also ${CERTIFICATE} If they are right, ${MAY}.`,
    options: ['appToken', ...PAIR],
  },
  { ...forbidden, hint: `${APP_TOKEN} If it is right, ${MAY}.`, options: ['appToken'] },
  {
    when: isPage,
    what: ", with a page (HTML), not JSON: a proxy, firewall or website answers in the service's place",
    hint: `Check ${ADDRESS}, with its path if it has one. If it is right, ask who runs the network or the service.`,
    options: [ADDRESS],
  },
  {
    // The collections of the API are there, whatever is in them (specification 4).
    when: ({ status }, pathname) => status === 404 && /\/(banks|customers)\/v1\/?$/.test(pathname),
    what: ': there is no such path at this address',
    hint: `Check the path in ${ADDRESS}: that of the call is appended to it. Some services want a slash at the end: http.trailingSlash.`,
    options: [ADDRESS, 'http.trailingSlash'],
  },
  {
    when: has(429),
    what: ': the service is asked too often for the moment',
    hint: "Try again later. If it stays so, ask the service's operator how often the application may call.",
  },
  {
    when: ({ status }) => status >= 500,
    what: ': the service is out of order',
    hint: "Nothing here to correct. Try again later; if it stays so, tell the service's operator.",
  },
  {
    when: ({ status, body }) =>
      status === 400 && /both|multiple|more than one/i.test(body.toString('latin1')),
    hint: 'If the service complains about both the app token and a bearer token, leave sendAppTokenWithBearer off.',
    options: ['sendAppTokenWithBearer'],
  },
];
