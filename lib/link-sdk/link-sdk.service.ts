import { Injectable } from '@nestjs/common';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type ServiceEnvironment } from '../config/options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Secret } from '../config/secret.js';
import { validateInput } from '../http/request/validate-input.js';
import { checkTimeout } from '../exchange/call-limits.js';
import { type CallOptions } from '../http/request/call-options.js';
import { ConnectDto, SessionDto, type ConnectParameters, type SessionParameters } from './connect.dto.js';

const ADD_IT = 'add it to what the method returns: { ...parameters, name: value }';

/** Parameters for LinkSDK sessions in the browser (docs/service.md#linksdk-parameters). */
@Injectable()
export class LinkSdkService {
  /** The environment of the sessions. In the sandbox, the SDK's parameters include `sandbox: true`. */
  readonly environment: ServiceEnvironment;
  /** Absent without OAuth credentials. */
  readonly #getToken: ServiceAuthService['getCustomerToken'] | undefined;
  /** Absent if the parameters do not include it. */
  readonly #appToken: Secret | undefined;

  /** @internal */
  constructor(options: ResolvedOptions, auth: Pick<ServiceAuthService, 'getCustomerToken'>) {
    this.environment = options.environment;
    const hasOAuth = options.oauth !== undefined;
    // Bound now, so that a test that later replaces `auth.getCustomerToken` does not change sessions.
    this.#getToken = hasOAuth ? auth.getCustomerToken.bind(auth) : undefined;
    this.#appToken = hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken;
  }

  /**
   * Returns the parameters that every method of the SDK takes for one customer. Add the method's own parameters to them.
   * - `customer_id`
   * - `app_token`, if one is set
   * - `access_token`, with OAuth credentials: a customer-scoped token that is still valid for `linkSdk.minTokenLife`
   * - `sandbox: true`, in the sandbox
   * @throws ServiceRequestError if the request is not valid; ServiceTokenError or ServiceConnectionError if there is no
   * token; `signal.reason` if the signal aborts
   * @example { ...(await sdk.sessionParameters({ customer_id })), payment_intent_id }
   */
  async sessionParameters(
    request: Pick<ConnectDto, 'customer_id'>,
    options?: CallOptions,
  ): Promise<SessionParameters> {
    return this.#parametersFor(validateInput(SessionDto, request, ADD_IT).customer_id, options);
  }

  /**
   * Returns the parameters of `Service.connect()`: the {@link sessionParameters}, the permissions without duplicates,
   * and the bank.
   * @throws as {@link sessionParameters}
   */
  async connectParameters(request: ConnectDto, options?: CallOptions): Promise<ConnectParameters> {
    const { customer_id, permissions, bank_identifier } = validateInput(ConnectDto, request, ADD_IT);
    return {
      ...(await this.#parametersFor(customer_id, options)),
      permissions: [...new Set(permissions)],
      ...(bank_identifier && { bank_identifier }),
    };
  }

  async #parametersFor(
    customer_id: string,
    { signal, timeout }: CallOptions = {},
  ): Promise<SessionParameters> {
    // Without OAuth no token is requested, so nothing else would check the time-out.
    checkTimeout(timeout);
    const token = await this.#getToken?.(customer_id, { signal, timeout });
    return {
      ...(this.#appToken && { app_token: this.#appToken.reveal() }),
      ...(token && { access_token: token.accessToken }),
      customer_id,
      ...(this.environment === 'sandbox' && { sandbox: true as const }),
    };
  }
}
