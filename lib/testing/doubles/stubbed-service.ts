import { type FactoryProvider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { systemClock } from '../../config/clock.js';
import { type ServiceModuleOptions } from '../../config/options.js';
import { resolveOptions } from '../../config/resolve-options.js';
import { createService, type Service } from '../../engine/create-service.js';
import { ServiceConfigurationError } from '../../errors/index.js';
import { MODULE_OPTIONS_TOKEN, SERVICE } from '../../module/definition.js';
import { HOST_CONFIG } from '../../module/host-config.js';
import { MODULE_NAME, namesOf, type ModuleName } from '../../module/module-names.js';
import { safeLog } from '../../telemetry/log.js';
import { ClientIdentity } from '../../tls/client-identity.js';
import { DOUBLED, type Doubled } from './doubles.js';
import { type ModuleStub } from './module-stub.js';
import { type ServiceStub } from './service-stub.js';
import { stubExchange } from './stub-exchange.js';

/** Nobody listens there: names that no DNS resolves (RFC 2606). */
const STUB_OPTIONS: ServiceModuleOptions = {
  environment: 'sandbox',
  authentication: 'oauth',
  urls: { sandboxUrl: 'https://service.invalid', sandboxAuthUrl: 'https://auth.service.invalid' },
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
  ];
}

/** A whole client over a network that is not there. Its methods record their calls, and answer by the doubles. */
async function stubbedService(stub: ModuleStub, name: string | undefined): Promise<Service> {
  const log = safeLog(undefined);
  const { options, tls, faults } = await resolveOptions(STUB_OPTIONS, name);
  const { identity } = await ClientIdentity.open({
    tls,
    maxSockets: 1,
    offerToTokenEndpoint: false,
    clock: systemClock,
    log,
  });
  if (!options || !identity) throw new ServiceConfigurationError(faults);
  const exchange = stubExchange(stub, options.addresses.tokenUrl ?? '');
  const io = { exchange, clock: systemClock, random: Math.random, log };
  const service = createService(options, stub.doubleIdentity(identity), io);
  for (const key of Object.keys(DOUBLED) as Doubled[]) stub.double(key, service[key]);
  stub.doubleHealth(service.auth);
  return service;
}
