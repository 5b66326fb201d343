import { channel, type Channel } from 'node:diagnostics_channel';
import { ServiceError, ServiceTokenError } from '../errors/index.js';

/** The channel of node:diagnostics_channel that {@link TokenEvent}s are published on. */
export const TOKEN_CHANNEL = 'nestjs-service:token';

interface TokenEventBase {
  /** The module's name; absent for the unnamed one. */
  module?: string;
  /** `api` or `customer.<customer_id>`. */
  scope: string;
}

/** What observers see of the tokens; never a token itself. */
export type TokenEvent =
  /** A request to the token endpoint (or to the shared store before it) begins. */
  | (TokenEventBase & {
      type: 'requested';
      /** From 1. */
      attempt: number;
      /** Callers that wait for it; 0 for a renewal in the background. */
      waiting: number;
    })
  | (TokenEventBase & { type: 'refreshed'; expiresAt: Date; durationMs: number; attempt: number })
  | (TokenEventBase & {
      type: 'failed';
      /** `code` of the error. */
      code: string;
      /** HTTP status of the endpoint, where it answered. */
      status?: number;
      durationMs: number;
      attempt: number;
    })
  | (TokenEventBase & { type: 'served-from-cache' });

/** Publishes what happens to the tokens of one module. Costs nothing while nobody listens. */
export class TokenEvents {
  readonly #channel: Channel = channel(TOKEN_CHANNEL);
  readonly #module: string | undefined;

  /** @param module the module's name, where it has one */
  constructor(module?: string) {
    this.#module = module;
  }

  requested(scope: string, details: { attempt: number; waiting: number }): void {
    if (this.#channel.hasSubscribers) this.#publish({ type: 'requested', scope, ...details });
  }

  refreshed(scope: string, details: { expiresAt: Date; durationMs: number; attempt: number }): void {
    if (this.#channel.hasSubscribers) this.#publish({ type: 'refreshed', scope, ...details });
  }

  failed(scope: string, error: unknown, details: { durationMs: number; attempt: number }): void {
    if (!this.#channel.hasSubscribers) return;
    const code = error instanceof ServiceError ? error.code : 'unknown';
    const status = error instanceof ServiceTokenError ? error.status : undefined;
    this.#publish({ type: 'failed', scope, code, status, ...details });
  }

  servedFromCache(scope: string): void {
    if (this.#channel.hasSubscribers) this.#publish({ type: 'served-from-cache', scope });
  }

  #publish(event: TokenEvent): void {
    this.#channel.publish(this.#module === undefined ? event : { module: this.#module, ...event });
  }
}
