import { ConfigurableModuleBuilder, type Provider, type Type } from '@nestjs/common';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { type ServiceModuleOptions } from '../config/options.js';
import { type StartableClient, RESOURCE_CLASSES } from '../engine/create-client.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { getServiceOptionsToken, getServiceToken } from '../service-token.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';
import { hideOptions, hideValue } from './host-config.js';

/** Options of the Nest module itself. */
export interface ServiceModuleExtras {
  /** Makes the services injectable in every module without an import. Default false. */
  isGlobal?: boolean | undefined;
  /**
   * Distinguishes several ServiceModules in one application. The module named `ksa` reads SERVICE_KSA_* instead of
   * SERVICE_*, and you inject its services with `@InjectService(BanksService, 'ksa')`.
   */
  name?: string | undefined;
  /** Providers that the options factory can inject. */
  extraProviders?: Provider[] | undefined;
}

/** The value of the provider {@link MODULE_NAME}. */
export interface ModuleName {
  name?: string;
}

export const MODULE_NAME = Symbol('nestjs-service:name');

/** The token under which Nest provides the options. For us it is only an alias of {@link getServiceOptionsToken}. */
export const OPTIONS_TOKEN = Symbol('nestjs-service:options');

/** The injection token of a module's client. */
export const CLIENT = Symbol('nestjs-service:service');

/** The classes that an application can inject, with their keys in the client. */
const INJECTABLE = new Map<Type, keyof StartableClient>([
  [ServiceAuthService as Type, 'auth'],
  [ServiceHttpService as Type, 'http'],
  [LinkSdkService as Type, 'sdk'],
  [WebhooksService as Type, 'webhooks'],
  ...Object.entries(RESOURCE_CLASSES).map(([name, type]) => [type, name] as [Type, keyof StartableClient]),
]);

const builder = new ConfigurableModuleBuilder<ServiceModuleOptions>({
  moduleName: 'Service',
  optionsInjectionToken: OPTIONS_TOKEN,
  // Each forRoot() makes a separate module. Otherwise Nest's 'deep-hash' algorithm would take two modules for the same one,
  // because hideOptions() hides from it the options in which they differ.
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
        ...[...INJECTABLE].map(([type, key]) => ({
          provide: getServiceToken(type, extras.name),
          inject: [CLIENT],
          useFactory: (client: StartableClient) => client[key],
        })),
      ],
      // A named module exports only named tokens, so that no two modules export the same class.
      exports: [...INJECTABLE.keys()].map((type) => getServiceToken(type, extras.name)),
    }),
  );

export const { ConfigurableModuleClass, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } = builder.build();
