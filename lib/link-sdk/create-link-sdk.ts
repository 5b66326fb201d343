import { type ServiceAuthService } from '../auth/index.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { LinkSdkService } from './link-sdk.service.js';

/** Hands the service no more than its parameters may hold. */
export function createLinkSdk(options: ResolvedOptions, auth: ServiceAuthService): LinkSdkService {
  const hasOAuth = options.oauth !== undefined;
  return new LinkSdkService({
    customerToken: hasOAuth ? (customerId, wait) => auth.getCustomerToken(customerId, wait) : undefined,
    appToken: hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken,
  });
}
