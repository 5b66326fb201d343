import { type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { type TokenCache } from '../auth/index.js';
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
}

/** Ends the parts of a module in their order: calls first, as they still need tokens and connections. */
export class ServiceLifecycle implements OnModuleInit, OnApplicationShutdown {
  readonly #parts: LifecycleParts;
  #stopObserving?: () => void;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
  }

  onModuleInit(): void {
    const { telemetry, identity } = this.#parts;
    this.#stopObserving = telemetry.observeCertificate(() => identity.status.daysLeft);
  }

  async onApplicationShutdown(): Promise<void> {
    const { calls, tokens, agents, options } = this.#parts;
    const deadline = performance.now() + options.http.shutdownTimeout;
    await calls.close(options.http.shutdownTimeout);
    tokens?.close();
    // What is left is the host's own, over `auth.httpsAgent`, or has to end now.
    await agents.close(Math.max(0, deadline - performance.now()));
    this.#stopObserving?.();
  }
}
