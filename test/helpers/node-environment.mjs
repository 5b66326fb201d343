import { TestEnvironment } from 'jest-environment-node';
import asyncHooks from 'node:async_hooks';

const { AsyncLocalStorage } = asyncHooks;
// Node 22 and later let nobody replace it.
const { writable = false } = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage') ?? {};

// A worker that has nothing more to do ends at once: to free the modules of all its spec files one by one (Node 20 keeps them:
// 0.8 GB) takes as long as Jest waits for it. What keeps a worker busy still keeps it.
process.once('beforeExit', (code) => process.exit(code));

/**
 * Jest's environment for Node. It ends the AsyncLocalStorages that a test file leaves, of which Jest itself makes one for
 * each file: before Node 24 each promise is told to all of them, so that every file was slower than the one before.
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
