import { Authenticator } from '../auth/authenticator.js';
import { TokenCache } from '../auth/cache/token-cache.js';
import { ClientSecret } from '../auth/endpoint/client-secret.js';
import { TokenEndpoint } from '../auth/endpoint/token-endpoint.js';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { SharedStore } from '../auth/store/shared-store.js';
import { systemClock } from '../time/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { exchange } from '../exchange/exchange.js';
import { type Log, type ServiceIo } from '../exchange/io.js';
import { CallsInFlight } from '../http/calls-in-flight.js';
import { type ClientContext } from '../http/client-context.js';
import { createServiceAxios } from '../http/service-axios.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { type Identity } from '../tls/client-identity.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';
import { ServiceLifecycle } from './lifecycle.js';
import { createResources, type Resources } from './resources.js';

/** One client of the service, as `createServiceClient()` returns it. */
export interface ServiceClient extends Resources {
  readonly auth: ServiceAuthService;
  readonly http: ServiceHttpService;
  readonly sdk: LinkSdkService;
  readonly webhooks: WebhooksService;
  /** Ends it: its calls get `http.shutdownTimeout`, later ones are refused. Resolves when nothing of it is left. */
  readonly close: () => Promise<void>;
}

/** The same with its start and the beginning of its end. It knows nothing of Nest's modules. */
export interface Service extends ServiceClient, Pick<ServiceLifecycle, 'start' | 'beginShutdown'> {}

/** The real outside world. */
export function systemIo(log: Log): ServiceIo {
  return { exchange, clock: systemClock, random: Math.random, log };
}

/**
 * Puts a client together, from checked options, the client identity and the outside world. Nothing runs before `start()`
 * or the first call, and nothing after `close()`.
 */
export function createService(options: ResolvedOptions, identity: Identity, io: ServiceIo): Service {
  const calls = new CallsInFlight();
  const client: ClientContext = { options, identity, io, calls };

  const tokens = createTokenCache(client);
  const authenticator = new Authenticator(options, tokens);
  const auth = new ServiceAuthService(authenticator, identity, tokens, calls);
  const axios = createServiceAxios(client, authenticator);
  const http = new ServiceHttpService(axios, options.http.trailingSlash);
  const resources = createResources(http);
  const sdk = new LinkSdkService(options, auth);
  const webhooks = new WebhooksService(options, io.clock);

  const lifecycle = new ServiceLifecycle({ ...client, tokens, auth, banks: resources.banks });
  const start = () => lifecycle.start();
  const beginShutdown = () => lifecycle.beginShutdown();
  const close = () => lifecycle.close();
  return { auth, http, ...resources, sdk, webhooks, start, beginShutdown, close };
}

/** Endpoint, shared store and cache; undefined if no OAuth credentials are configured. */
function createTokenCache({ options, identity, io }: ClientContext): TokenCache | undefined {
  const { oauth, tokenStore, tokenCache, linkSdk, http, describeOption } = options;
  const { tokenUrl, tokenOption = 'urls.authUrl', baseOption } = options.addresses;
  if (!oauth || tokenUrl === undefined) return undefined;
  const { exchange, clock } = io;
  const { clientId } = oauth;
  const place = {
    url: new URL(tokenUrl),
    option: tokenOption,
    apiOption: baseOption,
    describeOption,
    http,
    get hasChain() {
      return identity.hasChain;
    },
  };
  const bound = oauth.mtls ? identity : undefined;
  const clientSecret = new ClientSecret(oauth.clientSecret, clock, describeOption);
  const endpoint = new TokenEndpoint({
    place,
    clientId,
    clientSecret,
    exchange,
    clock,
    agent: identity.tokenAgentFor(place.url),
    identity: bound,
    userAgent: http.userAgent,
    connectTimeoutMs: http.connectTimeout,
    onCall: http.onCall,
  });
  const fingerprint256 = () => bound?.certificate?.fingerprint256;
  const owner = () => ({ tokenUrl: place.url.href, clientId, fingerprint256: fingerprint256() });
  const tokenIo = { ...io, describeOption };
  const source = tokenStore ? new SharedStore(endpoint, tokenStore, owner, clientSecret, tokenIo) : endpoint;
  const settings = {
    refresh: oauth.refresh,
    maxEntries: tokenCache.maxEntries,
    customerReserveMs: linkSdk.minTokenLife * 1000,
    customerRequests: http.maxSockets,
    timeoutMs: http.timeout,
  };
  const cache = new TokenCache(source, settings, tokenIo);
  // RFC 8705, 3: a token that was requested with one certificate is refused together with another.
  bound?.onCertificateChange(() => cache.outdateAll());
  return cache;
}
