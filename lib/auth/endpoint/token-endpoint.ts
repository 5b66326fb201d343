import { type Agent } from 'node:http';
import { type Clock } from '../../time/clock.js';
import { type Secret } from '../../config/secret.js';
import { type ServiceTokenError } from '../../errors/index.js';
import {
  asksTooLate,
  certificateRefusal,
  isFromSidecar,
  isPage,
  saysCertificateMissing,
} from '../../exchange/certificate-refusal.js';
import {
  type Exchange,
  type ExchangeResponse,
  hadDeadConnection,
  isSuccess,
  outcomeOf,
} from '../../exchange/exchange.types.js';
import { isJsonObject, parseJson } from '../../exchange/decode.js';
import { eventErrorCode, type OnCall, reportCall } from '../../telemetry/call-event.js';
import { parseRetryAfter } from '../../exchange/retry-after.js';
import { certificateRefusedError } from '../../tls/certificate-error.js';
import { untilAborted } from '../../time/timers.js';
import { type Identity } from '../../tls/client-identity.js';
import { CertificateRotation } from '../../tls/reload/certificate-rotation.js';
import {
  type TokenCredentials,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type ClientSecret } from './client-secret.js';
import {
  isVerdict,
  notAsked,
  tokenConnectionError,
  type TokenPlace,
  tokenRedirect,
  tokenRefusal,
} from './token-errors.js';
import { readTokenResponse } from './token-response.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** A longer one counts as this. */
const MAX_RETRY_AFTER_S = 3_600;
const REMEMBERED_MS = 10_000;
/** How long callers wait for the new secret if one that has worked is refused. */
const WAIT_MS = 2_000;
/** To the first byte on a connection that was idle for over 4 s. The repeat has the rest of the request's 10 s. */
const OLD_CONNECTION_TIMEOUT_MS = 5_000;
/** Health checks have no end: of a thousand replicas they would send 100 wrong passwords a second. */
const REMEMBERED_FOR_PROBES_MS = 60_000;

interface TokenEndpointOptions {
  place: TokenPlace;
  clientId: string;
  clientSecret: ClientSecret;
  exchange: Exchange;
  agent: Agent;
  /** With `oauth.mtls`: its certificate is offered to the endpoint. */
  identity?: Pick<Identity, 'certificate' | 'keyType' | 'lastIssuer' | 'reloadAfterRefusal'>;
  clock: Clock;
  userAgent: string;
  /** Milliseconds to connect. At most, and by default, half of the time that a request has, so that another can follow. */
  connectTimeoutMs?: number;
  /** Called after each request. */
  onCall?: OnCall;
}

/** One token that is asked for with one secret. */
interface Asked {
  scope: string;
  signal: AbortSignal;
  /** Monotonic milliseconds, as all times here. */
  endsAt: number;
  /** For so many milliseconds, a secret that was refused is not sent again. */
  rememberedMs: number;
  /** The secret that is sent, then another that an error must not show. */
  secrets: readonly [Secret, ...Secret[]];
}

/** What came of it. */
interface Seen {
  startedAt: number;
  /** Exchanges that asked for a connection, as for calls: a reconnect and a replay count too. */
  attempts: number;
  /** The idle connection that it took was dead, and it was sent again on another one. */
  reconnected?: boolean;
  /** Our certificate was refused, and another one was offered. */
  hasOtherCertificate?: boolean;
  response?: ExchangeResponse;
  /** What was sent last: the certificate may have changed since the beginning. */
  sent?: TokenCredentials;
}

/**
 * Requests tokens with the client secret (docs/service.md#tokens; RFC 6749, 4.4). If the secret is refused, it is read
 * again from its source, and another one is tried at once; the same is not sent again for 10 s, so that 10,000 callers do
 * not become 10,000 wrong passwords. If the refused one has worked before, callers wait for the new one for up to 2 s: the
 * endpoint may have it before the file. Knows nothing of caching.
 */
export class TokenEndpoint implements TokenSource {
  readonly #options: TokenEndpointOptions;
  /** The last verdict of the endpoint, and on what. */
  #refusal?: { of: TokenCredentials; firstAt: number; at: number; error: ServiceTokenError };
  /** What the last token was granted for. */
  #worked?: TokenCredentials;
  readonly #rotation?: CertificateRotation;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
    this.#rotation = options.identity && new CertificateRotation(options.identity);
  }

  /**
   * @param scope a checked one
   * @throws ServiceTokenError if the endpoint grants no token, or its answer is not usable; ServiceConnectionError if
   * there is no whole answer; ServiceCertificateError if it refuses our certificate
   */
  async request(scope: string, { signal, timeoutMs, isProbe }: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock } = this.#options;
    const rememberedMs = isProbe ? REMEMBERED_FOR_PROBES_MS : REMEMBERED_MS;
    const asked = { scope, signal, endsAt: clock.monotonic() + timeoutMs, rememberedMs };
    const first = await clientSecret.read();
    const refusedAt = this.#refusalOf(first, rememberedMs)?.at;
    try {
      return await this.#send({ ...asked, secrets: [first] });
    } catch (error) {
      if (!isVerdict(error)) throw error;
      const second = await this.#otherThan(first, asked, refusedAt);
      if (second.reveal() === first.reveal()) throw error;
      return await this.#send({ ...asked, secrets: [second, first] });
    }
  }

  /** Another secret than the refused one, or the same. */
  async #otherThan(refused: Secret, { signal, endsAt }: Omit<Asked, 'secrets'>, refusedAt?: number) {
    const { clientSecret } = this.#options;
    const next = await clientSecret.readAfter(refused, refusedAt).catch(() => refused);
    const hasWorked = this.#worked?.secret.reveal() === refused.reveal();
    if (!hasWorked || !this.#refusal || next.reveal() !== refused.reveal()) return next;
    return clientSecret.waitForOther(refused, Math.min(endsAt, this.#refusal.firstAt + WAIT_MS), signal);
  }

  /** The refusal of this secret with the certificate in use, if it is not too old. */
  #refusalOf(secret: Secret, rememberedMs = Infinity) {
    const { clock, identity } = this.#options;
    const { of, at = -Infinity } = this.#refusal ?? {};
    const isSame =
      of?.secret.reveal() === secret.reveal() && of.fingerprint256 === identity?.certificate?.fingerprint256;
    return isSame && at + rememberedMs > clock.monotonic() ? this.#refusal : undefined;
  }

  async #send(asked: Asked): Promise<TokenGrant> {
    const { scope, signal, secrets, rememberedMs } = asked;
    const { clock } = this.#options;
    const seen: Seen = { startedAt: clock.monotonic(), attempts: 0 };
    const refusal = this.#refusalOf(secrets[0], rememberedMs);
    if (refusal) throw notAsked(refusal.error, scope, refusal.at + rememberedMs - seen.startedAt);
    try {
      const grant = this.#readAnswer(await this.#post(asked, seen), asked);
      this.#tell(seen);
      this.#refusal = undefined;
      this.#worked = seen.sent;
      this.#rotation?.accepted(seen.sent?.fingerprint256);
      this.#options.clientSecret.accepted();
      return { ...grant, requestedWith: seen.sent };
    } catch (error) {
      this.#tell(seen, eventErrorCode(error, signal));
      if (isVerdict(error) && seen.sent) {
        const at = clock.monotonic();
        const { firstAt = at } = this.#refusalOf(secrets[0]) ?? {};
        this.#refusal = { of: seen.sent, firstAt, at, error };
      }
      throw error;
    }
  }

  #tell({ startedAt, attempts, response }: Seen, error?: string): void {
    const { onCall, clock, place } = this.#options;
    if (!onCall) return;
    const durationMs = clock.monotonic() - startedAt;
    const about = { kind: 'token', method: 'POST', route: place.url.pathname, attempts, durationMs } as const;
    reportCall(onCall, { ...about, status: response?.status, error });
  }

  /** Sends the request; once more at once if its idle connection was dead, and once more with another certificate. */
  async #post(asked: Asked, seen: Seen): Promise<ExchangeResponse> {
    seen.attempts += 1;
    const { identity, place, clientId } = this.#options;
    if (this.#rotation?.search) await untilAborted(this.#rotation.search, asked.signal);
    const certificate = identity?.certificate;
    const [secret] = asked.secrets;
    seen.sent = { tokenUrl: place.url.href, clientId, secret, fingerprint256: certificate?.fingerprint256 };
    const outcome = await outcomeOf(() => this.#exchange(asked, seen));
    const { response, fault } = outcome;
    if (hadDeadConnection(fault) && !seen.reconnected) {
      seen.reconnected = true;
      return this.#post(asked, seen);
    }
    seen.response = response;
    const verdict = certificateRefusal(outcome);
    if (identity && this.#rotation && verdict) {
      seen.hasOtherCertificate =
        !seen.hasOtherCertificate &&
        (await untilAborted(this.#rotation.findOther(certificate, outcome), asked.signal));
      if (seen.hasOtherCertificate) return this.#post(asked, seen);
      const reason = fault ? fault.reason : `HTTP ${response.status}`;
      if (verdict === 'refused')
        throw certificateRefusedError(certificate, reason, place.describeOption, {
          lastIssuer: identity.lastIssuer,
          keyType: identity.keyType,
          isTls13: fault !== undefined && fault.phase !== 'connecting',
          isReportedMissing: response && saysCertificateMissing(response),
        });
    }
    if (fault) throw tokenConnectionError({ ...place, hasCertificate: certificate !== undefined }, fault);
    return response;
  }

  #exchange({ scope, secrets, endsAt, signal }: Asked, { reconnected }: Seen): Promise<ExchangeResponse> {
    const { exchange, agent, identity, place, clock, userAgent, clientId } = this.#options;
    const { connectTimeoutMs = Infinity } = this.#options;
    const timeoutMs = endsAt - clock.monotonic();
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: secrets[0].reveal(),
      scope,
    });
    return exchange({
      url: place.url,
      method: 'POST',
      headers: {
        'user-agent': userAgent,
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: form.toString(),
      agent,
      hasCertificate: identity?.certificate !== undefined,
      // A reconnect takes a connection that is surely alive.
      mayRepeat: !reconnected,
      oldConnectionTimeoutMs: OLD_CONNECTION_TIMEOUT_MS,
      timeoutMs,
      connectTimeoutMs: Math.min(connectTimeoutMs, timeoutMs / 2),
      maxResponseBytes: MAX_RESPONSE_BYTES,
      signal,
    });
  }

  #readAnswer(response: ExchangeResponse, { scope, secrets }: Asked): TokenGrant {
    const { place, clock } = this.#options;
    const { status, headers, body } = response;
    const json = parseJson(body.toString('utf8'));
    const page = json === undefined && isPage(response);
    if (isSuccess(status) && !page && !(isJsonObject(json) && typeof json.error === 'string')) {
      return readTokenResponse(json, scope, status, place, secrets);
    }
    if (status >= 300 && status < 400) {
      throw tokenRedirect(place, status, headers.location, secrets);
    }
    const seconds = parseRetryAfter(headers, clock.now());
    const retryAfter = seconds === undefined ? undefined : Math.min(seconds, MAX_RETRY_AFTER_S);
    throw tokenRefusal({
      status,
      json,
      isPage: page,
      asksTooLate: asksTooLate(response),
      isOfSidecar: place.url.protocol === 'http:' && isFromSidecar(response),
      scope,
      retryAfter,
      secrets,
      place,
    });
  }
}
