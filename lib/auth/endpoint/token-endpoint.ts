import { type Agent } from 'node:http';
import { type Clock, untilAborted, watching } from '../../time/time.js';
import { type OAuthSettings } from '../../config/resolve-options.js';
import { REREAD_MS, Rotating } from '../../config/rotating.js';
import { readInTime, type Secret } from '../../config/secret.js';
import { type DescribeOption, ServiceTokenError } from '../../errors/index.js';
import { certificateVerdict, isCertain } from '../../exchange/response.js';
import { faultWords, hadDeadConnection, captureOutcome } from '../../exchange/fault.js';
import { type Exchange, type ExchangeResponse } from '../../exchange/io.js';
import { AttemptTrace, eventErrorCode, type OnCall, reportCall } from '../../telemetry/telemetry.js';
import { certificateRefusedError } from '../../tls/certificate-summary.js';
import { type Identity } from '../../tls/client-identity.js';
import {
  type TokenCredentials,
  type TokenGrant,
  type TokenOwner,
  type TokenRequestContext,
  type TokenSource,
} from '../access-token.js';
import { isSecretRefusal, tokenConnectionError, type TokenPlace } from './token-errors.js';
import { SecretRefusals } from './secret-refusals.js';
import { readTokenResponse } from './token-response.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/**
 * Time limit for the first byte of a response on a connection that was idle for over 4 s, and may have died silently. The request
 * is then sent again on another connection, with the rest of its 10 s.
 */
const IDLE_CONNECTION_TIMEOUT_MS = 5_000;

interface TokenEndpointOptions {
  place: TokenPlace;
  clientId: string;
  clientSecret: Rotating<Secret>;
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
  isProbe?: boolean;
  /** First the secret that is sent, then another one that errors must not show either. */
  secrets: readonly [Secret, ...Secret[]];
}

/** What happened during the request. */
interface AttemptRecord {
  startedAt: number;
  /** Set if `onCall` is. One of each exchange that asked the agent for a connection: as for calls, a reconnect and a replay count. */
  traces?: AttemptTrace[];
  /** Whether the request was sent again because the server had closed the reused connection. */
  reconnected?: boolean;
  /** Whether the endpoint refused our client certificate, and another one was found. */
  hasOtherCertificate?: boolean;
  response?: ExchangeResponse;
  /** The credentials that were sent last. The certificate may have changed during the request. */
  sent?: TokenCredentials;
}

/**
 * The client secret, which somebody else may replace. Reading it rejects with a ServiceTokenError `client_secret_unavailable` if its
 * source throws, returns nothing or takes too long.
 */
export function rotatingClientSecret(
  { clientSecret, clientSecretIn }: Pick<OAuthSettings, 'clientSecret' | 'clientSecretIn'>,
  clock: Clock,
  describeOption: DescribeOption,
): Rotating<Secret> {
  const read = async () => {
    try {
      // The callers' own timers keep the process running.
      const secret = await readInTime(clientSecret, watching(clock));
      if (!secret.reveal()) throw new Error('it is empty.');
      return secret;
    } catch (error) {
      throw new ServiceTokenError({
        code: 'client_secret_unavailable',
        message: `The client secret cannot be read. oauth.clientSecret: ${(error as Error).message}`,
        hint: `Check that what ${describeOption('oauth.clientSecret')} names can be read.`,
        options: ['oauth.clientSecret'],
      });
    }
  };
  return new Rotating({
    read,
    isSame: (one, other) => one.equals(other),
    clock,
    rereadMs: REREAD_MS[clientSecretIn],
  });
}

/**
 * Requests tokens with the client secret (docs/service.md#tokens, https://www.rfc-editor.org/rfc/rfc6749#section-4.4). Knows
 * nothing of caching.
 *
 * If the endpoint refuses the secret, the secret is read again from its source, and another one is tried at once. The same
 * secret is not sent again for 10 s (`secret-refusals.ts`). If the refused secret has worked before, it is probably being rotated, and the endpoint knows the new one before the file does. Then callers wait for the new
 * secret for up to 2 s.
 */
export class TokenEndpoint implements TokenSource {
  readonly #options: TokenEndpointOptions;
  readonly #refusals: SecretRefusals;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
    this.#refusals = new SecretRefusals(options.clock);
  }

  /**
   * Requests a token.
   * @param scope a checked scope
   * @throws ServiceTokenError if the endpoint grants no token, or if its response is not usable; ServiceConnectionError if there
   * is no complete response; ServiceCertificateError if the endpoint refuses our certificate
   */
  async request(scope: string, { signal, timeoutMs, isProbe }: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock } = this.#options;
    const attempt = { scope, signal, isProbe, endsAt: clock.monotonic() + timeoutMs };
    const secret = await clientSecret.get();
    // Outside of the try block: during the pause of one customer, the secret is not read again, because others get tokens with it.
    this.#refusals.throwIfPaused(scope, this.#credentialsWith(secret));
    try {
      return await this.#send({ ...attempt, secrets: [secret] });
    } catch (error) {
      if (!isSecretRefusal(error)) throw error;
      const other = await clientSecret.findOther(secret, attempt);
      if (!other) throw error;
      return await this.#send({ ...attempt, secrets: [other, secret] });
    }
  }

  #send(attempt: SecretAttempt): Promise<TokenGrant> {
    const credentials = this.#credentialsWith(attempt.secrets[0]);
    return this.#refusals.send(attempt, credentials, () => this.#sendOnce(attempt));
  }

  async #sendOnce(attempt: SecretAttempt): Promise<TokenGrant> {
    const { scope, signal, secrets } = attempt;
    const { clock, clientSecret, identity, onCall, place } = this.#options;
    const traces = onCall && [];
    const record: AttemptRecord = { startedAt: clock.monotonic(), traces };
    try {
      const grant = readTokenResponse(await this.#post(attempt, record), { ...attempt, place }, clock.now());
      this.#report(record);
      if (record.sent) this.#refusals.accept(scope, record.sent);
      clientSecret.accept(secrets[0]);
      identity?.rotation.accept(record.sent?.fingerprint256, 'token');
      return { ...grant, requestedWith: record.sent };
    } catch (error) {
      this.#report(record, eventErrorCode(error, signal));
      if (isSecretRefusal(error) && record.sent) this.#refusals.record(scope, record.sent, error);
      throw error;
    }
  }

  /** Whose tokens a request would get now: the client certificate in use belongs to it. */
  get owner(): TokenOwner {
    const { place, clientId, identity } = this.#options;
    return { tokenUrl: place.url.href, clientId, fingerprint256: identity?.certificate?.fingerprint256 };
  }

  #credentialsWith(secret: Secret): TokenCredentials {
    return { ...this.owner, secret };
  }

  #report({ startedAt, traces = [], response }: AttemptRecord, error?: string): void {
    const { onCall, clock, place } = this.#options;
    if (!onCall) return;
    const durationMs = clock.monotonic() - startedAt;
    const about = { kind: 'token', method: 'POST', route: place.url.pathname, durationMs } as const;
    reportCall(onCall, traces, { ...about, status: response?.status, error });
  }

  /**
   * Sends the request. Sends it once more if the server had closed the reused connection, and once more if the server refused our
   * certificate and another one was found.
   */
  async #post(attempt: SecretAttempt, record: AttemptRecord): Promise<ExchangeResponse> {
    const { identity, place } = this.#options;
    const search = identity?.rotation.search('token');
    if (search) await untilAborted(search, attempt.signal);
    const certificate = identity?.certificate;
    record.sent = this.#credentialsWith(attempt.secrets[0]);
    const outcome = await captureOutcome(() => this.#exchange(attempt, record));
    const { response, fault } = outcome;
    if (hadDeadConnection(fault) && !record.reconnected) {
      record.reconnected = true;
      return this.#post(attempt, record);
    }
    record.response = response;
    const verdict = certificateVerdict(outcome);
    const hasCertificate = certificate !== undefined;
    if (identity && verdict) {
      record.hasOtherCertificate =
        !record.hasOtherCertificate &&
        (await untilAborted(identity.findOther(certificate, outcome, 'token'), attempt.signal));
      if (record.hasOtherCertificate) return this.#post(attempt, record);
      if (isCertain(verdict)) {
        const words = fault
          ? faultWords(fault, { ...place, server: 'token', hasCertificate })
          : ['token response', String(response.status), `certificate-${verdict}`];
        const reason = fault ? fault.reason : `HTTP ${response.status}`;
        const { keyType, lastIssuer } = identity;
        const refused = { certificate, keyType, lastIssuer, reason };
        throw certificateRefusedError(words, refused, place.describeOption);
      }
    }
    if (fault) throw tokenConnectionError({ ...place, hasCertificate }, fault);
    return response;
  }

  #exchange(
    { scope, secrets, endsAt, signal }: SecretAttempt,
    record: AttemptRecord,
  ): Promise<ExchangeResponse> {
    const { exchange, agent, identity, place, clock, userAgent, clientId } = this.#options;
    const { connectTimeoutMs = Infinity } = this.#options;
    const timeoutMs = endsAt - clock.monotonic();
    const trace = record.traces && new AttemptTrace(record.startedAt, clock);
    if (trace) record.traces?.push(trace);
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
      certificate: identity?.certificate && { keyType: identity.keyType },
      // After a reconnect, use only a connection that the server is known to keep open.
      mayUseOlderConnection: !record.reconnected,
      idleConnectionTimeoutMs: IDLE_CONNECTION_TIMEOUT_MS,
      timeoutMs,
      connectTimeoutMs: Math.min(connectTimeoutMs, timeoutMs / 2),
      maxResponseBytes: MAX_RESPONSE_BYTES,
      signal,
      trace,
    });
  }
}
