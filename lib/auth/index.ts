export {
  type AccessToken,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from './access-token.js';
export { createTokenCache, type TokenCacheParts } from './create-token-cache.js';
export { API_SCOPE, checkScope, customerIdOf, customerScope } from './scope.js';
export { type IdentityView, ServiceAuthService, type TokenOptions } from './service-auth.service.js';
export { TokenCache, type TokenCacheOptions, type TokenState } from './token-cache.js';
export { TOKEN_CHANNEL, type TokenEvent, TokenEvents } from './token-events.js';
export { type WaitOptions } from './waiting-callers.js';
