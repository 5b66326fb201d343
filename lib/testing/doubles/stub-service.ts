import { type FactoryProvider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { CLIENT, MODULE_NAME, type ModuleName } from '../../module/providers.js';
import { type ServiceClient, startClient } from '../../engine/create-client.js';
import {
  checkDoubleName,
  checkDoubles,
  type RecordedCall,
  type ServiceDoubles,
  type ServiceStubOptions,
} from './doubles.js';
import { type ClientStub, makeStubbedClient } from './stubbed-client.js';

/** The part of `TestingModuleBuilder` of @nestjs/testing that {@link stubService} uses. */
export interface ProviderOverrides {
  overrideProvider(token: unknown): {
    useFactory(
      options: Pick<FactoryProvider, 'inject'> & { factory: FactoryProvider['useFactory'] },
    ): unknown;
  };
}

/**
 * Replaces the services of every ServiceModule, named ones too, by doubles. The application's own modules then start in a
 * test without configuration, network or timers: a factory of `forRootAsync` is not called, and no `SERVICE_*` variable is
 * read. The doubles check their input like the real services.
 *
 * @example
 * const builder = Test.createTestingModule({ imports: [AppModule] });
 * const service = stubService(builder, { banks: { list: () => [{ name: 'Alpha Bank' }] } });
 * const app = (await builder.compile()).createNestApplication();
 * @throws TypeError for an unknown service or method, a double that is not a function, or a module that is already compiled
 */
export function stubService(builder: ProviderOverrides, doubles?: ServiceStubOptions): ServiceStub {
  if (typeof (builder as Partial<ProviderOverrides>).overrideProvider !== 'function') {
    throw new TypeError(
      'stubService() needs the builder that Test.createTestingModule() returns. Call stubService() before compile().',
    );
  }
  const stub = new ServiceStub(doubles);
  // The overridden provider does not inject the module's options, so Nest does not call the host's factory for them.
  builder.overrideProvider(CLIENT).useFactory({
    inject: [MODULE_NAME, ModulesContainer],
    factory: ({ name }: ModuleName, modules: ModulesContainer) => {
      stub.checkNames(listModuleNames(modules));
      return makeStubbedClient(stub.forModule(name), name);
    },
  });
  return stub;
}

/** A client of doubles, and the calls that it has received. */
export type StubbedServiceClient = ServiceClient & Pick<ServiceStub, 'calls' | 'callsOf' | 'use' | 'reset'>;

/**
 * Makes a client for tests of code that gets its client from `createServiceClient()`. It needs neither Nest nor a network, and takes
 * the same doubles as {@link stubService}.
 *
 * @example
 * const client = await stubServiceClient({ banks: { list: () => [{ name: 'Alpha Bank' }] } });
 * await listBanks(client);
 * expect(client.callsOf('banks.list')).toHaveLength(1);
 * @throws TypeError for an unknown service or method, or a double that is not a function
 */
export async function stubServiceClient(doubles?: ServiceDoubles): Promise<StubbedServiceClient> {
  const stub = new ServiceStub(doubles);
  const client = await startClient(await makeStubbedClient(stub.forModule(undefined), undefined));
  return {
    ...client,
    get calls() {
      return stub.calls;
    },
    callsOf: (method) => stub.callsOf(method),
    use: (given) => stub.use(given),
    reset: () => stub.reset(),
  };
}

function listModuleNames(modules: ModulesContainer): string[] {
  return [...modules.values()].flatMap(
    // A bare `imports: [ServiceModule]` has no name. Nest refuses it later with a message of its own.
    ({ providers }) => (providers.get(MODULE_NAME)?.instance as ModuleName | null | undefined)?.name ?? [],
  );
}

/** The doubles of a test: their responses, and the calls they have received. */
export class ServiceStub {
  /** The doubles given at the start, followed by those of each {@link use}. */
  readonly #given: ServiceStubOptions[];
  readonly #calls: RecordedCall[] = [];
  #customers = 0;

  /** @throws TypeError for an unknown service or method */
  constructor(doubles: ServiceStubOptions = {}) {
    checkDoubles(doubles);
    this.#given = [doubles];
  }

  /** Every call since the start or the last {@link reset}, in order. Includes calls whose input was refused. */
  get calls(): readonly RecordedCall[] {
    return [...this.#calls];
  }

  /**
   * The arguments of each call of a method, for example `banks.list`.
   *
   * @param module the name of a named module
   */
  callsOf(method: string, module?: string): (readonly unknown[])[] {
    return this.#calls
      .filter((call) => call.method === method && call.module === module)
      .map(({ args }) => args);
  }

  /** Replaces some of the doubles from now on. Those that are left out stay. */
  use(doubles: ServiceStubOptions): void {
    checkDoubles(doubles);
    this.#given.push(doubles);
  }

  /** Forgets all calls and customers, and restores the doubles of the start. Call it in `afterEach`. */
  reset(): void {
    this.#given.splice(1);
    this.#calls.length = 0;
    this.#customers = 0;
  }

  /**
   * The doubles of one module.
   *
   * @internal
   */
  forModule(name: string | undefined): ClientStub {
    const given = () => this.#given.map((each) => (name === undefined ? each : each.named?.[name]));
    return {
      doubles: (service) => Object.assign({}, ...given().map((each) => each?.[service])) as never,
      record: (method, args) => {
        this.#calls.push({ method, args, ...(name !== undefined && { module: name }) });
      },
      nextCustomer: () => (this.#customers += 1),
    };
  }

  /**
   * @throws TypeError if there are doubles for a module that the application does not have
   * @internal
   */
  checkNames(present: readonly string[]): void {
    const names = this.#given.flatMap(({ named }) => Object.keys(named ?? {}));
    for (const name of names) checkDoubleName(name, present, 'ServiceModule');
  }
}
