import { type Agent } from 'node:http';
import { type Identity } from './client-identity.js';
import { PlainAgent } from './connections/clean-reuse.js';
import { closedError, failRequest, takeQueue } from './connections/node-agent.js';

/** The agents of one module: those of its identity, and two for plain http, which is allowed on loopback only. */
export class Agents {
  readonly #identity: Identity;
  readonly #plain: Agent;
  readonly #plainToken: Agent;

  constructor(identity: Identity, maxSockets: number) {
    this.#identity = identity;
    this.#plain = new PlainAgent({ keepAlive: true, scheduling: 'lifo', maxSockets });
    this.#plainToken = new PlainAgent({ keepAlive: true, scheduling: 'lifo', maxSockets: maxSockets + 1 });
  }

  /** For a call of the API. */
  api({ protocol }: Pick<URL, 'protocol'>): Agent {
    // Nest calls no hook of a module that is loaded lazily: its first call does what the hook would have done.
    this.#identity.follow();
    return protocol === 'https:' ? this.#identity.httpsAgent : this.#plain;
  }

  /** For the token endpoint at this address. */
  token(address: string): Agent {
    return address.startsWith('https:') ? this.#identity.tokenAgent : this.#plainToken;
  }

  /**
   * Closes idle connections at once. Calls in flight over TLS get `graceMs`: they may be the host's own, over
   * `auth.httpsAgent`. Resolves when no connection is left.
   */
  async close(graceMs = 0): Promise<void> {
    for (const agent of [this.#plain, this.#plainToken]) {
      for (const request of takeQueue(agent)) failRequest(request, closedError());
      agent.destroy();
    }
    await this.#identity.close(graceMs);
  }
}
