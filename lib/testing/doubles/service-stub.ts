import { checkDoubles, checkKey, type RecordedCall, type ServiceStubOptions } from './doubles.js';
import { type ClientStub } from './stubbed-client.js';

/** The doubles of a test: what they answer, and how they were called. */
export class ServiceStub {
  /** The answers of the start, and those of each {@link use} after it. */
  readonly #given: ServiceStubOptions[];
  readonly #calls: RecordedCall[] = [];
  #customers = 0;

  /** @throws TypeError for a service or method that there is not */
  constructor(doubles: ServiceStubOptions = {}) {
    checkDoubles(doubles);
    this.#given = [doubles];
  }

  /** Every call since the start or the last {@link reset}, in order; also those whose input was refused. */
  get calls(): readonly RecordedCall[] {
    return [...this.#calls];
  }

  /** The arguments of the calls of one method, for example `banks.list`; of a named module with `module`. */
  callsOf(method: string, module?: string): (readonly unknown[])[] {
    return this.#calls
      .filter((call) => call.method === method && call.module === module)
      .map(({ args }) => args);
  }

  /** Other answers from now on; those that are left out stay. */
  use(doubles: ServiceStubOptions): void {
    checkDoubles(doubles);
    this.#given.push(doubles);
  }

  /** Forgets the calls and customers, and goes back to the answers of the start. For `afterEach`. */
  reset(): void {
    this.#given.splice(1);
    this.#calls.length = 0;
    this.#customers = 0;
  }

  /**
   * For a module.
   * @internal
   */
  of(name: string | undefined): ClientStub {
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
   * @throws TypeError if there are answers for a module that the application does not have
   * @internal
   */
  checkNames(present: readonly string[]): void {
    const names = this.#given.flatMap(({ named }) => Object.keys(named ?? {}));
    for (const name of names) checkKey(name, present, 'ServiceModule');
  }
}
