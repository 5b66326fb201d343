import { type Agent } from 'node:http';
import { type Clock, systemClock } from '../config/clock.js';
import { type ClientIdentity } from './client-identity.js';
import { PlainAgent } from './connections/plain-agent.js';

/** The agents of one module: TLS with its identity, and plain http, which addresses may name on loopback only. */
export class Agents {
  readonly #identity: ClientIdentity;
  readonly #plain: PlainAgent;
  readonly #plainToken: PlainAgent;
  readonly #clock: Clock;

  constructor(identity: ClientIdentity, maxSockets: number, clock: Clock = systemClock) {
    this.#identity = identity;
    this.#plain = new PlainAgent(maxSockets);
    this.#plainToken = new PlainAgent(maxSockets + 1);
    this.#clock = clock;
  }

  /** For a call of the API. */
  api({ protocol }: URL): Agent {
    // Nest calls no hook of a module that is loaded lazily; its first call does what the hook would have done.
    this.#identity.follow();
    return protocol === 'https:' ? this.#identity.httpsAgent : this.#plain;
  }

  /** For the token endpoint at this address. */
  token(address: string): Agent {
    return address.startsWith('https:') ? this.#identity.tokenAgent : this.#plainToken;
  }

  /**
   * Closes idle connections at once, those of calls in flight after `graceMs` at the latest. Resolves as soon as no
   * connection is left.
   */
  async close(graceMs = 0): Promise<void> {
    const plain = [this.#plain, this.#plainToken].map((agent) => agent.close(graceMs, this.#clock));
    await Promise.all([...plain, this.#identity.close(graceMs)]);
  }
}
