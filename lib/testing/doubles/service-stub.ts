import {
  checkDoubles,
  DOUBLED,
  type RecordedCall,
  type ServiceDoubles,
  type ServiceStubOptions,
} from './doubles.js';
import { ModuleStub } from './module-stub.js';

/** The doubles of a test: what they answer, and how they were called. */
export class ServiceStub {
  readonly #initial: ServiceStubOptions;
  readonly #calls: RecordedCall[] = [];
  readonly #modules = new Map<string | undefined, ModuleStub>();
  readonly #clients = new Map<string | undefined, ModuleStub>();

  /** @throws TypeError for a service or method that there is not */
  constructor(doubles: ServiceStubOptions = {}) {
    checkDoubles(doubles);
    this.#initial = doubles;
    this.#apply(doubles);
  }

  /** Every call since the start or the last {@link reset}, in order; also those whose input was refused. */
  get calls(): readonly RecordedCall[] {
    return [...this.#calls];
  }

  /** The arguments of the calls of one method, for example `banks.list`; of a named module or client with `module`. */
  callsOf(method: string, module?: string): (readonly unknown[])[] {
    return this.#calls
      .filter((call) => call.method === method && call.module === module)
      .map(({ args }) => args);
  }

  /** Other answers from now on; those that are left out stay. */
  use(doubles: ServiceStubOptions): void {
    checkDoubles(doubles);
    this.#apply(doubles);
  }

  /** Forgets the calls and customers, and goes back to the answers of the start. For `afterEach`. */
  reset(): void {
    this.#calls.length = 0;
    for (const stub of [...this.#modules.values(), ...this.#clients.values()]) stub.reset();
    this.#apply(this.#initial);
  }

  /** @internal */
  module(name: string | undefined): ModuleStub {
    return this.#stub(this.#modules, name);
  }

  /** @internal */
  client(name: string | undefined): ModuleStub {
    return this.#stub(this.#clients, name);
  }

  /**
   * @throws TypeError where there are answers for a module that the application does not have
   * @internal
   */
  checkNames(present: readonly (string | undefined)[]): void {
    const unknown = [...this.#modules.keys()].filter((name) => name !== undefined && !present.includes(name));
    if (unknown.length === 0) return;
    const there = present.map((name) => (name === undefined ? 'one without a name' : `'${name}'`));
    throw new TypeError(
      `There are answers for a ServiceModule named '${unknown[0]}', and the application has none of that name. It has: ${there.join(', ')}.`,
    );
  }

  #apply({ named, clients, ...doubles }: ServiceStubOptions): void {
    merge(this.module(undefined), doubles);
    for (const [name, each] of Object.entries(named ?? {})) merge(this.module(name), each);
    for (const [name, each] of Object.entries(clients ?? {})) merge(this.client(name), each);
  }

  #stub(stubs: Map<string | undefined, ModuleStub>, name: string | undefined): ModuleStub {
    const found = stubs.get(name) ?? new ModuleStub(name, this.#calls);
    stubs.set(name, found);
    return found;
  }
}

function merge(stub: ModuleStub, doubles: ServiceDoubles): void {
  const services = Object.keys(DOUBLED) as (keyof typeof DOUBLED)[];
  const merged = services.map((service) => [service, { ...stub.doubles[service], ...doubles[service] }]);
  stub.doubles = Object.fromEntries(merged) as ServiceDoubles;
}
