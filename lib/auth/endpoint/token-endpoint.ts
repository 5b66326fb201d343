import { type Agent } from 'node:http';
import { type Clock } from '../../config/clock.js';
import { type DescribeOption } from '../../config/resolved-options.js';
import { type Secret } from '../../config/secret.js';
import { ServiceTokenError } from '../../errors/index.js';
import {
  certificateRefusal,
  certificateVerdict,
  type ReloadableIdentity,
  reloadIfRefused,
} from '../../exchange/certificate-refusal.js';
import { type Exchange, type ExchangeResponse, outcomeOf } from '../../exchange/exchange.types.js';
import { isJsonObject, parseJson } from '../../exchange/json.js';
import { parseRetryAfter } from '../../exchange/retry-after.js';
import { certificateRefusedError } from '../../tls/index.js';
import {
  MAX_RETRY_AFTER_S,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type ClientSecret, type SecretReading } from './client-secret.js';
import { RefusedSecrets } from './refused-secrets.js';
import { isCredentialRefusal, tokenConnectionError, tokenRefusal } from './token-errors.js';
import { readTokenResponse } from './token-response.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** While its secret is known to be refused, a source is not asked more often than that. */
const SOURCE_PAUSE_MS = 1_000;

export interface TokenEndpointOptions {
  /** {auth_url}/oauth2/token */
  tokenUrl: string;
  clientId: string;
  clientSecret: ClientSecret;
  exchange: Exchange;
  /** Asked at each request: a reloaded certificate may have brought another one. */
  agent: () => Agent;
  /** With `oauth.mtls`: its certificate is offered to the endpoint. */
  identity?: ReloadableIdentity;
  clock: Clock;
  describeOption: DescribeOption;
}

/** How long an attempt may take. */
interface Limits {
  /** On the monotonic clock. */
  end: number;
  signal: AbortSignal;
}

/**
 * Requests tokens: client_credentials, form-encoded (specification 2.1, 4, 5.4; RFC 6749, 4.4). Knows nothing of
 * caching, but remembers a refused secret for 10 s.
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
   * ServiceConnectionError where there is no whole answer; ServiceCertificateError where it refuses our certificate
   */
  async request(scope: string, context: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock } = this.#options;
    const { signal } = context;
    const end = clock.monotonic() + context.timeoutMs;
    const post = (secrets: Secret[]): Promise<TokenGrant> => this.#post(scope, secrets, { end, signal });

    const first = await this.#readSecret(scope);
    const certificate = this.#certificateThumbprint();
    try {
      return await post([first.secret]);
    } catch (error) {
      if (!isRefusedSecret(error)) throw error;
      this.#refused.remember(first.secret, scope, error, certificate);
      if (!clientSecret.canChange) throw error;
      const second = await clientSecret.readAfter(first).catch(() => first);
      if (second.secret.reveal() === first.secret.reveal()) throw error;
      return await post([second.secret, first.secret]).catch((again: unknown) => {
        if (isRefusedSecret(again)) this.#refused.remember(second.secret, scope, again, certificate);
        throw again;
      });
    }
  }

  #certificateThumbprint(): string | undefined {
    return this.#options.identity?.certificate?.fingerprint256;
  }

  async #readSecret(scope: string): Promise<SecretReading> {
    const { clientSecret, clock } = this.#options;
    const { last } = clientSecret;
    const isRecent = last !== undefined && clock.monotonic() - last.at < SOURCE_PAUSE_MS;
    const known = isRecent
      ? this.#refused.find(last.secret, scope, this.#certificateThumbprint())
      : undefined;
    if (known) throw known;
    const reading = await clientSecret.read();
    const refusal = this.#refused.find(reading.secret, scope, this.#certificateThumbprint());
    if (refusal) throw refusal;
    return reading;
  }

  /** @param secrets the one to send, and others that an answer must not show */
  async #post(scope: string, secrets: Secret[], limits: Limits): Promise<TokenGrant> {
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: this.#options.clientId,
      client_secret: secrets[0]?.reveal() ?? '',
      scope,
    });
    const response = await this.#send(Buffer.from(form.toString()), limits);
    return this.#readAnswer(response, scope, secrets, this.#options.clock.now());
  }

  /** Once more where our certificate was refused and another one is in use by now. */
  async #send(body: Buffer, limits: Limits, isLast = false): Promise<ExchangeResponse> {
    const { identity } = this.#options;
    const certificate = identity?.certificate;
    const outcome = await outcomeOf(this.#exchange(body, limits));
    const { response, fault } = outcome;
    const verdict = certificateRefusal(outcome);
    if (identity && verdict) {
      const isOther = !isLast && (await reloadIfRefused(outcome, identity, certificate, limits.signal));
      if (isOther) return this.#send(body, limits, true);
      if (verdict === 'refused') {
        throw certificateRefusedError(certificate, fault ? fault.reason : `HTTP ${response.status}`);
      }
    }
    if (fault) throw tokenConnectionError(this.#url, fault, this.#options.describeOption);
    return response;
  }

  #exchange(body: Buffer, { end, signal }: Limits): Promise<ExchangeResponse> {
    const { exchange, agent, clock } = this.#options;
    return exchange({
      url: this.#url,
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': String(body.length),
      },
      body,
      agent: agent(),
      timeoutMs: end - clock.monotonic(),
      maxResponseBytes: MAX_RESPONSE_BYTES,
      signal,
    });
  }

  #readAnswer(response: ExchangeResponse, scope: string, secrets: Secret[], now: number): TokenGrant {
    const { describeOption } = this.#options;
    const { status, headers, body } = response;
    const json = parseJson(body.toString('utf8'));
    const succeeded = status >= 200 && status < 300;
    if (succeeded && !(isJsonObject(json) && typeof json.error === 'string')) {
      return readTokenResponse(json, scope, status);
    }
    if (status >= 300 && status < 400) {
      throw tokenConnectionError(this.#url, { kind: 'redirect', reason: `HTTP_${status}` }, describeOption);
    }
    const seconds = parseRetryAfter(headers['retry-after'], now);
    const retryAfter = seconds === undefined ? undefined : Math.min(seconds, MAX_RETRY_AFTER_S);
    const proxy = certificateVerdict(response);
    throw tokenRefusal({ status, json, scope, retryAfter, secrets, proxy, describeOption });
  }
}

function isRefusedSecret(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && error.code === 'token_refused' && isCredentialRefusal(error);
}
