import { describeError, nameOptions, ServiceError, type DescribeOption } from '../../errors/index.js';
import { type Telemetry } from '../../telemetry/telemetry.js';

export interface TokenObserverParts {
  telemetry?: Telemetry;
  /** Writes a log line about what no caller gets as an error: a renewal that failed in the background. */
  warn?: (message: string) => void;
  describeOption?: DescribeOption;
}

/** Counts token requests and cache hits, and logs the failures that no caller gets. */
export class TokenObserver {
  readonly #parts: TokenObserverParts;

  constructor(parts: TokenObserverParts = {}) {
    this.#parts = parts;
  }

  succeeded(): void {
    this.#count();
  }

  /** @param waiting callers that wait for the request; 0 for a renewal in the background */
  failed(error: unknown, waiting: number): void {
    const code = error instanceof ServiceError ? error.code : 'unknown';
    this.#count(code);
    if (waiting === 0 && error instanceof ServiceError) {
      const { warn, describeOption = (option) => option } = this.#parts;
      const described = describeError(nameOptions(error, describeOption));
      warn?.(`A token could not be renewed in the background: ${described}`);
    }
  }

  servedFromCache(): void {
    const { telemetry } = this.#parts;
    telemetry?.tokenCacheHits.add(1, telemetry.attributes);
  }

  #count(errorType?: string): void {
    const { telemetry } = this.#parts;
    telemetry?.tokenRequests.add(
      1,
      errorType ? { ...telemetry.attributes, 'error.type': errorType } : telemetry.attributes,
    );
  }
}
