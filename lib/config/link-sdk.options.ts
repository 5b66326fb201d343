import { Flag, WholeNumber } from './rules.js';

/** LinkSDK sessions in the browser (docs/service.md#linksdk-parameters). */
export class ServiceLinkSdkOptions {
  /**
   * Seconds that a cached customer token must still be valid for to be reused in a session, at most half of its lifetime.
   * Default 600. SERVICE_LINK_SDK_MIN_TOKEN_LIFE
   */
  @WholeNumber('LINK_SDK_MIN_TOKEN_LIFE', 0, 86_400, 'seconds')
  minTokenLife?: number | undefined;

  /**
   * Whether session parameters include `app_token`. With false, it is left out if there are OAuth credentials. With an
   * explicit true, `appToken` is required. Default: true if `appToken` is set. SERVICE_LINK_SDK_INCLUDE_APP_TOKEN
   */
  @Flag('LINK_SDK_INCLUDE_APP_TOKEN')
  includeAppToken?: boolean | undefined;

  /**
   * Set this to true if OAuth is enabled for the application: sessions without a customer token then fail. With true, the
   * application does not start without OAuth credentials. Default false. SERVICE_LINK_SDK_REQUIRE_OAUTH
   */
  @Flag('LINK_SDK_REQUIRE_OAUTH')
  requireOAuth?: boolean | undefined;
}
