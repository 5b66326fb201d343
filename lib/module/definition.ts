import { ConfigurableModuleBuilder, type Provider, type Type } from '@nestjs/common';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { type ServiceModuleOptions } from '../config/options.js';
import { type StartableClient } from '../engine/create-client.js';
import { RESOURCE_CLASSES } from '../engine/resources.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { getServiceOptionsToken, getServiceToken } from '../service-token.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';
import { hideOptions, hideValue } from './given-options.js';

/** Options of the Nest module itself. */
export interface ServiceModuleExtras {
  /** Makes the services injectable everywhere without an import. Default false. */
  isGlobal?: boolean | undefined;
  /**
   * For several services in one application. The module named `ksa` reads SERVICE_KSA_* in place of SERVICE_*, and is
   * injected with `@InjectService(BanksService, 'ksa')`.
   */
  name?: string | undefined;
  /** Providers that the options factory can inject. */
  extraProviders?: Provider[] | undefined;
}

/** The name of a ServiceModule, as one of its own providers. */
export interface ModuleName {
  name?: string;
}

export const MODULE_NAME = Symbol('nestjs-service:name');

const OPTIONS_TOKEN = Symbol('nestjs-service:options');

/** The injection token of a module's client. */
export const CLIENT = Symbol('nestjs-service:service');

/** The classes that a host can inject, and their keys in the client. */
const PUBLIC = new Map<Type, keyof StartableClient>([
  [ServiceAuthService as Type, 'auth'],
  [ServiceHttpService as Type, 'http'],
  [LinkSdkService as Type, 'sdk'],
  [WebhooksService as Type, 'webhooks'],
  ...Object.entries(RESOURCE_CLASSES).map(([name, type]) => [type, name] as [Type, keyof StartableClient]),
]);

const builder = new ConfigurableModuleBuilder<ServiceModuleOptions>({
  moduleName: 'Service',
  optionsInjectionToken: OPTIONS_TOKEN,
  // Each call makes a module of its own. Without this, Nest's 'deep-hash' would take two modules for the same one,
  // because it does not see the hidden options.
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
        ...(definition.providers ?? []).map((provider) =>
          hideOptions(provider, OPTIONS_TOKEN, getServiceOptionsToken(extras.name)),
        ),
        { provide: OPTIONS_TOKEN, useExisting: getServiceOptionsToken(extras.name) },
        ...(extras.extraProviders ?? []).map(hideValue),
        { provide: MODULE_NAME, useValue: { name: extras.name } satisfies ModuleName },
        ...[...PUBLIC].map(([type, key]) => ({
          provide: getServiceToken(type, extras.name),
          inject: [CLIENT],
          useFactory: (service: StartableClient) => service[key],
        })),
      ],
      // A named module exports only named tokens, so that no two modules export the same class.
      exports: [...PUBLIC.keys()].map((type) => getServiceToken(type, extras.name)),
    }),
  );

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  builder.build();
