import { checkDoubles, checkDoubleName, type RecordedCall, type ServiceStubOptions } from './doubles.js';
import { type ClientStub } from './stubbed-client.js';

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
