import { type Agent } from 'node:http';
import { type Clock } from '../../time/clock.js';
import { type Secret } from '../../config/secret.js';
import { type CertificateSummary, type ServiceTokenError } from '../../errors/index.js';
import {
  certificateRefusal,
  isPage,
  type ReloadableIdentity,
  reloadRefused,
} from '../../exchange/certificate-refusal.js';
import { type Exchange, type ExchangeResponse, outcomeOf } from '../../exchange/exchange.types.js';
import { isJsonObject, parseJson } from '../../exchange/decode.js';
import { codeOf, type OnCall, tellCall } from '../../telemetry/call-event.js';
import { parseRetryAfter } from '../../exchange/retry-after.js';
import { certificateRefusedError } from '../../tls/certificate-error.js';
import {
  type TokenCredentials,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type ClientSecret } from './client-secret.js';
import { isVerdict, notAsked, tokenConnectionError, type TokenPlace, tokenRefusal } from './token-errors.js';
import { readTokenResponse } from './token-response.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** A longer one counts as this. */
const MAX_RETRY_AFTER_S = 3_600;
const REMEMBERED_MS = 10_000;
/** Health checks have no end: of a thousand replicas they would send 100 wrong passwords a second. */
const REMEMBERED_FOR_PROBES_MS = 60_000;

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

/** What the endpoint has said of credentials. */
interface Verdict {
  secret: Secret;
  fingerprint256?: string;
  /** Monotonic milliseconds. */
  at: number;
  error: ServiceTokenError;
}

/**
 * Requests tokens with the client secret (docs/service.md#tokens; RFC 6749, 4.4). If the secret is refused, it is read
 * again from its source, and another one is tried at once; the same is not sent again for 10 s, so that 10,000 callers do
 * not become 10,000 wrong passwords. Knows nothing of caching.
 */
export class TokenEndpoint implements TokenSource {
  readonly #options: TokenEndpointOptions;
  #verdict?: Verdict;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
  }

  /**
   * @param scope a checked one
   * @throws ServiceTokenError if the endpoint grants no token, or its answer is not usable; ServiceConnectionError if
   * there is no whole answer; ServiceCertificateError if it refuses our certificate
   */
  async request(scope: string, { signal, timeoutMs, isProbe }: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock } = this.#options;
    const rememberedMs = isProbe ? REMEMBERED_FOR_PROBES_MS : REMEMBERED_MS;
    const asked: Asked = { scope, signal, endsAt: clock.monotonic() + timeoutMs };
    const send = (...secrets: Secrets): Promise<TokenGrant> => {
      const { error, leftMs } = this.#refusalOf(secrets[0], rememberedMs);
      if (error) throw notAsked(error, scope, leftMs);
      return this.#send(secrets, asked);
    };
    const first = await clientSecret.read();
    const { at } = this.#refusalOf(first, rememberedMs);
    try {
      return await send(first);
    } catch (error) {
      if (!isVerdict(error)) throw error;
      const second = await clientSecret.readAfter(first, at).catch(() => first);
      if (second.reveal() === first.reveal()) throw error;
      return await send(second, first);
    }
  }

  /** The refusal of this secret, and how long it still counts; empty if there was none. */
  #refusalOf(secret: Secret, rememberedMs: number): Partial<Verdict> & { leftMs: number } {
    const { clock, identity } = this.#options;
    const verdict = this.#verdict;
    const leftMs = (verdict?.at ?? -Infinity) + rememberedMs - clock.monotonic();
    const isIt =
      verdict?.secret.reveal() === secret.reveal() &&
      verdict.fingerprint256 === identity?.certificate?.fingerprint256;
    return isIt && leftMs > 0 ? { ...verdict, leftMs } : { leftMs };
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
      this.#verdict = undefined;
      return { ...grant, requestedWith: sent() };
    } catch (error) {
      this.#tell(seen, codeOf(error, signal));
      if (isVerdict(error)) this.#verdict = { ...sent(), at: this.#options.clock.monotonic(), error };
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
      connectTimeoutMs: Math.min(connectTimeoutMs, timeoutMs / 2),
      maxResponseBytes: MAX_RESPONSE_BYTES,
      signal,
    });
  }

  #readAnswer(response: ExchangeResponse, scope: string, secrets: Secrets): TokenGrant {
    const { place, clock } = this.#options;
    const { status, headers, body } = response;
    const json = parseJson(body.toString('utf8'));
    const page = json === undefined && isPage(response);
    const succeeded = status >= 200 && status < 300;
    if (succeeded && !page && !(isJsonObject(json) && typeof json.error === 'string')) {
      return readTokenResponse(json, scope, status, place);
    }
    if (status >= 300 && status < 400) {
      throw tokenConnectionError(place, { kind: 'redirect', reason: `HTTP_${status}` });
    }
    const seconds = parseRetryAfter(headers['retry-after'], clock.now());
    const retryAfter = seconds === undefined ? undefined : Math.min(seconds, MAX_RETRY_AFTER_S);
    throw tokenRefusal({ status, json, isPage: page, scope, retryAfter, secrets, place });
  }
}
