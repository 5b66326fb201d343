import { Agent } from 'node:http';
import { type ClientIdentity } from './client-identity.js';

/** The agents of one module: TLS with its identity, and plain http, which addresses may name on loopback only. */
export class Agents {
  readonly #identity: ClientIdentity;
  readonly #plain: Agent;

  constructor(identity: ClientIdentity, maxSockets: number) {
    this.#identity = identity;
    this.#plain = new Agent({ keepAlive: true, scheduling: 'lifo', maxSockets });
  }

  /** For a call of the API. */
  api({ protocol }: URL): Agent {
    return protocol === 'https:' ? this.#identity.httpsAgent : this.#plain;
  }

  /** For the token endpoint at this address. */
  token(address: string): Agent {
    return address.startsWith('https:') ? this.#identity.tokenAgent : this.#plain;
  }

  /** Closes idle connections at once, those of calls in flight after `graceMs` at the latest. */
  async close(graceMs = 0): Promise<void> {
    this.#plain.destroy();
    await this.#identity.close(graceMs);
  }
}
