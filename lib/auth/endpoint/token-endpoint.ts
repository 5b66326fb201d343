import { type Agent } from 'node:http';
import { type Clock } from '../../time/clock.js';
import { type Secret } from '../../config/secret.js';
import { type CertificateSummary, ServiceTokenError } from '../../errors/index.js';
import { partOf } from '../../exchange/call-limits.js';
import {
  certificateRefusal,
  certificateVerdict,
  isPage,
  type ReloadableIdentity,
  reloadRefused,
} from '../../exchange/certificate-refusal.js';
import { type Exchange, type ExchangeResponse, outcomeOf } from '../../exchange/exchange.types.js';
import { isJsonObject, parseJson } from '../../exchange/decode.js';
import { codeOf, type OnCall, tellCall } from '../../telemetry/call-event.js';
import { parseRetryAfter } from '../../exchange/retry-after.js';
import { certificateRefusedError } from '../../tls/certificate-error.js';
import { type TokenGrant, type TokenRequestContext, type TokenSource } from '../access-token.js';
import { type ClientSecret } from './client-secret.js';
import { keyOf, RefusedSecrets, type TokenCredentials } from './refused-secrets.js';
import { isCredentialRefusal, tokenConnectionError, type TokenPlace, tokenRefusal } from './token-errors.js';
import { readTokenResponse } from './token-response.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** A longer one counts as this. */
const MAX_RETRY_AFTER_S = 3_600;

interface TokenEndpointOptions {
  place: TokenPlace;
  clientId: string;
  clientSecret: ClientSecret;
  exchange: Exchange;
  /** Called for each request: a reloaded certificate may have brought another agent. */
  agent: () => Agent;
  /** With `oauth.mtls`: its certificate is offered to the endpoint. */
  identity?: ReloadableIdentity;
  clock: Clock;
  userAgent: string;
  /** Milliseconds to connect. At most, and by default, half of the time that a request has, so that another can follow. */
  connectTimeoutMs?: number;
  /** Called after each request. */
  onCall?: OnCall;
  /** Shared by clients that come and go. Default: its own. */
  refusedSecrets?: RefusedSecrets;
}

/** The secret that is sent, then others that an error must not show. */
type Secrets = readonly [Secret, ...Secret[]];

/** One token that is asked for. */
interface Asked {
  scope: string;
  signal: AbortSignal;
  /** Monotonic milliseconds. */
  endsAt: number;
}

/** What `onCall` is told of one request. */
interface Seen {
  /** Monotonic milliseconds. */
  startedAt: number;
  /** 2 if our certificate was refused and another one was offered. */
  attempts: number;
  response?: ExchangeResponse;
  /** The certificate that was offered last. */
  certificate?: CertificateSummary;
}

/**
 * Requests tokens with the client secret (docs/service.md#tokens; RFC 6749, 4.4). If the secret is refused, it is read
 * again from its source, and another one is tried at once. Knows nothing of caching.
 */
export class TokenEndpoint implements TokenSource {
  readonly #options: TokenEndpointOptions;
  readonly #refused: RefusedSecrets;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
    this.#refused = options.refusedSecrets ?? new RefusedSecrets(options.clock);
  }

  /**
   * @param scope a checked one
   * @throws ServiceTokenError if the endpoint grants no token, or its answer is not usable; ServiceConnectionError if
   * there is no whole answer; ServiceCertificateError if it refuses our certificate
   */
  async request(scope: string, { signal, timeoutMs, isProbe }: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock, identity } = this.#options;
    const asked: Asked = { scope, signal, endsAt: clock.monotonic() + timeoutMs };
    let isSent = false;
    const ask = (key: string, secrets: Secrets): Promise<TokenGrant> =>
      this.#refused.guard(key, scope, { signal, isProbe }, () => {
        isSent = true;
        return this.#send(secrets, asked);
      });
    const keyOfSecret = (secret: Secret): string => keyOf(this.#credentials(secret, identity?.certificate));
    const first = await clientSecret.read();
    const key = keyOfSecret(first);
    try {
      return await ask(key, [first]);
    } catch (error) {
      if (!isRefusedSecret(error)) throw error;
      const refusedAt = isSent ? undefined : this.#refused.refusedAt(key, scope, isProbe);
      const second = await clientSecret.readAfter(first, refusedAt).catch(() => first);
      if (second.reveal() === first.reveal()) throw error;
      return await ask(keyOfSecret(second), [second, first]);
    }
  }

  async #send(secrets: Secrets, asked: Asked): Promise<TokenGrant> {
    const { scope, signal } = asked;
    const seen: Seen = { startedAt: this.#options.clock.monotonic(), attempts: 0 };
    // The certificate may have changed since the beginning.
    const sent = () => this.#credentials(secrets[0], seen.certificate);
    try {
      const response = await this.#post(this.#form(scope, secrets[0]), asked, seen);
      const grant = this.#readAnswer(response, scope, secrets);
      this.#tell(seen);
      return { ...grant, requestedWith: sent() };
    } catch (error) {
      this.#tell(seen, codeOf(error, signal));
      if (isRefusedSecret(error)) this.#refused.remember(keyOf(sent()), scope, error);
      throw error;
    }
  }

  #credentials(secret: Secret, certificate?: CertificateSummary): TokenCredentials {
    const { place, clientId } = this.#options;
    return { tokenUrl: place.url.href, clientId, secret, fingerprint256: certificate?.fingerprint256 };
  }

  #tell({ startedAt, attempts, response }: Seen, error?: string): void {
    const { onCall, clock, place } = this.#options;
    if (!onCall) return;
    const durationMs = clock.monotonic() - startedAt;
    const about = { kind: 'token', method: 'POST', route: place.url.pathname, attempts, durationMs } as const;
    tellCall(onCall, { ...about, status: response?.status, error });
  }

  #form(scope: string, secret: Secret): Buffer {
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: this.#options.clientId,
      client_secret: secret.reveal(),
      scope,
    });
    return Buffer.from(form.toString());
  }

  /** Sends the request, and once more if our certificate was refused and another one is in use by now. */
  async #post(body: Buffer, asked: Asked, seen: Seen): Promise<ExchangeResponse> {
    seen.attempts += 1;
    const { identity } = this.#options;
    const certificate = (seen.certificate = identity?.certificate);
    const outcome = await outcomeOf(this.#exchange(body, asked));
    const { response, fault } = outcome;
    seen.response = response;
    const verdict = certificateRefusal(outcome);
    if (identity && verdict) {
      const isOther = seen.attempts === 1 && (await reloadRefused(identity, certificate, asked.signal));
      if (isOther) return this.#post(body, asked, seen);
      if (verdict === 'refused') {
        const reason = fault ? fault.reason : `HTTP ${response.status}`;
        throw certificateRefusedError(
          certificate,
          reason,
          this.#options.place.describeOption,
          identity.lastIssuer,
        );
      }
    }
    if (fault) throw tokenConnectionError(this.#options.place, fault);
    return response;
  }

  #exchange(body: Buffer, { endsAt, signal }: Asked): Promise<ExchangeResponse> {
    const { exchange, agent, place, clock, userAgent, connectTimeoutMs = Infinity } = this.#options;
    const timeoutMs = endsAt - clock.monotonic();
    return exchange({
      url: place.url,
      method: 'POST',
      headers: {
        'user-agent': userAgent,
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

  #readAnswer(response: ExchangeResponse, scope: string, secrets: Secrets): TokenGrant {
    const { place, clock } = this.#options;
    const { status, headers, body } = response;
    const parsed = parseJson(body.toString('utf8'));
    const page = parsed === undefined && isPage(response);
    // A field that is missing would be looked for in Object.prototype.
    const json = isJsonObject(parsed) ? ({ __proto__: null, ...parsed } as Record<string, unknown>) : parsed;
    const succeeded = status >= 200 && status < 300;
    if (succeeded && !page && !(isJsonObject(json) && typeof json.error === 'string')) {
      return readTokenResponse(json, scope, status, place);
    }
    if (status >= 300 && status < 400) {
      throw tokenConnectionError(place, { kind: 'redirect', reason: `HTTP_${status}` });
    }
    const seconds = parseRetryAfter(headers['retry-after'], clock.now());
    const retryAfter = seconds === undefined ? undefined : Math.min(seconds, MAX_RETRY_AFTER_S);
    const proxy = certificateVerdict(response);
    throw tokenRefusal({ status, json, isPage: page, scope, retryAfter, secrets, proxy, place });
  }
}

function isRefusedSecret(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && error.code === 'token_refused' && isCredentialRefusal(error);
}
