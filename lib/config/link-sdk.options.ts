import { Option } from './option.js';
import { Flag, WholeNumber } from './rules.js';

/** Sessions of the browser's SDK (specification 2.4). */
export class ServiceLinkSdkOptions {
  /**
   * Seconds that a cached customer token must still be valid to be used for a session. Never more than half of the
   * token's lifetime is required. Default 600. SERVICE_LINK_SDK_MIN_TOKEN_LIFE
   */
  @Option('LINK_SDK_MIN_TOKEN_LIFE', 'integer')
  @WholeNumber(0, 86_400, 'seconds')
  minTokenLife?: number | undefined = 600;

  /** Put app_token into the connect parameters with OAuth too. Default false. SERVICE_LINK_SDK_INCLUDE_APP_TOKEN */
  @Option('LINK_SDK_INCLUDE_APP_TOKEN', 'boolean')
  @Flag()
  includeAppToken?: boolean | undefined = false;

  /**
   * Set this where the application has OAuth enabled as an authentication method. A session without a customer token
   * would fail then (specification 5.1.3), so the module does not start without OAuth credentials. Default false.
   * SERVICE_LINK_SDK_REQUIRE_OAUTH
   */
  @Option('LINK_SDK_REQUIRE_OAUTH', 'boolean')
  @Flag()
  requireOAuth?: boolean | undefined = false;
}
