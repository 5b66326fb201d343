import { channel, type Channel } from 'node:diagnostics_channel';
import { ServiceError, ServiceTokenError } from '../errors/index.js';
import { type Telemetry } from '../telemetry/telemetry.js';

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

export interface TokenEventsParts {
  /** The module's name, where it has one. */
  module?: string;
  telemetry?: Telemetry;
  /** Told of renewals that failed in the background, which no caller hears of. */
  warn?: (message: string) => void;
}

/** Makes visible what happens to the tokens of one module: as events, as metrics, and failures nobody waits for as log lines. */
export class TokenEvents {
  readonly #channel: Channel = channel(TOKEN_CHANNEL);
  readonly #parts: TokenEventsParts;

  constructor(parts: TokenEventsParts = {}) {
    this.#parts = parts;
  }

  requested(scope: string, details: { attempt: number; waiting: number }): void {
    if (this.#channel.hasSubscribers) this.#publish({ type: 'requested', scope, ...details });
  }

  refreshed(scope: string, details: { expiresAt: Date; durationMs: number; attempt: number }): void {
    this.#count();
    if (this.#channel.hasSubscribers) this.#publish({ type: 'refreshed', scope, ...details });
  }

  failed(
    scope: string,
    error: unknown,
    { waiting, ...details }: { durationMs: number; attempt: number; waiting: number },
  ): void {
    const code = error instanceof ServiceError ? error.code : 'unknown';
    const status = error instanceof ServiceTokenError ? error.status : undefined;
    this.#count(code);
    if (waiting === 0 && error instanceof ServiceError) {
      this.#parts.warn?.(`A token could not be renewed in the background (${code}): ${error.message}`);
    }
    if (this.#channel.hasSubscribers) this.#publish({ type: 'failed', scope, code, status, ...details });
  }

  servedFromCache(scope: string): void {
    const { telemetry } = this.#parts;
    telemetry?.tokenCacheHits.add(1, telemetry.attributes);
    if (this.#channel.hasSubscribers) this.#publish({ type: 'served-from-cache', scope });
  }

  #count(errorType?: string): void {
    const { telemetry } = this.#parts;
    telemetry?.tokenRequests.add(
      1,
      errorType ? { ...telemetry.attributes, 'error.type': errorType } : telemetry.attributes,
    );
  }

  #publish(event: TokenEvent): void {
    const { module } = this.#parts;
    this.#channel.publish(module === undefined ? event : { module, ...event });
  }
}
