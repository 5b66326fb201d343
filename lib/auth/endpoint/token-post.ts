import { type Agent } from 'node:http';
import { type Clock } from '../../config/clock.js';
import { type Secret } from '../../config/secret.js';
import { partOf } from '../../exchange/call-limits.js';
import {
  certificateRefusal,
  certificateVerdict,
  isPage,
  type ReloadableIdentity,
  reloadIfRefused,
} from '../../exchange/certificate-refusal.js';
import { type Exchange, type ExchangeResponse, outcomeOf } from '../../exchange/exchange.types.js';
import { isJsonObject, parseJson } from '../../exchange/decode.js';
import { parseRetryAfter } from '../../exchange/timing.js';
import { certificateRefusedError } from '../../tls/certificate-refused.js';
import { MAX_RETRY_AFTER_S, type TokenGrant } from '../access-token.js';
import { readTokenResponse } from '../check-token.js';
import { tokenConnectionError, type TokenPlace, tokenRefusal } from './token-errors.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;

export interface TokenPostOptions {
  /** {auth_url}/oauth2/token */
  tokenUrl: string;
  /** The option that names it: `urls.authUrl`. */
  tokenOption: string;
  clientId: string;
  exchange: Exchange;
  /** Asked at each request: a reloaded certificate may have brought another one. */
  agent: () => Agent;
  /** With `oauth.mtls`: its certificate is offered to the endpoint. */
  identity?: ReloadableIdentity;
  clock: Clock;
  /** Milliseconds to connect. At most half of the time that a request has, so that another can follow; the default. */
  connectTimeoutMs?: number;
}

/** How long an attempt may take. */
interface Limits {
  /** On the monotonic clock. */
  end: number;
  signal: AbortSignal;
}

/** One POST to the token endpoint: client_credentials, form-encoded (specification 2.1, 4, 5.4; RFC 6749, 4.4). */
export class TokenPost {
  readonly #options: TokenPostOptions;
  readonly #place: TokenPlace;

  constructor(options: TokenPostOptions) {
    this.#options = options;
    this.#place = { url: new URL(options.tokenUrl), option: options.tokenOption };
  }

  /** @param secrets the one to send, and others that an error must not show */
  async send(scope: string, secrets: [Secret, ...Secret[]], limits: Limits): Promise<TokenGrant> {
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: this.#options.clientId,
      client_secret: secrets[0].reveal(),
      scope,
    });
    const response = await this.#post(Buffer.from(form.toString()), limits);
    return this.#readAnswer(response, scope, secrets);
  }

  /** Once more where our certificate was refused and another one is in use by now. */
  async #post(body: Buffer, limits: Limits, isLast = false): Promise<ExchangeResponse> {
    const { identity } = this.#options;
    const certificate = identity?.certificate;
    const outcome = await outcomeOf(this.#exchange(body, limits));
    const { response, fault } = outcome;
    const verdict = certificateRefusal(outcome);
    if (identity && verdict) {
      const isOther = !isLast && (await reloadIfRefused(outcome, identity, certificate, limits.signal));
      if (isOther) return this.#post(body, limits, true);
      if (verdict === 'refused') {
        throw certificateRefusedError(certificate, fault ? fault.reason : `HTTP ${response.status}`);
      }
    }
    if (fault) throw tokenConnectionError(this.#place, fault);
    return response;
  }

  #exchange(body: Buffer, { end, signal }: Limits): Promise<ExchangeResponse> {
    const { exchange, agent, clock, connectTimeoutMs = Infinity } = this.#options;
    const timeoutMs = end - clock.monotonic();
    return exchange({
      url: this.#place.url,
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': String(body.length),
      },
      body,
      agent: agent(),
      timeoutMs,
      connectTimeoutMs: Math.min(connectTimeoutMs, partOf(timeoutMs)),
      maxResponseBytes: MAX_RESPONSE_BYTES,
      signal,
    });
  }

  #readAnswer(response: ExchangeResponse, scope: string, secrets: readonly Secret[]): TokenGrant {
    const { option } = this.#place;
    const { status, headers, body } = response;
    const parsed = parseJson(body.toString('utf8'));
    const page = parsed === undefined && isPage(response);
    // A field that is missing would be looked for in Object.prototype.
    const json = isJsonObject(parsed) ? ({ __proto__: null, ...parsed } as Record<string, unknown>) : parsed;
    const succeeded = status >= 200 && status < 300;
    if (succeeded && !page && !(isJsonObject(json) && typeof json.error === 'string')) {
      return readTokenResponse(json, scope, status, option);
    }
    if (status >= 300 && status < 400) {
      throw tokenConnectionError(this.#place, { kind: 'redirect', reason: `HTTP_${status}` });
    }
    const seconds = parseRetryAfter(headers['retry-after'], this.#options.clock.now());
    const retryAfter = seconds === undefined ? undefined : Math.min(seconds, MAX_RETRY_AFTER_S);
    const proxy = certificateVerdict(response);
    throw tokenRefusal({ status, json, isPage: page, scope, retryAfter, secrets, proxy, option });
  }
}
