import { ConfigurableModuleBuilder, type Provider, type Type } from '@nestjs/common';
import { type ServiceModuleOptions } from '../config/options.js';
import { hideOptions, hideValue } from './given-options.js';
import { MODULE_NAME, type ModuleName } from './module-names.js';
import { publicProviders } from './public-providers.js';
import { getServiceToken, privateToken } from '../service-token.js';

/** What forRoot and forRootAsync take beside the options. */
export interface ServiceModuleExtras {
  /** Makes the services injectable everywhere without an import. Default false. */
  isGlobal?: boolean;
  /**
   * For several services in one application: `ksa` reads SERVICE_KSA_* in place of SERVICE_*, and its providers are
   * injected with `@InjectService(BanksService, 'ksa')`.
   */
  name?: string;
  /** Providers that the options factory can inject. */
  extraProviders?: Provider[];
}

const OPTIONS = Symbol('nestjs-service:options');

const builder = new ConfigurableModuleBuilder<ServiceModuleOptions>({
  moduleName: 'Service',
  optionsInjectionToken: OPTIONS,
  // Each call is a module of its own, also where the host has Nest compare modules by content ('deep-hash'): what
  // tells two calls apart is hidden from that comparison.
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
        ...publicProviders.map((type) => publicAlias(type, extras.name)),
      ],
      // A named module knows its named tokens only: two modules must not compete for one class.
      exports: publicProviders.map((type) => getServiceToken(type, extras.name)),
    }),
  );

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  builder.build();

function publicAlias(type: Type, name: string | undefined): Provider {
  return { provide: getServiceToken(type, name), useExisting: privateToken(type.name) };
}
