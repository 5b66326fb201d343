import { ConfigurableModuleBuilder, type Provider, type Type } from '@nestjs/common';
import { ServiceAuthService } from '../auth/index.js';
import { BanksService } from '../banks/banks.service.js';
import { type ServiceModuleOptions } from '../config/options.js';
import { CustomersService } from '../customers/customers.service.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { getServiceToken, privateToken } from '../service-token.js';
import { hideOptions, hideValue } from './given-options.js';
import { MODULE_NAME, type ModuleName } from './module-names.js';

/** What forRoot and forRootAsync take beside the options. */
export interface ServiceModuleExtras {
  /** Makes the services injectable everywhere without an import. Default false. */
  isGlobal?: boolean | undefined;
  /**
   * For several services in one application: `ksa` reads SERVICE_KSA_* in place of SERVICE_*, and its providers are
   * injected with `@InjectService(BanksService, 'ksa')`.
   */
  name?: string | undefined;
  /** Providers that the options factory can inject. */
  extraProviders?: Provider[] | undefined;
}

const OPTIONS = Symbol('nestjs-service:options');

/** The resources of the API: providers.ts makes each of them, and hosts can inject it. */
export const RESOURCE_SERVICES = [CustomersService, BanksService] as const;

/** What a host can inject. */
const PUBLIC = [ServiceAuthService, ServiceHttpService, ...RESOURCE_SERVICES, LinkSdkService] as Type[];

const builder = new ConfigurableModuleBuilder<ServiceModuleOptions>({
  moduleName: 'Service',
  optionsInjectionToken: OPTIONS,
  // Each call makes another module, also where the host has Nest compare modules by content ('deep-hash'): that
  // comparison does not see the options, which are hidden.
  alwaysTransient: true,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createServiceOptions')
  .setExtras<ServiceModuleExtras>(
    { isGlobal: false, name: undefined, extraProviders: [] },
    (definition, extras) => ({
      ...definition,
      global: extras.isGlobal,
      providers: [
        ...(definition.providers ?? []).map((provider) => hideOptions(provider, OPTIONS)),
        ...(extras.extraProviders ?? []).map(hideValue),
        { provide: MODULE_NAME, useValue: { name: extras.name } satisfies ModuleName },
        ...PUBLIC.map((type) => publicAlias(type, extras.name)),
      ],
      // A named module knows its named tokens only: two modules must not compete for one class.
      exports: PUBLIC.map((type) => getServiceToken(type, extras.name)),
    }),
  );

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  builder.build();

function publicAlias(type: Type, name: string | undefined): Provider {
  return { provide: getServiceToken(type, name), useExisting: privateToken(type.name) };
}
