import { Injectable } from '@nestjs/common';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type ServiceEnvironment } from '../config/options.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Secret } from '../config/secret.js';
import { validateInput } from '../http/validate-input.js';
import { checkTimeout } from '../exchange/call-limits.js';
import { type CallOptions } from '../http/call-options.js';
import { ConnectDto, SessionDto, type ConnectParameters, type SessionParameters } from './connect.dto.js';

const ADD_IT = 'add it to what the method returns: { ...parameters, name: value }';

/** Sessions of the LinkSDK in the browser (docs/service.md#linksdk-parameters). */
@Injectable()
export class LinkSdkService {
  /** The environment that the sessions are for. It decides whether the SDK's parameters have `sandbox: true`. */
  readonly environment: ServiceEnvironment;
  /** Absent without OAuth credentials. */
  readonly #getToken: ServiceAuthService['getCustomerToken'] | undefined;
  /** Set if it is one of the parameters. */
  readonly #appToken: Secret | undefined;

  /** @internal */
  constructor(options: ResolvedOptions, auth: Pick<ServiceAuthService, 'getCustomerToken'>) {
    this.environment = options.environment;
    const hasOAuth = options.oauth !== undefined;
    // As it is: what a test puts in the place of `auth.getCustomerToken` answers for that alone.
    this.#getToken = hasOAuth ? auth.getCustomerToken.bind(auth) : undefined;
    this.#appToken = hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken;
  }

  /**
   * What every method of the SDK takes for one customer: the app_token, if one is set, with OAuth credentials a
   * customer-scoped access_token that is still valid for `linkSdk.minTokenLife`, and `sandbox: true` in the sandbox. A
   * method's own parameters are added to it.
   * @throws ServiceRequestError if the request is not valid; ServiceTokenError or ServiceConnectionError if no token can be
   * obtained; `signal.reason`
   * @example { ...(await sdk.sessionParameters({ customer_id })), payment_intent_id }
   */
  async sessionParameters(
    request: Pick<ConnectDto, 'customer_id'>,
    options?: CallOptions,
  ): Promise<SessionParameters> {
    return this.#parametersFor(validateInput(SessionDto, request, ADD_IT).customer_id, options);
  }

  /**
   * The parameters of `Service.connect()`: {@link sessionParameters} with the permissions, each once, and the bank.
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
    // Without OAuth no token is asked for, so nobody else checks it.
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
