import { TestEnvironment } from 'jest-environment-node';
import asyncHooks from 'node:async_hooks';

const { AsyncLocalStorage } = asyncHooks;
// Node 22 and later let nobody replace it.
const { writable = false } = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage') ?? {};

// A worker that has nothing more to do ends at once: to free the modules of all its spec files one by one (Node 20 keeps them:
// 0.8 GB) takes as long as Jest waits for it. What keeps a worker busy still keeps it.
process.once('beforeExit', (code) => process.exit(code));

/**
 * Stands in for the AsyncLocalStorage in which Jest keeps the test that runs. Tests of one file run one after the other, so
 * a variable will do.
 */
class RunningTest {
  #store;

  getStore() {
    return this.#store;
  }

  run(store, callback) {
    const before = this.#store;
    this.#store = store;
    const end = () => (this.#store = before);
    const result = callback();
    result.then(end, end);
    return result;
  }
}

/** The second line of the stack names the constructor, the third one its caller. */
const isMadeByJest = ({ stack }) => stack.split('\n')[2].includes('jest-circus');

/**
 * Jest's environment for Node. Before Node 24 each promise is told to all AsyncLocalStorages in use. So Jest gets none, and
 * those that a test file leaves are ended: every file was slower than the one before.
 */
export default class NodeEnvironment extends TestEnvironment {
  #storages = [];

  async setup() {
    await super.setup();
    if (!writable) return;
    const storages = this.#storages;
    asyncHooks.AsyncLocalStorage = class extends AsyncLocalStorage {
      constructor(...args) {
        super(...args);
        if (isMadeByJest(new Error())) return new RunningTest();
        storages.push(this);
      }
    };
  }

  async teardown() {
    if (writable) asyncHooks.AsyncLocalStorage = AsyncLocalStorage;
    for (const storage of this.#storages) storage.disable();
    this.#storages = [];
    await super.teardown();
  }
}
