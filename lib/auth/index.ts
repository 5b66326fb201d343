export {
  type AccessToken,
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
  type TokenStatus,
} from './access-token.js';
export { API_SCOPE, CUSTOMER_ID_RULE, isCustomerId, scopeOfCustomer } from './scope.js';
export { type IdentityView, type RenewedHeaders, ServiceAuthService } from './service-auth.service.js';
export { type TokenOptions } from './token-options.js';
export { TokenCache, type TokenCacheOptions } from './cache/token-cache.js';
export { TokenObserver } from './cache/token-observer.js';
export { ClientSecret } from './endpoint/client-secret.js';
export { TokenEndpoint } from './endpoint/token-endpoint.js';
export { SharedStore } from './store/shared-store.js';
