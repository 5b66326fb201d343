import { type OnApplicationShutdown } from '@nestjs/common';
import { type TokenCache } from './auth/index.js';
import { type ResolvedOptions } from './config/resolved-options.js';
import { type CallsInFlight } from './http/calls-in-flight.js';
import { type Agents } from './tls/index.js';

/** Ends the parts of a module in their order: calls first, as they still need tokens and connections. */
export class ServiceLifecycle implements OnApplicationShutdown {
  constructor(
    private readonly options: ResolvedOptions,
    private readonly calls: CallsInFlight,
    private readonly agents: Agents,
    private readonly tokens: TokenCache | undefined,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await this.calls.close(this.options.http.shutdownTimeout);
    this.tokens?.close();
    await this.agents.close();
  }
}
