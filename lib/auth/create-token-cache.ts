import { type Agent } from 'node:http';
import { type Clock, systemClock } from '../config/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Exchange } from '../exchange/exchange.types.js';
import { ClientSecret } from './client-secret.js';
import { SharedStore } from './shared-store.js';
import { TokenCache } from './token-cache.js';
import { TokenEndpoint } from './token-endpoint.js';
import { TokenEvents, type TokenEventsParts } from './token-events.js';

export interface TokenCacheParts extends Pick<TokenEventsParts, 'telemetry' | 'warn'> {
  exchange: Exchange;
  /** For the token endpoint: verified against Node's public roots and `tls.chain`; with the identity for oauth.mtls. */
  agent: () => Agent;
  /** With oauth.mtls, the fingerprint of the certificate in use: stored tokens of another one are not looked at. */
  binding?: () => string | undefined;
  clock?: Clock;
  /** In [0, 1). */
  random?: () => number;
}

/** Puts endpoint, shared store and cache together; undefined where no OAuth credentials are configured. */
export function createTokenCache(options: ResolvedOptions, parts: TokenCacheParts): TokenCache | undefined {
  const { oauth, tokenStore, tokenCache, linkSdk, name } = options;
  const { tokenUrl } = options.addresses;
  if (!oauth || tokenUrl === undefined) return undefined;
  const { exchange, agent, binding, clock = systemClock, random, telemetry, warn } = parts;
  const { clientId } = oauth;
  const clientSecret = new ClientSecret(oauth, clock);
  const endpoint = new TokenEndpoint({ tokenUrl, clientId, clientSecret, exchange, agent, clock });
  return new TokenCache({
    source: tokenStore
      ? new SharedStore({ source: endpoint, store: tokenStore, tokenUrl, clientId, binding, clock })
      : endpoint,
    refresh: oauth.refresh,
    maxEntries: tokenCache.maxEntries,
    customerReserveMs: linkSdk.minTokenLife * 1000,
    clock,
    random,
    events: new TokenEvents({ module: name, telemetry, warn }),
  });
}
