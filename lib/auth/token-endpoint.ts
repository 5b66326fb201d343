import { type Agent } from 'node:http';
import { type Clock } from '../config/clock.js';
import { type Secret } from '../config/secret.js';
import { ServiceConnectionError, ServiceTokenError } from '../errors/index.js';
import { type Exchange, ExchangeFault, type ExchangeResponse } from '../exchange/exchange.types.js';
import { parseRetryAfter } from '../exchange/retry-after.js';
import { type TokenGrant, type TokenRequestContext, type TokenSource } from './access-token.js';
import { type ClientSecret, type SecretReading } from './client-secret.js';
import { LONGEST_HOLD_S } from './endpoint-hold.js';
import { isJsonObject, parseJson } from './json.js';
import { RefusedSecrets } from './refused-secrets.js';
import { isCredentialRefusal, tokenRefusal } from './token-refusal.js';
import { readTokenResponse } from './token-response.js';

const DEADLINE_MS = 10_000;
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** How often a source is asked, at most, while its secret is known to be refused. */
const SOURCE_PAUSE_MS = 1_000;

export interface TokenEndpointOptions {
  /** {auth_url}/oauth2/token */
  tokenUrl: string;
  clientId: string;
  clientSecret: ClientSecret;
  exchange: Exchange;
  /** Asked at each request: a reloaded certificate may have brought another one. */
  agent: () => Agent;
  clock: Clock;
}

/**
 * Asks for tokens: client_credentials, form-encoded (specification 2.1, 4, 5.4; RFC 6749, 4.4). Knows nothing of
 * caching; what it remembers for 10 s is which secret was refused.
 */
export class TokenEndpoint implements TokenSource {
  readonly #options: TokenEndpointOptions;
  readonly #url: URL;
  readonly #refused: RefusedSecrets;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
    this.#url = new URL(options.tokenUrl);
    this.#refused = new RefusedSecrets(options.clock);
  }

  /**
   * @param scope a checked one
   * @throws ServiceTokenError where the endpoint grants no token or answers in a way that breaks the specification;
   * ServiceConnectionError where there is no whole answer
   */
  async request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock } = this.#options;
    const end = clock.monotonic() + Math.min(context.timeoutMs, DEADLINE_MS);
    const post = (secrets: Secret[]): Promise<TokenGrant> =>
      this.#post(scope, secrets, end - clock.monotonic(), context.signal);

    const first = await this.#readSecret(scope);
    context.signal.throwIfAborted();
    try {
      return await post([first.secret]);
    } catch (error) {
      if (!isRefusedSecret(error)) throw error;
      this.#refused.remember(first.secret, scope, error);
      if (!clientSecret.canChange) throw error;
      const second = await clientSecret.readAfter(first).catch(() => first);
      if (second.secret.reveal() === first.secret.reveal()) throw error;
      context.signal.throwIfAborted();
      return await post([second.secret, first.secret]).catch((again: unknown) => {
        if (isRefusedSecret(again)) this.#refused.remember(second.secret, scope, again);
        throw again;
      });
    }
  }

  async #readSecret(scope: string): Promise<SecretReading> {
    const { clientSecret, clock } = this.#options;
    const { last } = clientSecret;
    const isRecent = last !== undefined && clock.monotonic() - last.at < SOURCE_PAUSE_MS;
    const known = isRecent ? this.#refused.find(last.secret, scope) : undefined;
    if (known) throw known;
    const reading = await clientSecret.read();
    const refusal = this.#refused.find(reading.secret, scope);
    if (refusal) throw refusal;
    return reading;
  }

  /** @param secrets the one to send, and others that an answer must not show */
  async #post(scope: string, secrets: Secret[], timeoutMs: number, signal: AbortSignal): Promise<TokenGrant> {
    const { clientId, exchange, agent, clock } = this.#options;
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: secrets[0]?.reveal() ?? '',
      scope,
    });
    const body = Buffer.from(form.toString());
    const response = await exchange({
      url: this.#url,
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': String(body.length),
      },
      body,
      agent: agent(),
      timeoutMs,
      maxResponseBytes: MAX_RESPONSE_BYTES,
      signal,
    }).catch((error: unknown) => {
      throw error instanceof ExchangeFault ? this.#connectionError(error) : error;
    });
    return this.#readAnswer(response, scope, secrets, clock.now());
  }

  #readAnswer(
    { status, headers, body }: ExchangeResponse,
    scope: string,
    secrets: Secret[],
    now: number,
  ): TokenGrant {
    const json = parseJson(body.toString('utf8'));
    const succeeded = status >= 200 && status < 300;
    if (succeeded && !(isJsonObject(json) && typeof json.error === 'string')) {
      return readTokenResponse(json, scope, status);
    }
    if (status >= 300 && status < 400) {
      throw this.#connectionError({ kind: 'redirect', reason: `HTTP_${status}` });
    }
    const seconds = parseRetryAfter(headers['retry-after'], now);
    const retryAfter = seconds === undefined ? undefined : Math.min(seconds, LONGEST_HOLD_S);
    throw tokenRefusal({ status, json, scope, retryAfter, secrets });
  }

  #connectionError({ kind, reason }: Pick<ExchangeFault, 'kind' | 'reason'>): ServiceConnectionError {
    const hint =
      kind === 'redirect'
        ? '; redirects are not followed, check the address (urls.authUrl or urls.sandboxAuthUrl)'
        : '';
    return new ServiceConnectionError({
      kind,
      message: `No token: the token endpoint gave no usable answer (${kind}${reason ? `, ${reason}` : ''})${hint}`,
      method: 'POST',
      path: this.#url.pathname,
      reason,
    });
  }
}

function isRefusedSecret(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && error.code === 'token_refused' && isCredentialRefusal(error);
}
