import { afterEach } from '@jest/globals';
import { type LoggerService, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  BanksService,
  CustomersService,
  ServiceAuthService,
  ServiceHttpService,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type ServiceStub, type ServiceStubOptions, stubService } from 'nestjs-service/testing';

export interface StartedModule {
  module: TestingModule;
  banks: BanksService;
  customers: CustomersService;
  http: ServiceHttpService;
  auth: ServiceAuthService;
}

/** Starts a Nest application context with the module. `logger` receives all levels. */
export async function startModule(
  options: ServiceModuleOptions,
  logger: LoggerService | false = false,
): Promise<StartedModule> {
  const module = await Test.createTestingModule({ imports: [ServiceModule.forRoot(options)] })
    .setLogger(logger as LoggerService)
    .compile();
  await module.init();
  return {
    module,
    banks: module.get(BanksService),
    customers: module.get(CustomersService),
    http: module.get(ServiceHttpService),
    auth: module.get(ServiceAuthService),
  };
}

/** Starts a module with `stubService`, as the test of a host application does. */
export async function startStubbed(
  doubles?: ServiceStubOptions,
): Promise<{ module: TestingModule; service: ServiceStub }> {
  const builder = Test.createTestingModule({ imports: [ServiceModule.forRoot()] });
  const service = stubService(builder, doubles);
  return { service, module: await builder.compile() };
}

/** Starts Nest modules and sets variables for the tests of a `describe` block. After each test it undoes both. */
export function modulesOfBlock() {
  const open: TestingModule[] = [];
  const variables: string[] = [];
  afterEach(async () => {
    for (const module of open.splice(0)) await module.close();
    for (const variable of variables.splice(0)) delete process.env[variable];
  });
  return {
    start: async (
      metadata: ModuleMetadata,
      logger: LoggerService | false = false,
    ): Promise<TestingModule> => {
      const module = await Test.createTestingModule(metadata)
        .setLogger(logger as LoggerService)
        .compile();
      await module.init();
      open.push(module);
      return module;
    },
    setVariables: (values: Record<string, string>): void => {
      Object.assign(process.env, values);
      variables.push(...Object.keys(values));
    },
  };
}

/** Resolves to the error with which the promise rejects. Rejects if the promise resolves. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`The promise did not reject. It resolved to ${JSON.stringify(value)}`);
}
