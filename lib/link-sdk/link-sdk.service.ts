import { Injectable } from '@nestjs/common';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type AppToken } from '../config/app-token.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { validateInput } from '../http/validate-input.js';
import { checkTimeout } from '../exchange/call-limits.js';
import { type ServiceIo, warnOnce } from '../exchange/io.js';
import { type CallOptions } from '../http/call-options.js';
import { ConnectDto, type ConnectParameters } from './connect.dto.js';

/** Sessions of the LinkSDK in the browser (docs/service.md#linksdk-parameters). */
@Injectable()
export class LinkSdkService {
  /** Absent without OAuth credentials. */
  readonly #getToken: ServiceAuthService['getCustomerToken'] | undefined;
  /** Set if it is one of the parameters. */
  readonly #appToken: AppToken | undefined;
  /** Called before the first app token goes out. */
  #warn: (() => void) | undefined;

  /** @internal */
  constructor(
    options: ResolvedOptions,
    auth: Pick<ServiceAuthService, 'getCustomerToken'>,
    io: Pick<ServiceIo, 'log' | 'warned'>,
  ) {
    const hasOAuth = options.oauth !== undefined;
    // As it is: what a test puts in the place of `auth.getCustomerToken` answers for that alone.
    this.#getToken = hasOAuth ? auth.getCustomerToken.bind(auth) : undefined;
    this.#appToken = hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken;
    const warning = this.#appToken && exposureWarning(options);
    this.#warn = warning ? () => warnOnce(io, warning) : undefined;
  }

  /**
   * The parameters of `Service.connect()` for one customer. With OAuth credentials: a customer-scoped access_token that
   * is still valid for `linkSdk.minTokenLife`. Without them: the app_token.
   *
   * Throws ServiceRequestError if the request is not valid, and ServiceTokenError or ServiceConnectionError if no
   * token can be obtained.
   */
  async connectParameters(
    request: ConnectDto,
    { signal, timeout }: CallOptions = {},
  ): Promise<ConnectParameters> {
    const { customer_id, permissions, bank_identifier } = validateInput(ConnectDto, request);
    checkTimeout(timeout);
    this.#warn?.();
    this.#warn = undefined;
    const token = await this.#getToken?.(customer_id, { signal, timeout });
    return {
      ...(this.#appToken && { app_token: this.#appToken.reveal() }),
      ...(token && { access_token: token.accessToken }),
      customer_id,
      permissions: [...new Set(permissions)],
      ...(bank_identifier && { bank_identifier }),
    };
  }
}

/** In production an app token belongs to the backend, unless the host says that it is meant for browsers. */
function exposureWarning({
  environment,
  oauth,
  linkSdk,
  describeOption,
}: ResolvedOptions): string | undefined {
  if (environment !== 'production' || oauth || linkSdk.includeAppToken) return undefined;
  return (
    'connectParameters() sends the app token to browsers, because there are no OAuth credentials: set ' +
    `${describeOption('oauth.clientId')} and ${describeOption('oauth.clientSecret')}, or ${describeOption('linkSdk.includeAppToken')} to true ` +
    'if that is intended.'
  );
}
