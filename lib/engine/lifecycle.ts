import { AsyncResource } from 'node:async_hooks';
import { type TokenCache } from '../auth/cache/token-cache.js';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type BanksService } from '../banks/banks.service.js';
import { type ClientContext } from '../http/request/client-context.js';
import { checkStart, reportStart } from './startup.js';

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

  constructor(parts: ServiceParts) {
    this.#parts = parts;
    // Nest calls no lifecycle hooks of a lazy-loaded module, so start() may never run. The first call then starts the
    // watch on the certificate files. bind() keeps the watch's timers out of the async context of that call.
    parts.calls.onFirstCall = AsyncResource.bind(() => parts.identity.startWatching());
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

  /** Aborts the calls that are still in flight after `http.shutdownTimeout`, with a `connection_closed` error. */
  beginShutdown(): void {
    if (this.#abortAt !== undefined) return;
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
