import { AuthorizationHeaders } from '../../auth/authorization-headers.js';
import { type AccessToken } from '../../auth/access-token.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { cleanText, ServiceCertificateError } from '../../errors/index.js';
import { certificateVerdict } from '../../exchange/certificate-refusal.js';
import { outcomeOf, type ExchangeResponse } from '../../exchange/exchange.types.js';
import { isJsonObject, parseJson } from '../../exchange/json.js';
import { redirectTarget } from '../../http/answer-to-error.js';
import { credentialHint } from '../../http/credential-hint.js';
import { faultToError } from '../../http/fault-to-error.js';
import { ResourcePaths } from '../../http/resource-paths.js';
import { type Agents } from '../../tls/agents.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { failed, ok, warning, type Finding } from './check.js';
import { isPage, type SeenAnswers } from './seen-answers.js';

export interface BanksCheckParts {
  options: ResolvedOptions;
  identity: ClientIdentity;
  agents: Agents;
  answers: SeenAnswers;
}

/** GET /banks/v1 as the module sends it, one attempt: it changes nothing (specification 4). */
export async function checkBanks(
  parts: BanksCheckParts,
  token: AccessToken | undefined,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Finding> {
  const { options, identity, agents, answers } = parts;
  const { addresses, http, describeOption } = options;
  const headers = new AuthorizationHeaders(options);
  const url = new URL(addresses.baseUrl + new ResourcePaths(http.trailingSlash).of('/banks/v1'));
  const { certificate } = identity;
  const { response, fault } = await outcomeOf(
    answers.exchange({
      url,
      method: 'GET',
      headers: {
        Accept: 'application/json',
        ...(token ? headers.withBearer(token) : headers.withoutBearer()),
      },
      agent: agents.api(url),
      timeoutMs,
      maxResponseBytes: http.maxResponseBytes,
      signal,
    }),
  );
  if (response) return judgeAnswer(response, parts, url, token);
  const error = faultToError(fault, { method: 'GET', url }, describeOption, certificate);
  const isRefusal = error instanceof ServiceCertificateError;
  const address = describeOption(addresses.baseOption);
  if (url.protocol === 'http:' && (fault.kind === 'reset' || fault.kind === 'protocol')) {
    return failed(
      `${error.message}. The address begins with http:, and a server that speaks TLS ends such a connection.`,
      `If the server speaks TLS, write https: in ${address}.`,
      addresses.baseOption,
    );
  }
  return failed(
    `${isRefusal ? (error.faults[0]?.message ?? error.message) : error.message}.`,
    isRefusal
      ? `Compare ${describeOption('tls.certificate')} with the certificate that the developer portal lists for this application and environment.`
      : `Run the check again: it may have been a short failure. If it stays so, check ${address}.`,
    isRefusal ? 'tls.certificate' : addresses.baseOption,
  );
}

function judgeAnswer(
  response: ExchangeResponse,
  { options, identity }: BanksCheckParts,
  url: URL,
  token: AccessToken | undefined,
): Finding {
  const { authentication, describeOption, addresses, appToken } = options;
  const { status, headers, body } = response;
  const { pathname } = url;
  const option = addresses.baseOption;
  const address = describeOption(option);
  const secrets = [appToken?.reveal() ?? '', token?.accessToken ?? ''];
  const said = `GET ${pathname}: HTTP ${status}${messageOf(body, secrets)}${correlationOf(response, options, secrets)}`;
  if (status >= 200 && status < 300) {
    if (parseJson(body.toString('utf8')) !== undefined)
      return ok(`GET ${pathname}: HTTP ${status} with JSON.`);
    const what = isPage(response) ? 'a page (HTML)' : 'no JSON';
    return failed(
      `${said}, with ${what}: it is not the service's API that answers, but for example a website, a login page or a proxy.`,
      `Check ${address}, with its path if it has one.`,
      option,
    );
  }
  if (status >= 300 && status < 400) {
    const target = redirectTarget(headers, url);
    return failed(
      `${said}, a redirect${target ? ` to ${cleanText(target.origin, secrets, 100)}` : ''}. Redirects are never followed.`,
      target?.isOnlySlash
        ? `It only adds or removes a slash at the end: change ${describeOption('http.trailingSlash')}.`
        : `Put the address where the API is into ${address}.`,
      target?.isOnlySlash ? 'http.trailingSlash' : option,
    );
  }
  const credentials = { authentication, describeOption, certificate: () => identity.certificate };
  const verdict = certificateVerdict(response);
  const hint = credentialHint(response, credentials);
  if (hint) {
    const page =
      verdict && isPage(response) ? ', with a page (HTML) of a proxy or firewall before the service' : '';
    const isOurs = verdict === undefined && authentication !== 'oauth';
    const blamed = verdict === 'refused' ? 'tls.certificate' : isOurs ? 'appToken' : option;
    return failed(`${said}${page}.`, hint, blamed);
  }
  if (isPage(response)) {
    return failed(
      `${said}, with a page (HTML), not JSON: a proxy, firewall or website answers in the service's place.`,
      `Check ${address}, with its path if it has one. If it is right, ask who runs the network or the service.`,
      option,
    );
  }
  if (status === 404) {
    return failed(
      `${said}: there is no such path at this address.`,
      `Check the path in ${address}: /banks/v1 is appended to it. Some services want a slash at the end: ${describeOption('http.trailingSlash')}.`,
      option,
    );
  }
  if (status === 429) {
    return warning(
      `${said}: the service is asked too often for the moment. It can be reached, and did not refuse the credentials.`,
      'Run the check again later.',
    );
  }
  if (status >= 500) {
    return failed(
      `${said}: the service is out of order.`,
      "Nothing here to correct. Try again later; if it stays so, tell the service's operator.",
      option,
    );
  }
  return failed(
    `${said}.`,
    `Check ${address}, and that ${describeOption('environment')} and ${describeOption('authentication')} are those of this application. A service of this kind answers 400 to an app token and a bearer in one call: ${describeOption('sendAppTokenWithBearer')}.`,
    option,
  );
}

/** Specification 7.2. */
function messageOf(body: Buffer, secrets: readonly string[]): string {
  const json = parseJson(body.toString('utf8'));
  const message = isJsonObject(json) ? json.message : undefined;
  return typeof message === 'string' ? ` ("${cleanText(message, secrets, 200)}")` : '';
}

function correlationOf(
  { headers }: ExchangeResponse,
  { http }: ResolvedOptions,
  secrets: readonly string[],
): string {
  const id = headers[http.correlationIdHeader] ?? headers['x-request-id'];
  return id === undefined ? '' : ` (correlation id ${cleanText(String(id), secrets, 80)})`;
}
