import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type BanksService } from '../banks/banks.service.js';
import { type ResolvedOptions } from '../config/resolve-options.js';
import { ServiceError, ServiceStartupError, messageSentence } from '../errors/index.js';
import { type Log } from '../telemetry/telemetry.js';
import { systemClock } from '../time/time.js';
import { type Identity } from '../tls/client-identity.js';
import { isUnsupportedInTls13 } from '../exchange/response.js';
import { AsyncResource } from 'node:async_hooks';
import { type TokenCache } from '../auth/token-cache.js';
import { type ClientContext } from '../http/call.js';

/** Milliseconds by which the start-up check delays the start at most. */
const CHECK_TIMEOUT_MS = 15_000;

/**
 * Runs the `startupCheck`: requests a token, if OAuth is configured, and lists the banks. The check uses the client's own
 * connections and token cache, so that the first call of the application finds both ready.
 * @throws ServiceStartupError if `startupCheck` is `fail` and one of the two fails
 */
export async function checkStart(
  options: ResolvedOptions,
  auth: Pick<ServiceAuthService, 'getApiToken'>,
  banks: Pick<BanksService, 'list'>,
  log: Log,
): Promise<void> {
  if (options.startupCheck === 'off') return;
  const endsAt = systemClock.monotonic() + Math.min(CHECK_TIMEOUT_MS, options.http.timeout);
  const limit = () => ({ timeout: Math.max(1, endsAt - systemClock.monotonic()) });
  let check = 'token.api';
  try {
    if (options.oauth) await auth.getApiToken(limit());
    check = 'api.banks';
    await banks.list(limit());
    log.log('The start-up check passed.');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { hint = 'If the check keeps failing, run npx nestjs-service doctor.' } = error;
    const message = `${messageSentence(error)} ${hint}`;
    if (options.startupCheck === 'warn') return log.warn(`The start-up check failed (${check}): ${message}`);
    const [option = options.addresses.baseOption] = error.options ?? [];
    throw new ServiceStartupError(check, { ...options.locate(option), message });
  }
}

/** Logs one line about the client at its start, without secrets, and warns of settings that are probably mistakes. */
export function reportStart(
  options: ResolvedOptions,
  identity: Pick<Identity, 'certificate' | 'status' | 'keyType' | 'loaded'>,
  log: Log,
): void {
  const { environment, authentication, addresses, describeOption } = options;
  const parts = [
    `${environment}, ${authentication}: calls go to ${addresses.baseUrl}${describeProxy(options, addresses.baseUrl)}`,
    describeIdentity(identity),
    describeTokens(options),
  ];
  log.log(parts.join('; '));
  if (addresses.baseOption === 'urls.oauthBaseUrl') {
    log.log(
      `Calls go to ${describeOption('urls.oauthBaseUrl')}, which will be deprecated in favour of urls.baseUrl.`,
    );
  }
  if (isUnsupportedInTls13(identity.keyType)) {
    log.warn(
      `${describeOption('tls.privateKey')} is of the type ${identity.keyType}, for which TLS 1.3 has no signature: a server that ` +
        'speaks TLS 1.3 gets no client certificate. In the developer portal, generate a certificate with an RSA key or a P-256 key.',
    );
  }
  if (!identity.loaded.lacksChain) return;
  log.warn(
    `${describeOption('tls.chain')} is not set, so the service's certificate is verified against Node's public roots. ` +
      'Download the chain from the developer portal and set this option: in production, the application does not start with a ' +
      `client certificate and no chain. If you mean the public roots, set ${describeOption('tls.publicRoots')} to true.`,
  );
}

function describeIdentity({ certificate, status }: Pick<Identity, 'certificate' | 'status'>): string {
  if (!certificate) return 'no client certificate';
  const { daysLeft = 0, healthy } = status;
  const left = healthy ? `${daysLeft} day${daysLeft === 1 ? '' : 's'} left` : 'not valid yet';
  return `client certificate "${certificate.subject}", ${daysLeft < 0 ? 'expired' : left}`;
}

/** Shows only the proxy's host, because its URL may contain a password. */
function describeProxy({ http }: ResolvedOptions, address: string): string {
  const proxy = http.proxyFor?.(address);
  return proxy ? ` through the proxy ${new URL(proxy.reveal()).host}` : '';
}

function describeTokens(options: ResolvedOptions): string {
  const { addresses, oauth, tokenStore } = options;
  if (!oauth || addresses.tokenUrl === undefined) return 'no OAuth tokens';
  const kept = tokenStore ? 'shared through tokenStore' : 'kept in this process';
  return `tokens from ${new URL(addresses.tokenUrl).host}${describeProxy(options, addresses.tokenUrl)}, ${kept}`;
}

/**
 * Warns of a first call before Nest has initialised the application. A hybrid application with startAllMicroservices() alone, and a
 * script with NestFactory.create() and get(), never do that, and would lack what start() begins.
 */
function warnOfMissingStart({ options, io }: ClientContext): void {
  const check = options.startupCheck === 'off' ? [] : ['the start-up check'];
  const renewal = options.oauth?.refresh === 'scheduled' ? ['the scheduled renewal of tokens'] : [];
  const missing = [...check, ...renewal].join(' and ');
  if (missing === '') return;
  io.log.warn(
    `The first call came before Nest has initialised this application, so ${missing} did not begin. If the application never calls ` +
      'listen(), call await app.init() after NestFactory.create(). Nest does not initialise lazy-loaded modules.',
  );
}

/** The parts of a client that the lifecycle starts and closes. */
export interface ServiceParts extends ClientContext {
  tokens: TokenCache | undefined;
  auth: ServiceAuthService;
  banks: BanksService;
}

/**
 * Starts a client and shuts it down.
 *
 * When a Nest application shuts down, its web server first waits for requests in progress, and these may wait for our
 * calls. So the shutdown has two steps:
 * - {@link beginShutdown}, before the server closes: `http.shutdownTimeout` begins to run. New calls are still accepted,
 *   because a request in progress may need one.
 * - {@link close}, after the server has closed: new calls are refused.
 */
export class ServiceLifecycle {
  readonly #parts: ServiceParts;
  /** When calls in flight are aborted, in milliseconds of the monotonic clock. */
  #abortAt?: number;
  #cancelAbort?: () => void;
  #closing?: Promise<void>;
  #isStartExpected = false;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
    // Nest calls no lifecycle hooks of a lazy-loaded module, so start() may never run. The first call then starts the
    // watch on the certificate files. bind() keeps the watch's timers out of the async context of that call.
    parts.calls.onFirstCall = AsyncResource.bind(() => {
      if (!this.#isStartExpected) warnOfMissingStart(parts);
      parts.identity.startWatching();
    });
  }

  /** Nest initialises the application: the first call may come before {@link start}, for example from an `onModuleInit()`. */
  expectStart(): void {
    this.#isStartExpected = true;
  }

  /**
   * Runs the start-up check, and starts what runs in the background: scheduled token renewals and the watch on certificate
   * files.
   * @throws ServiceStartupError if `startupCheck` is `fail` and the check fails; the client is closed then
   */
  async start(): Promise<void> {
    if (this.#closing) return;
    const { options, io, identity, tokens, auth, banks, calls } = this.#parts;
    calls.onFirstCall = undefined;
    reportStart(options, identity, io.log);
    if (options.authentication === 'oauth') tokens?.start();
    try {
      await checkStart(options, auth, banks, io.log);
    } catch (error) {
      // The caller gets no client that it could close. Close it here, without waiting for calls in flight.
      this.#abortAt = io.clock.monotonic();
      await this.close();
      throw error;
    }
    if (this.#closing) return;
    identity.startWatching();
  }

  get isShuttingDown(): boolean {
    return this.#abortAt !== undefined;
  }

  /** Aborts the calls that are still in flight after `http.shutdownTimeout`, with a `connection_closed` error. */
  beginShutdown(): void {
    if (this.isShuttingDown) return;
    const { io, options } = this.#parts;
    this.#abortAt = io.clock.monotonic() + options.http.shutdownTimeout;
    this.#cancelAbort = io.clock.watch(() => this.#abortCalls(), options.http.shutdownTimeout);
  }

  /**
   * Resolves when all calls have ended. Nest 11 calls its shutdown hooks once for each close() and each signal
   * (https://github.com/nestjs/nest/issues/16439), so all callers share one run.
   */
  close(): Promise<void> {
    this.beginShutdown();
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { calls, tokens, identity, io } = this.#parts;
    await calls.drain();
    this.#cancelAbort?.();
    calls.close();
    tokens?.close();
    // The application's own requests over `auth.httpsAgent` get what is left of the shutdown timeout.
    await identity.close(Math.max(0, (this.#abortAt ?? 0) - io.clock.monotonic()));
  }

  #abortCalls(): void {
    const { calls, tokens, identity, options, io } = this.#parts;
    const count = calls.close();
    tokens?.close();
    void identity.close();
    const which = count === 1 ? '1 call was' : `${count} calls were`;
    const limit = `http.shutdownTimeout (${options.http.shutdownTimeout} ms)`;
    if (count > 0) io.log.warn(`Shutdown: ${which} still running after ${limit}, and aborted.`);
  }
}
