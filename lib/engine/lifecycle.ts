import { AsyncResource } from 'node:async_hooks';
import { type TokenCache } from '../auth/cache/token-cache.js';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type BanksService } from '../banks/banks.service.js';
import { type ClientContext } from '../http/client-context.js';
import { reportStart } from './start-report.js';
import { checkStart } from './startup-check.js';

/** The parts of a client that begin and end. */
export interface ServiceParts extends ClientContext {
  tokens: TokenCache | undefined;
  auth: ServiceAuthService;
  banks: BanksService;
}

/**
 * Starts and ends a client. `http.shutdownTimeout` begins with {@link beginShutdown}, before the host closes its servers:
 * they wait for their requests, and those may wait for our calls. So new calls are accepted until {@link close}.
 */
export class ServiceLifecycle {
  readonly #parts: ServiceParts;
  /** When the shutdown must be done, on the monotonic clock. */
  #endsAt?: number;
  #cancelEnd?: () => void;
  #closing?: Promise<void>;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
    // Nest calls no hooks of a module that is loaded lazily: its certificate is followed from its first call on, in a
    // context that is not that of the call.
    parts.calls.onFirst = AsyncResource.bind(() => parts.identity.follow());
  }

  /**
   * Begins all that runs by itself: scheduled tokens, the watch on certificate files.
   * @throws ServiceStartupError if `startupCheck` is `fail` and the check fails; everything is closed then
   */
  async start(): Promise<void> {
    if (this.#closing) return;
    const { options, io, identity, tokens, auth, banks, calls } = this.#parts;
    calls.onFirst = undefined;
    reportStart(options, identity, io.log);
    if (options.authentication === 'oauth') tokens?.start();
    try {
      await checkStart(options, auth, banks, io.log);
    } catch (error) {
      // Nobody would end a client that did not start. Its calls are not waited for.
      this.#endsAt = io.clock.monotonic();
      await this.close();
      throw error;
    }
    if (this.#closing) return;
    identity.follow();
  }

  /** Calls that are left after `http.shutdownTimeout` end as `closed`. */
  beginShutdown(): void {
    if (this.#endsAt !== undefined) return;
    const { io, options } = this.#parts;
    this.#endsAt = io.clock.monotonic() + options.http.shutdownTimeout;
    this.#cancelEnd = io.clock.watch(() => this.#cut(), options.http.shutdownTimeout);
  }

  /** Resolves when all calls have ended. Runs once: Nest 11 calls its hooks for each close() and signal (nest#16439). */
  close(): Promise<void> {
    this.beginShutdown();
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { calls, tokens, identity, io } = this.#parts;
    await calls.drain();
    this.#cancelEnd?.();
    calls.close();
    tokens?.close();
    // The host's own requests over `auth.httpsAgent` get the rest of the time.
    await identity.close(Math.max(0, (this.#endsAt ?? 0) - io.clock.monotonic()));
  }

  #cut(): void {
    const { calls, tokens, identity, options, io } = this.#parts;
    const count = calls.close();
    tokens?.close();
    void identity.close();
    const which = count === 1 ? '1 call was' : `${count} calls were`;
    const limit = `http.shutdownTimeout (${options.http.shutdownTimeout} ms)`;
    if (count > 0) io.log.warn(`Shutdown: ${which} still running after ${limit}, and aborted.`);
  }
}
