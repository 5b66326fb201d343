import { Flag, WholeNumber } from './rules.js';

/** Sessions of the browser's SDK (docs/service.md#linksdk-parameters). */
export class ServiceLinkSdkOptions {
  /**
   * Seconds that a cached customer token must still be valid to be used for a session; at most half of its lifetime.
   * Default 600. SERVICE_LINK_SDK_MIN_TOKEN_LIFE
   */
  @WholeNumber('LINK_SDK_MIN_TOKEN_LIFE', 0, 86_400, 'seconds')
  minTokenLife?: number | undefined;

  /**
   * `app_token` among the SDK's parameters. False leaves it out if there are OAuth credentials; true makes `appToken`
   * required. Default true, if one is set. SERVICE_LINK_SDK_INCLUDE_APP_TOKEN
   */
  @Flag('LINK_SDK_INCLUDE_APP_TOKEN')
  includeAppToken?: boolean | undefined;

  /**
   * Set it if OAuth is enabled for the application: a session without a customer token would fail,
   * so the module does not start without OAuth credentials. Default false. SERVICE_LINK_SDK_REQUIRE_OAUTH
   */
  @Flag('LINK_SDK_REQUIRE_OAUTH')
  requireOAuth?: boolean | undefined;
}
