import { type Agent } from 'node:http';
import { type Clock, untilAborted } from '../../time/time.js';
import { type Secret } from '../../config/secret.js';
import { type ServiceTokenError } from '../../errors/index.js';
import {
  certificateRefusal,
  isFromSidecar,
  isPage,
  requestsCertificateLate,
  saysCertificateMissing,
  isSuccess,
  isJsonObject,
  parseBody,
  parseRetryAfter,
} from '../../exchange/response.js';
import { type Exchange, type ExchangeResponse } from '../../exchange/io.js';
import { hadDeadConnection, captureOutcome } from '../../exchange/fault.js';
import { eventErrorCode, type OnCall, reportCall } from '../../telemetry/call-event.js';
import { certificateRefusedError } from '../../tls/certificate-error.js';
import { type Identity } from '../../tls/client-identity.js';
import {
  type TokenCredentials,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { type ClientSecret } from './client-secret.js';
import {
  isSecretRefusal,
  stillFailing,
  tokenConnectionError,
  type TokenPlace,
  tokenRedirect,
  tokenRefusal,
} from './token-errors.js';
import { readTokenResponse } from './token-response.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** A longer Retry-After counts as this. */
const MAX_RETRY_AFTER_S = 3_600;
/** A refused secret is not sent again for this time. */
const REMEMBERED_MS = 10_000;
/** The same for health checks, which never stop: those of a thousand replicas would send 100 wrong passwords a second. */
const REMEMBERED_FOR_PROBES_MS = 60_000;
/** Callers wait for a new secret for this time, if the refused one has worked before. */
const WAIT_MS = 2_000;
/**
 * Time limit for the first byte of a response on a connection that was idle for over 4 s, and may have died silently. The request
 * is then sent again on another connection, with the rest of its 10 s.
 */
const IDLE_CONNECTION_TIMEOUT_MS = 5_000;

interface TokenEndpointOptions {
  place: TokenPlace;
  clientId: string;
  clientSecret: ClientSecret;
  exchange: Exchange;
  agent: Agent;
  /** With `oauth.mtls`: its certificate is offered to the endpoint. */
  identity?: Pick<Identity, 'certificate' | 'keyType' | 'lastIssuer' | 'rotation' | 'findOther'>;
  clock: Clock;
  userAgent: string;
  /** Milliseconds to connect. At most, and by default, half of the time that a request has, so that another can follow. */
  connectTimeoutMs?: number;
  /** Called after each request. */
  onCall?: OnCall;
}

/** A token request with one secret. */
interface SecretAttempt {
  scope: string;
  signal: AbortSignal;
  /** Milliseconds of the monotonic clock, as all times here. */
  endsAt: number;
  /** Milliseconds for which a refused secret is not sent again. */
  rememberedMs: number;
  /** First the secret that is sent, then another one that errors must not show either. */
  secrets: readonly [Secret, ...Secret[]];
}

/** What happened during the request. */
interface AttemptRecord {
  startedAt: number;
  /** Number of exchanges that asked the agent for a connection. As for calls, a reconnect and a replay count. */
  attempts: number;
  /** Whether the request was sent again because the server had closed the reused connection. */
  reconnected?: boolean;
  /** Whether the endpoint refused our client certificate, and another one was found. */
  hasOtherCertificate?: boolean;
  response?: ExchangeResponse;
  /** The credentials that were sent last. The certificate may have changed during the request. */
  sent?: TokenCredentials;
}

/**
 * Requests tokens with the client secret (docs/service.md#tokens, https://www.rfc-editor.org/rfc/rfc6749#section-4.4). Knows
 * nothing of caching.
 *
 * If the endpoint refuses the secret, the secret is read again from its source, and another one is tried at once. The same
 * secret is not sent again for 10 s, so that 10,000 callers do not send 10,000 wrong passwords. If the refused secret has worked
 * before, it is probably being rotated, and the endpoint knows the new one before the file does. Then callers wait for the new
 * secret for up to 2 s.
 */
export class TokenEndpoint implements TokenSource {
  readonly #options: TokenEndpointOptions;
  /** The last refusal of a secret: the credentials, its first and last time, and the error. */
  #refusal?: { of: TokenCredentials; firstAt: number; at: number; error: ServiceTokenError };
  /** The secret with which the endpoint granted the last token. */
  #acceptedSecret?: Secret;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
  }

  /**
   * Requests a token.
   * @param scope a checked scope
   * @throws ServiceTokenError if the endpoint grants no token, or if its response is not usable; ServiceConnectionError if there
   * is no complete response; ServiceCertificateError if the endpoint refuses our certificate
   */
  async request(scope: string, { signal, timeoutMs, isProbe }: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock } = this.#options;
    const rememberedMs = isProbe ? REMEMBERED_FOR_PROBES_MS : REMEMBERED_MS;
    const attempt = { scope, signal, endsAt: clock.monotonic() + timeoutMs, rememberedMs };
    const first = await clientSecret.read();
    const refusedAt = this.#rememberedRefusal(first, rememberedMs)?.at;
    try {
      return await this.#send({ ...attempt, secrets: [first] });
    } catch (error) {
      if (!isSecretRefusal(error)) throw error;
      const second = await this.#readOtherSecret(first, attempt, refusedAt);
      if (second.equals(first)) throw error;
      return await this.#send({ ...attempt, secrets: [second, first] });
    }
  }

  /** Reads the secret again after a refusal. Resolves with the same secret if the source has no other one. */
  async #readOtherSecret(
    refused: Secret,
    { signal, endsAt }: Omit<SecretAttempt, 'secrets'>,
    refusedAt?: number,
  ) {
    const { clientSecret } = this.#options;
    const next = await clientSecret.readAfterRefusal(refused, refusedAt).catch(() => refused);
    const hasWorked = refused.equals(this.#acceptedSecret);
    if (!hasWorked || !this.#refusal || !next.equals(refused)) return next;
    return clientSecret.waitForOther(refused, Math.min(endsAt, this.#refusal.firstAt + WAIT_MS), signal);
  }

  /** The last refusal, if it was of this secret with the certificate in use, and is not too long ago. */
  #rememberedRefusal(secret: Secret, rememberedMs = Infinity) {
    const { clock, identity } = this.#options;
    const { of, at = -Infinity } = this.#refusal ?? {};
    const isSame = of?.secret.equals(secret) && of.fingerprint256 === identity?.certificate?.fingerprint256;
    return isSame && at + rememberedMs > clock.monotonic() ? this.#refusal : undefined;
  }

  async #send(attempt: SecretAttempt): Promise<TokenGrant> {
    const { scope, signal, secrets, rememberedMs } = attempt;
    const { clock } = this.#options;
    const record: AttemptRecord = { startedAt: clock.monotonic(), attempts: 0 };
    const refusal = this.#rememberedRefusal(secrets[0], rememberedMs);
    if (refusal) throw stillFailing(refusal.error, scope, refusal.at + rememberedMs - record.startedAt);
    try {
      const grant = this.#readResponse(await this.#post(attempt, record), attempt);
      this.#report(record);
      this.#refusal = undefined;
      this.#acceptedSecret = record.sent?.secret;
      this.#options.identity?.rotation.accept(record.sent?.fingerprint256, 'token');
      this.#options.clientSecret.forgetRefusal();
      return { ...grant, requestedWith: record.sent };
    } catch (error) {
      this.#report(record, eventErrorCode(error, signal));
      if (isSecretRefusal(error) && record.sent) {
        const at = clock.monotonic();
        const { firstAt = at } = this.#rememberedRefusal(secrets[0]) ?? {};
        this.#refusal = { of: record.sent, firstAt, at, error };
      }
      throw error;
    }
  }

  #report({ startedAt, attempts, response }: AttemptRecord, error?: string): void {
    const { onCall, clock, place } = this.#options;
    if (!onCall) return;
    const durationMs = clock.monotonic() - startedAt;
    const about = { kind: 'token', method: 'POST', route: place.url.pathname, attempts, durationMs } as const;
    reportCall(onCall, { ...about, status: response?.status, error });
  }

  /**
   * Sends the request. Sends it once more if the server had closed the reused connection, and once more if the server refused our
   * certificate and another one was found.
   */
  async #post(attempt: SecretAttempt, record: AttemptRecord): Promise<ExchangeResponse> {
    record.attempts += 1;
    const { identity, place, clientId } = this.#options;
    const search = identity?.rotation.search('token');
    if (search) await untilAborted(search, attempt.signal);
    const certificate = identity?.certificate;
    const [secret] = attempt.secrets;
    record.sent = { tokenUrl: place.url.href, clientId, secret, fingerprint256: certificate?.fingerprint256 };
    const outcome = await captureOutcome(() => this.#exchange(attempt, record));
    const { response, fault } = outcome;
    if (hadDeadConnection(fault) && !record.reconnected) {
      record.reconnected = true;
      return this.#post(attempt, record);
    }
    record.response = response;
    const verdict = certificateRefusal(outcome);
    if (identity && verdict) {
      record.hasOtherCertificate =
        !record.hasOtherCertificate &&
        (await untilAborted(identity.findOther(certificate, outcome, 'token'), attempt.signal));
      if (record.hasOtherCertificate) return this.#post(attempt, record);
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

  #exchange(
    { scope, secrets, endsAt, signal }: SecretAttempt,
    { reconnected }: AttemptRecord,
  ): Promise<ExchangeResponse> {
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
      // After a reconnect, use only a connection that the server is known to keep open.
      mayUseOlderConnection: !reconnected,
      idleConnectionTimeoutMs: IDLE_CONNECTION_TIMEOUT_MS,
      timeoutMs,
      connectTimeoutMs: Math.min(connectTimeoutMs, timeoutMs / 2),
      maxResponseBytes: MAX_RESPONSE_BYTES,
      signal,
    });
  }

  #readResponse(response: ExchangeResponse, { scope, secrets }: SecretAttempt): TokenGrant {
    const { place, clock } = this.#options;
    const { status, headers } = response;
    const json = parseBody(response);
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
      requestsCertificateLate: requestsCertificateLate(response),
      isFromSidecar: place.url.protocol === 'http:' && isFromSidecar(response),
      scope,
      retryAfter,
      secrets,
      place,
    });
  }
}
