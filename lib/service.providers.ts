import { HttpService } from '@nestjs/axios';
import { type Provider } from '@nestjs/common';
import { ConfigService, getConfigToken } from '@nestjs/config';
import { createTokenCache, ServiceAuthService, type TokenCache } from './auth/index.js';
import { BanksService } from './banks/banks.service.js';
import { type ResolvedOptions } from './config/resolved-options.js';
import { CustomersService } from './customers/customers.service.js';
import { exchange } from './exchange/exchange.js';
import { CallsInFlight } from './http/calls-in-flight.js';
import { createServiceHttp } from './http/create-service-http.js';
import { ResourcePaths } from './http/resource-paths.js';
import { ServiceHttpService } from './http/service-http.service.js';
import { createLinkSdk } from './link-sdk/create-link-sdk.js';
import { LinkSdkService } from './link-sdk/link-sdk.service.js';
import { MODULE_NAME, MODULE_OPTIONS_TOKEN } from './module-definition.js';
import { bootstrap, type Bootstrapped } from './bootstrap.js';
import { ServiceLifecycle } from './service.lifecycle.js';
import { Agents, ClientIdentity } from './tls/index.js';

const BOOTSTRAPPED = Symbol('nestjs-service:bootstrapped');
const RESOLVED_OPTIONS = Symbol('nestjs-service:resolved-options');
const TOKEN_CACHE = Symbol('nestjs-service:token-cache');

/** The parts of one module, each made of those above it; all private but the services. */
export const serviceProviders: Provider[] = [
  {
    provide: BOOTSTRAPPED,
    useFactory: bootstrap,
    inject: [
      MODULE_OPTIONS_TOKEN,
      MODULE_NAME,
      ConfigService,
      // Where the host's ConfigModule is global and loads the namespace, waiting for it settles the order.
      { token: getConfigToken('service'), optional: true },
    ],
  },
  { provide: RESOLVED_OPTIONS, useFactory: ({ options }: Bootstrapped) => options, inject: [BOOTSTRAPPED] },
  { provide: ClientIdentity, useFactory: ({ identity }: Bootstrapped) => identity, inject: [BOOTSTRAPPED] },
  {
    provide: Agents,
    useFactory: ({ http }: ResolvedOptions, identity: ClientIdentity) =>
      new Agents(identity, http.maxSockets),
    inject: [RESOLVED_OPTIONS, ClientIdentity],
  },
  {
    provide: TOKEN_CACHE,
    useFactory: (options: ResolvedOptions, identity: ClientIdentity, agents: Agents) =>
      createTokenCache(options, {
        exchange,
        agent: () => agents.token(options.addresses.tokenUrl ?? ''),
        binding: () => (options.oauth?.mtls ? identity.certificate?.fingerprint256 : undefined),
      }),
    inject: [RESOLVED_OPTIONS, ClientIdentity, Agents],
  },
  {
    provide: ServiceAuthService,
    useFactory: (options: ResolvedOptions, identity: ClientIdentity, tokens: TokenCache | undefined) =>
      new ServiceAuthService(options, identity, tokens),
    inject: [RESOLVED_OPTIONS, ClientIdentity, TOKEN_CACHE],
  },
  CallsInFlight,
  {
    provide: HttpService,
    useFactory: createServiceHttp,
    inject: [RESOLVED_OPTIONS, ServiceAuthService, ClientIdentity, Agents, CallsInFlight],
  },
  ServiceHttpService,
  {
    provide: ResourcePaths,
    useFactory: ({ http }: ResolvedOptions) => new ResourcePaths(http.trailingSlash),
    inject: [RESOLVED_OPTIONS],
  },
  CustomersService,
  BanksService,
  { provide: LinkSdkService, useFactory: createLinkSdk, inject: [RESOLVED_OPTIONS, ServiceAuthService] },
  {
    provide: ServiceLifecycle,
    useFactory: (options: ResolvedOptions, calls: CallsInFlight, agents: Agents, tokens?: TokenCache) =>
      new ServiceLifecycle(options, calls, agents, tokens),
    inject: [RESOLVED_OPTIONS, CallsInFlight, Agents, TOKEN_CACHE],
  },
];
