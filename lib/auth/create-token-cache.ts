import { type Agent } from 'node:http';
import { type Clock, systemClock } from '../config/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Exchange } from '../exchange/exchange.types.js';
import { ClientSecret } from './client-secret.js';
import { SharedStore } from './shared-store.js';
import { TokenCache } from './token-cache.js';
import { type EndpointIdentity, TokenEndpoint } from './token-endpoint.js';
import { TokenEvents, type TokenEventsParts } from './token-events.js';

export interface TokenCacheParts extends Pick<TokenEventsParts, 'telemetry' | 'warn'> {
  exchange: Exchange;
  /** For the token endpoint: verified against Node's public roots and `tls.chain`; with the identity for oauth.mtls. */
  agent: () => Agent;
  /**
   * With oauth.mtls, the identity that the endpoint is shown: read again where it is refused, and stored tokens of
   * another certificate are not looked at.
   */
  identity?: EndpointIdentity;
  clock?: Clock;
  /** In [0, 1). */
  random?: () => number;
}

/** Puts endpoint, shared store and cache together; undefined where no OAuth credentials are configured. */
export function createTokenCache(options: ResolvedOptions, parts: TokenCacheParts): TokenCache | undefined {
  const { oauth, tokenStore, tokenCache, linkSdk, http, name } = options;
  const { tokenUrl } = options.addresses;
  if (!oauth || tokenUrl === undefined) return undefined;
  const { exchange, agent, identity, clock = systemClock, random, telemetry, warn } = parts;
  const { clientId } = oauth;
  const clientSecret = new ClientSecret(oauth, clock);
  const endpoint = new TokenEndpoint({ tokenUrl, clientId, clientSecret, exchange, agent, identity, clock });
  const binding = (): string | undefined => identity?.certificate?.fingerprint256;
  return new TokenCache({
    source: tokenStore
      ? new SharedStore({ source: endpoint, store: tokenStore, tokenUrl, clientId, binding, clock })
      : endpoint,
    refresh: oauth.refresh,
    maxEntries: tokenCache.maxEntries,
    customerReserveMs: linkSdk.minTokenLife * 1000,
    customerRequests: http.maxSockets,
    clock,
    random,
    events: new TokenEvents({ module: name, telemetry, warn }),
  });
}
