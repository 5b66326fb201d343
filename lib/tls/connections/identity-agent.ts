import { type ClientRequest } from 'node:http';
import { Agent } from 'node:https';
import { type Duplex } from 'node:stream';
import { type SecureContext } from 'node:tls';
import { type Clock } from '../../config/clock.js';
import { closedError, failRequest, poolName, type AgentRequestOptions } from './node-agent.js';
import { PooledAgent, type PoolSettings } from './pooled-agent.js';

/**
 * One https.Agent for the module and for host code (axios, got, node:https), whatever identity is in use. A new identity
 * has connections of its own. Those of the old one close after their calls. https only; TLS >= 1.2; the server is always
 * verified.
 */
export class IdentityAgent extends Agent {
  readonly #settings: PoolSettings;
  #current: PooledAgent;
  readonly #old = new Set<PooledAgent>();
  #closed = false;
  readonly #onEmpty = new Set<() => void>();

  constructor(context: SecureContext, settings: PoolSettings) {
    super({ keepAlive: true, scheduling: 'lifo', maxSockets: settings.maxSockets });
    this.#settings = settings;
    this.#current = new PooledAgent(context, settings);
    // For host code: those of the identity in use. Not enumerable, so that JSON does not contain sockets.
    for (const pool of ['sockets', 'freeSockets', 'requests', 'totalSocketCount'] as const) {
      Object.defineProperty(this, pool, {
        get: () => (this.#current as unknown as Record<string, unknown>)[pool],
        enumerable: false,
      });
    }
  }

  /** node:http calls this for each request. */
  addRequest(request: ClientRequest, options: AgentRequestOptions): void {
    if (this.#closed) failRequest(request, closedError());
    else this.#current.addRequest(request, options);
  }

  override createConnection(options: AgentRequestOptions): Duplex {
    if (this.#closed) throw closedError();
    return this.#current.createConnection(options);
  }

  override getName(options?: AgentRequestOptions): string {
    return poolName(options);
  }

  /** Closes all connections, also those of calls in flight. As with Node's own agent, it can be used again. */
  override destroy(): void {
    for (const agent of [this.#current, ...this.#old]) agent.destroy();
  }

  /** New calls use this identity. Calls in flight finish with the old one. */
  use(context: SecureContext): void {
    if (this.#closed) return;
    const old = this.#current;
    const waiting = old.takeQueued();
    this.#current = new PooledAgent(context, this.#settings);
    this.#retire(old);
    for (const redispatch of waiting) redispatch(this.#current);
  }

  /**
   * Takes no more calls (ERR_AGENT_CLOSED). Idle connections are closed at once; calls in flight get `graceMs`, then
   * are cut. Resolves as soon as no connection is left.
   */
  async close(graceMs: number, clock: Clock): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#retire(this.#current);
    }
    if (this.#old.size === 0) return;
    if (graceMs > 0) await this.#drained(graceMs, clock);
    for (const agent of this.#old) agent.end();
    this.#old.clear();
  }

  #retire(agent: PooledAgent): void {
    this.#old.add(agent);
    agent.drain(() => {
      this.#old.delete(agent);
      if (this.#old.size === 0) for (const tell of this.#onEmpty) tell();
    });
  }

  #drained(graceMs: number, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.schedule(resolve, graceMs);
      this.#onEmpty.add(() => {
        cancel();
        resolve();
      });
    });
  }
}
