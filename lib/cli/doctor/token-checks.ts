import { type AccessToken } from '../../auth/access-token.js';
import { ClientSecret } from '../../auth/endpoint/client-secret.js';
import { isCredentialRefusal } from '../../auth/endpoint/token-errors.js';
import { TokenEndpoint } from '../../auth/endpoint/token-endpoint.js';
import { type TokenGrant } from '../../auth/access-token.js';
import { type Clock } from '../../config/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { ServiceCertificateError, ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { type Agents } from '../../tls/agents.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { capital, failed, ok, skipped, warning, type Finding } from './check.js';
import { isPage, type SeenAnswers } from './seen-answers.js';

export interface TokenCheckParts {
  options: ResolvedOptions;
  identity: ClientIdentity;
  agents: Agents;
  answers: SeenAnswers;
  clock: Clock;
  /** A refusal that is known already: the endpoint is not asked with the same secret again. */
  refusal?: ServiceTokenError;
}

/** Asks the token endpoint as the module does, one attempt for each token. Undefined without OAuth credentials. */
export class TokenChecks {
  readonly #parts: TokenCheckParts;
  readonly #endpoint: TokenEndpoint;
  /** The api token, once there is one. */
  apiToken?: AccessToken;

  constructor(parts: TokenCheckParts, oauth: NonNullable<ResolvedOptions['oauth']>, tokenUrl: string) {
    const { options, identity, agents, answers, clock } = parts;
    this.#parts = parts;
    this.#endpoint = new TokenEndpoint({
      tokenUrl,
      clientId: oauth.clientId,
      clientSecret: new ClientSecret(oauth, clock),
      exchange: answers.exchange,
      agent: () => agents.token(tokenUrl),
      identity: oauth.mtls ? identity : undefined,
      clock,
      describeOption: options.describeOption,
    });
  }

  async api(timeoutMs: number, signal: AbortSignal): Promise<Finding> {
    if (this.#parts.refusal) return this.#explain(this.#parts.refusal);
    try {
      const grant = await this.#request('api', timeoutMs, signal);
      const { expiresIn = 0, ...token } = grant;
      this.apiToken = { ...token, expiresAt: new Date(this.#parts.clock.now() + expiresIn * 1000) };
      return ok(`The token endpoint gives a token for calls of the API, ${lifetime(grant)}.`);
    } catch (error) {
      return this.#explain(error);
    }
  }

  /** @param isReal the id is of a customer that there is */
  async customer(id: string, isReal: boolean, timeoutMs: number, signal: AbortSignal): Promise<Finding> {
    try {
      const grant = await this.#request(`customer.${id}`, timeoutMs, signal);
      const whose = isReal
        ? 'this customer'
        : 'a customer id that is made up: the endpoint does not check whether there is such a customer';
      return ok(`The token endpoint gives a token for ${whose}, ${lifetime(grant)}. It was thrown away.`);
    } catch (error) {
      if (!isReal && isUnknownCustomer(error)) {
        return skipped(
          `The endpoint gives no token for a customer id that is made up (HTTP ${error.status}${error.error ? `, ${error.error}` : ''}). That is as it should be where it knows its customers; it shows nothing about yours.`,
          'Name a customer that there is: --customer <customer_id>.',
        );
      }
      return this.#explain(error);
    }
  }

  #request(scope: string, timeoutMs: number, signal: AbortSignal): Promise<TokenGrant> {
    return this.#endpoint.request(scope, { timeoutMs, signal, accepts: () => true });
  }

  #explain(error: unknown): Finding {
    const { describeOption, addresses } = this.#parts.options;
    const option = addresses.tokenOption;
    const address = describeOption(option ?? 'urls.authUrl');
    if (error instanceof ServiceCertificateError) {
      return failed(
        firstFault(error),
        `Compare ${describeOption('tls.certificate')} with the certificate that the developer portal lists for this application.`,
        'tls.certificate',
      );
    }
    if (error instanceof ServiceConnectionError) {
      return failed(
        `${error.message}.`,
        `Check ${address}. Run the check again: it may have been a short failure of the network.`,
        option,
      );
    }
    if (error instanceof ServiceTokenError) return this.#explainAnswer(error, address, option);
    throw error;
  }

  #explainAnswer(error: ServiceTokenError, address: string, option?: string): Finding {
    const { describeOption } = this.#parts.options;
    const said = saidBy(error);
    const { last } = this.#parts.answers;
    if (error.code === 'client_secret_unavailable') {
      return failed(
        error.message,
        `Check that what ${describeOption('oauth.clientSecret')} names can be read.`,
        'oauth.clientSecret',
      );
    }
    if (last && isPage(last)) {
      return failed(
        `The token endpoint answered with a page (HTML, ${said}), not with JSON: it is not the token endpoint that answers, but for example a proxy, a login page or a website.`,
        `Check ${address}: it is the address without /oauth2/token. If it is right, a proxy or firewall between answers in its place${last.status === 400 || last.status === 403 || last.status > 494 ? `; one that asks for the client certificate gets it with ${describeOption('oauth.mtls')}` : ''}.`,
        option,
      );
    }
    if (error.code === 'token_rate_limited') {
      return warning(
        `The token endpoint was asked too often (${said}): it can be reached, and says no more for the moment.`,
        `Run the check again${error.retryAfter === undefined ? ' later' : ` in ${error.retryAfter} s`}. If it stays so, something asks for tokens all the time, for example a process that restarts.`,
      );
    }
    if (error.code === 'token_unavailable') {
      return failed(
        `The token endpoint is out of order (${said}).`,
        `Nothing here to correct. Try again later; if it stays so, check ${address} and tell the service's operator.`,
        option,
      );
    }
    if (error.code === 'invalid_token_response') {
      return failed(
        `${error.message}.`,
        `Check ${address}. If it is right, tell the service's operator.`,
        option,
      );
    }
    if (error.error === 'unauthorized_client' || error.error === 'invalid_scope') {
      return failed(
        `The token endpoint knows the credentials, and refuses this token (${said}).`,
        'Have OAuth enabled for the application: ask your account manager.',
        'oauth.clientId',
      );
    }
    if (isCredentialRefusal(error)) {
      return failed(
        `The token endpoint refuses the credentials (${said}).`,
        `Check ${describeOption('oauth.clientId')} and ${describeOption('oauth.clientSecret')}: both of the application of this environment (developer portal, Integration tab). Getting or generating a secret again makes the one before invalid. OAuth has to be enabled for the application.`,
        'oauth.clientSecret',
      );
    }
    if (error.status === 404 || error.status === 405) {
      return failed(
        `There is no token endpoint at this address (${said}).`,
        `Check ${address}: it is the address without /oauth2/token, which is appended.`,
        option,
      );
    }
    return failed(
      `The token endpoint refuses a token (${said}).`,
      `Check ${address}, ${describeOption('oauth.clientId')} and ${describeOption('oauth.clientSecret')}.`,
      option,
    );
  }
}

function saidBy({ status, error, error_description }: ServiceTokenError): string {
  const parts = [status === undefined ? undefined : `HTTP ${status}`, error, error_description];
  return parts.filter((part) => part !== undefined).join(', ') || 'no status';
}

function firstFault(error: ServiceCertificateError): string {
  return capital(error.faults[0]?.message ?? error.message);
}

/** A refusal that may be about the customer alone. What is wrong with the application shows with the api token too. */
function isUnknownCustomer(error: unknown): error is ServiceTokenError {
  return (
    error instanceof ServiceTokenError &&
    error.code === 'token_refused' &&
    error.error !== 'invalid_client' &&
    error.status !== 401
  );
}

function lifetime({ expiresIn }: TokenGrant): string {
  return expiresIn === undefined
    ? 'without a lifetime: it is used once and not kept'
    : `valid for ${expiresIn} s`;
}
