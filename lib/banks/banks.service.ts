import { Injectable } from '@nestjs/common';
import { type HttpCallOptions, type ReadOption } from '../http/call-options.js';
import { type ServiceHttpService } from '../http/service-http.service.js';

/** The JSON body of GET /banks/v1, unchanged. Its fields are not documented. */
export type BanksBody = unknown;

/** The banks that the service supports (docs/service.md#calls). */
@Injectable()
export class BanksService {
  readonly #http: ServiceHttpService;
  readonly #path: string;

  /** @internal */
  constructor(http: ServiceHttpService) {
    this.#http = http;
    this.#path = http.collectionPath('banks');
  }

  /**
   * GET /banks/v1. Returns the JSON body unchanged, or the result of `parse`. Throws what {@link ServiceHttpService}
   * throws.
   */
  list<T = BanksBody>(options?: Omit<HttpCallOptions, 'repeatable'> & ReadOption<T>): Promise<T> {
    return this.#http.get(this.#path, options);
  }
}
