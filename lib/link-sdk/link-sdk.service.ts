import { Injectable } from '@nestjs/common';
import { type AccessToken, scopeOfCustomer, type ServiceAuthService } from '../auth/index.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Secret } from '../config/secret.js';
import { validateInput } from '../http/validate-input.js';
import { checkSignal, checkTimeout } from '../exchange/call-limits.js';
import { type CallOptions } from '../http/service-http.service.js';
import { ConnectDto, type ConnectParameters } from './connect.dto.js';

/** What connect parameters are made of; the client secret and api tokens are not among it. */
export interface LinkSdkParts {
  /** Tokens of one customer, whose id is checked, where there are OAuth credentials. */
  customerToken?: (
    customerId: string,
    wait: { signal?: AbortSignal; timeoutMs?: number },
  ) => Promise<AccessToken>;
  /** The app token, where it is to be among the parameters. */
  appToken?: Secret;
}

/** Sessions of the LinkSDK in the browser (specification 2.4, 5.4.8). */
@Injectable()
export class LinkSdkService {
  readonly #parts: LinkSdkParts;

  constructor(parts: LinkSdkParts) {
    this.#parts = parts;
  }

  /**
   * The parameters of `Service.connect()` for one customer: with OAuth credentials a customer-scoped access_token that
   * still has `linkSdk.minTokenLife` to live, without them the app_token.
   *
   * `timeout` is in milliseconds for the whole call (default `http.timeout`); `signal` aborts this call alone, which then
   * rejects with `signal.reason`.
   *
   * Throws ServiceRequestError where the request is not one, and ServiceTokenError or ServiceConnectionError where no
   * token can be had.
   */
  async connectParameters(
    request: ConnectDto,
    { signal, timeout }: CallOptions = {},
  ): Promise<ConnectParameters> {
    const { customer_id, permissions, bank_identifier } = validateInput(ConnectDto, request);
    const { customerToken, appToken } = this.#parts;
    checkSignal(signal);
    const timeoutMs = checkTimeout(timeout);
    const token = await customerToken?.(customer_id, { signal, timeoutMs });
    return {
      ...(appToken && { app_token: appToken.reveal() }),
      ...(token && { access_token: token.accessToken }),
      customer_id,
      permissions: [...new Set(permissions)],
      ...(bank_identifier !== undefined && bank_identifier !== null && { bank_identifier }),
    };
  }
}

/** Hands the service no more than its parameters may hold. */
export function createLinkSdk(options: ResolvedOptions, auth: ServiceAuthService): LinkSdkService {
  const hasOAuth = options.oauth !== undefined;
  return new LinkSdkService({
    customerToken: hasOAuth ? (id, wait) => auth.tokenFor(scopeOfCustomer(id), wait) : undefined,
    appToken: hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken,
  });
}
