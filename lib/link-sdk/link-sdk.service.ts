import { Injectable } from '@nestjs/common';
import { customerScope } from '../auth/scope.js';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Secret } from '../config/secret.js';
import { validateInput } from '../http/validate-input.js';
import { checkTimeout } from '../exchange/call-limits.js';
import { type ServiceIo, warnOnce } from '../exchange/io.js';
import { type CallOptions } from '../http/service-http.service.js';
import { ConnectDto, type ConnectParameters } from './connect.dto.js';

/** Sessions of the LinkSDK in the browser (docs/service.md#linksdk-parameters). */
@Injectable()
export class LinkSdkService {
  /** Absent without OAuth credentials. */
  readonly #tokens: Pick<ServiceAuthService, 'tokenFor'> | undefined;
  /** Where it is one of the parameters. */
  readonly #appToken: Secret | undefined;
  /** Called before the first app token goes out. */
  #warn: (() => void) | undefined;

  /** @internal */
  constructor(
    options: ResolvedOptions,
    auth: Pick<ServiceAuthService, 'tokenFor'>,
    io: Pick<ServiceIo, 'log' | 'warned'>,
  ) {
    const hasOAuth = options.oauth !== undefined;
    this.#tokens = hasOAuth ? auth : undefined;
    this.#appToken = hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken;
    const warning = this.#appToken && exposureWarning(options);
    this.#warn = warning ? () => warnOnce(io, warning) : undefined;
  }

  /**
   * The parameters of `Service.connect()` for one customer. With OAuth credentials: a customer-scoped access_token that
   * is still valid for `linkSdk.minTokenLife`. Without them: the app_token.
   *
   * Throws ServiceRequestError where the request is not valid, and ServiceTokenError or ServiceConnectionError where no
   * token can be obtained.
   */
  async connectParameters(
    request: ConnectDto,
    { signal, timeout }: CallOptions = {},
  ): Promise<ConnectParameters> {
    const { customer_id, permissions, bank_identifier } = validateInput(ConnectDto, request);
    const timeoutMs = checkTimeout(timeout);
    this.#warn?.();
    this.#warn = undefined;
    const token = await this.#tokens?.tokenFor(customerScope(customer_id), { signal, timeoutMs });
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
