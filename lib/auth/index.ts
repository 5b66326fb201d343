export {
  type AccessToken,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from './access-token.js';
export { createTokenCache, type TokenCacheParts } from './create-token-cache.js';
export { customerIdFault, scopeOfCustomer } from './scope.js';
export { type IdentityView, ServiceAuthService, type TokenOptions } from './service-auth.service.js';
export { TokenCache, type TokenCacheOptions } from './cache/token-cache.js';
