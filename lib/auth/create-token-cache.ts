import { type Agent } from 'node:http';
import { type Clock, systemClock } from '../config/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type ReloadableIdentity } from '../exchange/certificate-refusal.js';
import { type Exchange } from '../exchange/exchange.types.js';
import { TokenCache } from './cache/token-cache.js';
import { TokenObserver, type TokenObserverParts } from './cache/token-observer.js';
import { ClientSecret } from './endpoint/client-secret.js';
import { TokenEndpoint } from './endpoint/token-endpoint.js';
import { SharedStore } from './store/shared-store.js';

export interface TokenCacheParts extends TokenObserverParts {
  exchange: Exchange;
  /** For the token endpoint: verified against Node's public roots and `tls.chain`; with the identity for oauth.mtls. */
  agent: () => Agent;
  /**
   * With oauth.mtls: its certificate is offered to the endpoint, read again where it is refused, and tokens in a store
   * that were got with another one are not used.
   */
  identity?: ReloadableIdentity;
  /** Writes a log line about what is well again. */
  log?: (message: string) => void;
  clock?: Clock;
  /** In [0, 1). */
  random?: () => number;
}

/** The cache with its endpoint and shared store; undefined where no OAuth credentials are configured. */
export function createTokenCache(options: ResolvedOptions, parts: TokenCacheParts): TokenCache | undefined {
  const { oauth, tokenStore, tokenCache, linkSdk, http, describeOption } = options;
  const { tokenUrl } = options.addresses;
  if (!oauth || tokenUrl === undefined) return undefined;
  const { exchange, agent, identity, clock = systemClock, random, telemetry, warn, log } = parts;
  const { clientId } = oauth;
  const clientSecret = new ClientSecret(oauth, clock);
  const shared = { tokenUrl, clientId, clock };
  const endpoint = new TokenEndpoint({
    ...shared,
    clientSecret,
    exchange,
    agent,
    identity,
    connectTimeoutMs: http.connectTimeout,
    describeOption,
  });
  const certificateThumbprint = () => identity?.certificate?.fingerprint256;
  return new TokenCache({
    source: tokenStore
      ? new SharedStore({
          ...shared,
          source: endpoint,
          store: tokenStore,
          clientSecret,
          certificateThumbprint,
          telemetry,
          warn,
          log,
        })
      : endpoint,
    refresh: oauth.refresh,
    maxEntries: tokenCache.maxEntries,
    customerReserveMs: linkSdk.minTokenLife * 1000,
    customerRequests: http.maxSockets,
    clock,
    random,
    observer: new TokenObserver({ telemetry, warn }),
  });
}
