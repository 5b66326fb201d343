import { Injectable } from '@nestjs/common';
import { type AccessToken, scopeOfCustomer, type ServiceAuthService } from '../auth/index.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Secret } from '../config/secret.js';
import { validateInput } from '../http/validate-input.js';
import { checkSignal, checkTimeout } from '../exchange/call-limits.js';
import { type CallOptions } from '../http/service-http.service.js';
import { ConnectDto, type ConnectParameters } from './connect.dto.js';

/** The sources of connect parameters. The client secret and api tokens are not among them. */
export interface LinkSdkParts {
  /** Returns a token of one customer, whose id was checked. Absent without OAuth credentials. */
  customerToken?: (
    customerId: string,
    wait: { signal?: AbortSignal; timeoutMs?: number },
  ) => Promise<AccessToken>;
  /** The app token, where it is one of the parameters. */
  appToken?: Secret;
}

/** Sessions of the LinkSDK in the browser (specification 2.4, 5.4.8). */
@Injectable()
export class LinkSdkService {
  readonly #parts: LinkSdkParts;

  /** @internal */
  constructor(parts: LinkSdkParts) {
    this.#parts = parts;
  }

  /**
   * The parameters of `Service.connect()` for one customer. With OAuth credentials: a customer-scoped access_token that
   * is still valid for `linkSdk.minTokenLife`. Without them: the app_token.
   *
   * `timeout`: milliseconds for the whole call (default `http.timeout`). `signal` aborts this call, which then rejects
   * with `signal.reason`.
   *
   * Throws ServiceRequestError where the request is not valid, and ServiceTokenError or ServiceConnectionError where no
   * token can be obtained.
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

/** Gives the service only what its parameters may contain. */
export function createLinkSdk(options: ResolvedOptions, auth: ServiceAuthService): LinkSdkService {
  const hasOAuth = options.oauth !== undefined;
  return new LinkSdkService({
    customerToken: hasOAuth ? (id, wait) => auth.tokenFor(scopeOfCustomer(id), wait) : undefined,
    appToken: hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken,
  });
}
