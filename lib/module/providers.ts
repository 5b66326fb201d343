import { type HttpService } from '@nestjs/axios';
import { type FactoryProvider, type InjectionToken, type Provider } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { BanksService } from '../banks/banks.service.js';
import { createTokenCache, ServiceAuthService, type TokenCache } from '../auth/index.js';
import { loadConfiguration, type LoadedConfiguration } from './load-configuration.js';
import { moduleLabel } from '../config/variables.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { exchange } from '../exchange/exchange.js';
import { CallsInFlight } from '../http/calls-in-flight.js';
import { createServiceHttp } from '../http/create-service-http.js';
import { ResourcePaths } from '../http/resource-paths.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { createLinkSdk, LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { MODULE_OPTIONS_TOKEN, RESOURCE_SERVICES } from './definition.js';
import { HOST_CONFIG, readHostConfig } from './host-config.js';
import { ServiceLifecycle } from './lifecycle.js';
import { countNamesakes, MODULE_NAME, refuseSharedVariables, type ModuleName } from './module-names.js';
import { RequestScopeCheck } from './request-scope.js';
import { StartReport } from './start-report.js';
import { runStartupCheck } from './startup-check.js';
import { privateToken } from '../service-token.js';
import { type Log, SafeLogger } from '../telemetry/log.js';
import { Telemetry } from '../telemetry/telemetry.js';
import { Agents, type ClientIdentity } from '../tls/index.js';

export const LOG = privateToken('log');
export const NAMES = privateToken('names');
export const CONFIGURATION = privateToken('configuration');
export const OPTIONS = privateToken('options');
export const IDENTITY = privateToken('identity');
const AGENTS = privateToken('agents');
const TOKENS = privateToken('tokens');
export const TELEMETRY = privateToken('telemetry');
export const CALLS = privateToken('calls-in-flight');
export const AXIOS = privateToken('axios');
export const PATHS = privateToken('resource-paths');
export const AUTH = privateToken(ServiceAuthService.name);
export const HTTP = privateToken(ServiceHttpService.name);

/**
 * The parts of one module, each made of those above it. Their injection tokens are private, so that a host never gets a
 * part of another module by its class. Hosts inject the aliases of definition.ts.
 */
export const serviceProviders: Provider[] = [
  part(LOG, [MODULE_NAME], ({ name }: ModuleName) => new SafeLogger(moduleLabel(name))),
  part(NAMES, [MODULE_NAME, ModulesContainer], refuseSharedVariables),
  {
    provide: HOST_CONFIG,
    useFactory: (modules: ModulesContainer, config?: ConfigService) => readHostConfig(modules, config),
    inject: [ModulesContainer, { token: ConfigService, optional: true }],
  },
  part(CONFIGURATION, [MODULE_OPTIONS_TOKEN, MODULE_NAME, HOST_CONFIG, LOG, NAMES], loadConfiguration),
  part(
    privateToken(RequestScopeCheck.name),
    [MODULE_NAME, ModulesContainer],
    (name: ModuleName, modules: ModulesContainer) => new RequestScopeCheck(name, modules, CONFIGURATION),
  ),
  part(OPTIONS, [CONFIGURATION], ({ options }: LoadedConfiguration) => options),
  part(TELEMETRY, [OPTIONS], ({ name }: ResolvedOptions) => new Telemetry(name)),
  part(IDENTITY, [CONFIGURATION], ({ identity }: LoadedConfiguration) => identity),
  part(
    AGENTS,
    [OPTIONS, IDENTITY],
    ({ http }: ResolvedOptions, identity: ClientIdentity) => new Agents(identity, http.maxSockets),
  ),
  part(
    TOKENS,
    [OPTIONS, IDENTITY, AGENTS, TELEMETRY, LOG],
    (options: ResolvedOptions, identity: ClientIdentity, agents: Agents, telemetry: Telemetry, log: Log) => {
      const bound = options.oauth?.mtls ?? false;
      const tokens = createTokenCache(options, {
        exchange,
        telemetry,
        warn: (message) => log.warn(message),
        log: (message) => log.log(message),
        agent: () => agents.token(options.addresses.tokenUrl ?? ''),
        identity: bound ? identity : undefined,
      });
      // RFC 8705, 3: a token that was requested with one certificate is refused together with another.
      if (bound) identity.onCertificateChange(() => tokens?.invalidateAll());
      return tokens;
    },
  ),
  part(CALLS, [], () => new CallsInFlight()),
  part(
    AUTH,
    [OPTIONS, IDENTITY, TOKENS, CALLS],
    (
      options: ResolvedOptions,
      identity: ClientIdentity,
      tokens: TokenCache | undefined,
      calls: CallsInFlight,
    ) => new ServiceAuthService(options, identity, tokens, calls),
  ),
  part(AXIOS, [OPTIONS, AUTH, IDENTITY, AGENTS, CALLS, TELEMETRY, LOG], createServiceHttp),
  part(HTTP, [AXIOS], (axios: HttpService) => new ServiceHttpService(axios)),
  part(PATHS, [OPTIONS], ({ http }: ResolvedOptions) => new ResourcePaths(http.trailingSlash)),
  ...RESOURCE_SERVICES.map((Resource) =>
    part(
      privateToken(Resource.name),
      [HTTP, PATHS],
      (http: ServiceHttpService, paths: ResourcePaths) => new Resource(http, paths),
    ),
  ),
  part(privateToken(LinkSdkService.name), [OPTIONS, AUTH], createLinkSdk),
  part(
    privateToken(ServiceLifecycle.name),
    [OPTIONS, CALLS, TOKENS, AGENTS, IDENTITY, TELEMETRY, AUTH, privateToken(BanksService.name), LOG],
    (
      options: ResolvedOptions,
      calls: CallsInFlight,
      tokens: TokenCache | undefined,
      agents: Agents,
      identity: ClientIdentity,
      telemetry: Telemetry,
      auth: ServiceAuthService,
      banks: BanksService,
      log: Log,
    ) =>
      new ServiceLifecycle({
        options,
        calls,
        tokens,
        agents,
        identity,
        telemetry,
        checkStart: () => runStartupCheck({ options, identity, agents, auth, banks }, log),
        warn: (message) => log.warn(message),
      }),
  ),
  part(
    privateToken(StartReport.name),
    [OPTIONS, IDENTITY, MODULE_NAME, ModulesContainer, LOG],
    (
      options: ResolvedOptions,
      identity: ClientIdentity,
      name: ModuleName,
      modules: ModulesContainer,
      log: Log,
    ) => new StartReport({ options, identity, namesakes: countNamesakes(name, modules), log }),
  ),
];

function part<Parts extends unknown[]>(
  provide: string,
  inject: readonly InjectionToken[],
  useFactory: (...parts: Parts) => unknown,
): FactoryProvider {
  return { provide, inject: [...inject], useFactory: useFactory as FactoryProvider['useFactory'] };
}
