import { type FactoryProvider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { BanksService } from '../../banks/banks.service.js';
import { systemClock } from '../../config/clock.js';
import { type ServiceModuleOptions } from '../../config/options.js';
import { resolveOptions } from '../../config/resolve-options.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { CustomersService } from '../../customers/customers.service.js';
import { ServiceConfigurationError } from '../../errors/index.js';
import { type CallsInFlight } from '../../http/calls-in-flight.js';
import { serviceHttpOver } from '../../http/create-service-http.js';
import { type ResourcePaths } from '../../http/resource-paths.js';
import { ServiceHttpService } from '../../http/service-http.service.js';
import { createLinkSdk, LinkSdkService } from '../../link-sdk/link-sdk.service.js';
import { MODULE_OPTIONS_TOKEN } from '../../module/definition.js';
import { HOST_CONFIG } from '../../module/host-config.js';
import { type LoadedConfiguration } from '../../module/load-configuration.js';
import { MODULE_NAME, namesOf, type ModuleName } from '../../module/module-names.js';
import {
  AUTH,
  AXIOS,
  CALLS,
  CONFIGURATION,
  HTTP,
  IDENTITY,
  LOG,
  OPTIONS,
  PATHS,
  TELEMETRY,
} from '../../module/providers.js';
import { StartReport } from '../../module/start-report.js';
import { privateToken } from '../../service-token.js';
import { type Log } from '../../telemetry/log.js';
import { type Telemetry } from '../../telemetry/telemetry.js';
import { ClientIdentity } from '../../tls/index.js';
import { AuthDouble } from './auth-double.js';
import { type ServiceStub } from './service-stub.js';
import { stubRunner } from './stub-runner.js';

/** Nobody listens there: names that no DNS resolves (RFC 2606). */
const STUB_OPTIONS: ServiceModuleOptions = {
  environment: 'sandbox',
  authentication: 'oauth',
  urls: { sandboxUrl: 'https://service.invalid', sandboxAuthUrl: 'https://auth.service.invalid' },
  oauth: { clientId: '5f0c3a52-9d1e-4b7a-8c46-2f7d0e9b1a35', clientSecret: 'not-used' },
};

/**
 * What takes the place of a ServiceModule's own parts: those that read a configuration, use the network or log. All
 * others are the real ones.
 */
export function stubProviders(stub: ServiceStub): FactoryProvider[] {
  const provider = <Parts extends unknown[]>(
    provide: string | symbol | undefined,
    inject: FactoryProvider['inject'],
    make: (name: string | undefined, ...parts: Parts) => unknown,
  ): FactoryProvider => ({
    provide: provide as string,
    inject: [MODULE_NAME, ...(inject ?? [])],
    useFactory: ({ name }: ModuleName, ...parts: unknown[]) => make(name, ...(parts as Parts)),
  });
  return [
    // A factory of the host's is not called.
    provider(MODULE_OPTIONS_TOKEN as symbol, [], () => ({})),
    provider(HOST_CONFIG, [], () => ({})),
    provider(CONFIGURATION, [ModulesContainer], (name, modules: ModulesContainer) => {
      stub.checkNames(namesOf(modules).map((each) => each.name));
      return stubConfiguration(name);
    }),
    provider(
      AUTH,
      [OPTIONS, IDENTITY, CALLS],
      (name, options: ResolvedOptions, identity: ClientIdentity, calls: CallsInFlight) => {
        const own = stub.module(name);
        return own.double('auth', new AuthDouble(own, options, identity, calls));
      },
    ),
    provider(
      AXIOS,
      [OPTIONS, AUTH, IDENTITY, CALLS, TELEMETRY, LOG],
      (
        name,
        options: ResolvedOptions,
        auth: AuthDouble,
        identity: ClientIdentity,
        calls: CallsInFlight,
        telemetry: Telemetry,
        log: Log,
      ) => {
        const runner = stubRunner(stub.module(name), options.describeOption);
        return serviceHttpOver(runner, options, auth, identity, calls, telemetry, log);
      },
    ),
    provider(HTTP, [AXIOS], (name, axios: ConstructorParameters<typeof ServiceHttpService>[0]) =>
      stub.module(name).double('http', new ServiceHttpService(axios)),
    ),
    provider(
      privateToken(BanksService.name),
      [HTTP, PATHS],
      (name, http: ServiceHttpService, paths: ResourcePaths) =>
        stub.module(name).double('banks', new BanksService(http, paths)),
    ),
    provider(
      privateToken(CustomersService.name),
      [HTTP, PATHS],
      (name, http: ServiceHttpService, paths: ResourcePaths) =>
        stub.module(name).double('customers', new CustomersService(http, paths)),
    ),
    provider(
      privateToken(LinkSdkService.name),
      [OPTIONS, AUTH],
      (name, options: ResolvedOptions, auth: AuthDouble) =>
        stub.module(name).double('sdk', createLinkSdk(options, auth)),
    ),
    provider(privateToken(StartReport.name), [], () => ({})),
  ];
}

async function stubConfiguration(name: string | undefined): Promise<LoadedConfiguration> {
  const { options, tls, faults } = await resolveOptions(STUB_OPTIONS, name);
  const { identity } = await ClientIdentity.open({
    tls,
    maxSockets: 1,
    offerToTokenEndpoint: false,
    clock: systemClock,
    log: () => undefined,
  });
  if (!options || !identity) throw new ServiceConfigurationError(faults);
  return { options, identity };
}
