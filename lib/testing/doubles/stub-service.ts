import { type FactoryProvider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { systemClock } from '../../time/clock.js';
import { type ServiceModuleOptions } from '../../config/options.js';
import { resolveOptions } from '../../config/resolve-options.js';
import { createService, type Service } from '../../engine/create-service.js';
import { ServiceConfigurationError } from '../../errors/index.js';
import { MODULE_OPTIONS_TOKEN, SERVICE } from '../../module/definition.js';
import { HOST_CONFIG } from '../../module/host-config.js';
import { MODULE_NAME, namesOf, type ModuleName } from '../../module/namesakes.js';
import { ServiceClients } from '../../module/service-clients.js';
import { type ExchangeRequest } from '../../exchange/exchange.types.js';
import { SILENT } from '../../exchange/io.js';
import { ClientIdentity } from '../../tls/client-identity.js';
import { type ServiceStubOptions } from './doubles.js';
import { exchangeDouble } from './exchange-double.js';
import { type ModuleStub } from './module-stub.js';
import { ServiceStub } from './service-stub.js';

/** The part of `TestingModuleBuilder` of @nestjs/testing that is used. */
export interface ProviderOverrides {
  overrideProvider(token: unknown): {
    useFactory(options: {
      factory: FactoryProvider['useFactory'];
      inject?: FactoryProvider['inject'];
    }): unknown;
  };
}

/**
 * Makes a host's own modules start in a test without a configuration, network or timers: the services of each
 * ServiceModule, named ones too, are doubles from then on. They check their input as the real ones do. A factory of
 * `forRootAsync` is not called, and no `SERVICE_*` variable is read. ServiceClients make doubles too.
 *
 * @example
 * const builder = Test.createTestingModule({ imports: [AppModule] });
 * const service = stubService(builder, { banks: { list: () => [{ name: 'Alpha Bank' }] } });
 * const app = (await builder.compile()).createNestApplication();
 * @throws TypeError for a service or method that there is not, a double that is no function, and a module that is
 * compiled already
 */
export function stubService(builder: ProviderOverrides, doubles?: ServiceStubOptions): ServiceStub {
  if (typeof (builder as Partial<ProviderOverrides>).overrideProvider !== 'function') {
    throw new TypeError(
      'stubService() takes the builder that Test.createTestingModule() returns, before compile() is called on it.',
    );
  }
  const stub = new ServiceStub(doubles);
  for (const { provide, useFactory, inject } of stubProviders(stub)) {
    builder.overrideProvider(provide).useFactory({ factory: useFactory, inject });
  }
  return stub;
}

const AUTH_HOST = 'auth.service.invalid';

/** Nobody listens there: names that no DNS resolves (RFC 2606). */
const STUB_OPTIONS: ServiceModuleOptions = {
  environment: 'sandbox',
  authentication: 'oauth',
  urls: { sandboxUrl: 'https://service.invalid', sandboxAuthUrl: `https://${AUTH_HOST}` },
  oauth: { clientId: '5f0c3a52-9d1e-4b7a-8c46-2f7d0e9b1a35', clientSecret: 'not-used' },
  // The function of a test is called once for each call.
  http: { retries: 0 },
};

/** What takes the place of a module's configuration and client. The host's factory of options is not called. */
export function stubProviders(stub: ServiceStub): FactoryProvider[] {
  return [
    { provide: MODULE_OPTIONS_TOKEN as symbol, useFactory: () => ({}) },
    { provide: HOST_CONFIG, useFactory: () => ({}) },
    {
      provide: SERVICE,
      inject: [MODULE_NAME, ModulesContainer],
      useFactory: ({ name }: ModuleName, modules: ModulesContainer) => {
        stub.checkNames(namesOf(modules).map((each) => each.name));
        return stubbedService(stub.module(name), name);
      },
    },
    {
      provide: ServiceClients,
      useFactory: () => new ServiceClients((_given, name) => stubbedService(stub.client(name), name)),
    },
  ];
}

/** A whole client over a network that is not there. Its methods record their calls, and answer by the doubles. */
async function stubbedService(stub: ModuleStub, name: string | undefined): Promise<Service> {
  const { options, tls, faults } = await resolveOptions(STUB_OPTIONS, name);
  const { identity } = await ClientIdentity.open({
    tls,
    maxSockets: 1,
    offerToTokenEndpoint: false,
    clock: systemClock,
    log: SILENT,
  });
  if (!options || !identity) throw new ServiceConfigurationError(faults);
  const exchange = exchangeDouble((request) =>
    request.url.hostname === AUTH_HOST ? { data: tokenFor(request) } : stub.answer(request),
  );
  const service = createService(options, identity, {
    exchange,
    clock: systemClock,
    random: Math.random,
    log: SILENT,
  });
  stub.double(service);
  return service;
}

/** A token that no service knows (docs/service.md#tokens), good for an hour. */
function tokenFor({ body = '' }: ExchangeRequest): object {
  const scope = new URLSearchParams(Buffer.from(body).toString()).get('scope');
  return { access_token: `stub-token.${scope}`, token_type: 'bearer', expires_in: 3_600, scope };
}
