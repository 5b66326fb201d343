import {
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { type TokenCache } from '../auth/index.js';
import { systemClock } from '../config/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type CallsInFlight } from '../http/calls-in-flight.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type Agents, type ClientIdentity } from '../tls/index.js';

export interface LifecycleParts {
  options: ResolvedOptions;
  calls: CallsInFlight;
  tokens: TokenCache | undefined;
  agents: Agents;
  identity: ClientIdentity;
  telemetry: Telemetry;
  warn: (message: string) => void;
  /** Rejects where the application must not start. */
  checkStart: () => Promise<void>;
}

/**
 * Starts and ends the parts of a module. `http.shutdownTimeout` begins before Nest closes its servers. A server waits
 * for its requests, and those may wait for our calls: so new calls are accepted until the servers are closed. When the
 * time is over, all calls and connections are ended at once.
 *
 * Nest 11 calls the hooks again for each close() and signal, also while they run (nest#16439): there is one end.
 */
export class ServiceLifecycle
  implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #parts: LifecycleParts;
  #stopObserving?: () => void;
  #ended?: Promise<void>;
  /** When the shutdown must be done, on the monotonic clock. */
  #endsAt?: number;
  #cancelEnd?: () => void;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
  }

  /** Nothing is started earlier: if the host's start fails, Nest calls no hook to stop it. */
  async onApplicationBootstrap(): Promise<void> {
    if (this.#ended) return;
    const { telemetry, identity, tokens, checkStart } = this.#parts;
    tokens?.open();
    try {
      await checkStart();
    } catch (error) {
      // Nest calls no hook of an application that did not start.
      await this.#close();
      throw error;
    }
    identity.follow();
    this.#stopObserving = telemetry.observeCertificate(() => identity.status.daysLeft);
  }

  beforeApplicationShutdown(): void {
    this.#beginGrace();
  }

  onApplicationShutdown(): Promise<void> {
    return (this.#ended ??= this.#end());
  }

  async #end(): Promise<void> {
    const endsAt = this.#beginGrace();
    await this.#parts.calls.drain();
    this.#cancelEnd?.();
    await this.#close(endsAt);
    this.#stopObserving?.();
  }

  /** @param endsAt when the host's own connections over `auth.httpsAgent` must have ended too; default: now */
  async #close(endsAt = 0): Promise<void> {
    const { calls, tokens, agents } = this.#parts;
    calls.close();
    tokens?.close();
    await tokens?.closeSource();
    await agents.close(Math.max(0, endsAt - systemClock.monotonic()));
  }

  /** @returns when the shutdown must be done, on the monotonic clock */
  #beginGrace(): number {
    if (this.#endsAt === undefined) {
      const { shutdownTimeout } = this.#parts.options.http;
      this.#endsAt = systemClock.monotonic() + shutdownTimeout;
      this.#cancelEnd = systemClock.schedule(() => this.#cut(), shutdownTimeout);
    }
    return this.#endsAt;
  }

  #cut(): void {
    const { calls, tokens, agents, options, warn } = this.#parts;
    const count = calls.close();
    tokens?.close();
    void agents.close();
    if (count === 0) return;
    const which = count === 1 ? '1 call was' : `${count} calls were`;
    warn(
      `Shutdown: ${which} still running after http.shutdownTimeout (${options.http.shutdownTimeout} ms), and aborted.`,
    );
  }
}
