import { type ClientRequest } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { type Duplex } from 'node:stream';
import { type SecureContext } from 'node:tls';
import { systemClock } from '../../time/clock.js';
import { IdentityConnections, nameOf, type IdentityPoolSettings } from './identity-connections.js';
import { endAfterUnreadBody } from './idle-connections.js';
import { closedError, failRequest, RequestGate } from './request-gate.js';

/**
 * One https.Agent for the module and for host code (axios, got, node:https), whatever identity is in use. Behind it, each
 * identity has its own connections: calls in flight end on the ones they began on, all others use the newest.
 */
export class IdentityAgent extends Agent {
  readonly #gate = new RequestGate(() => this.maxSockets);
  readonly #settings: IdentityPoolSettings;
  #connections: IdentityConnections;
  /** Connections of earlier identities, on which calls may be in flight. */
  #retired: IdentityConnections[] = [];
  #isClosed = false;

  constructor(context: SecureContext, settings: IdentityPoolSettings) {
    super({ keepAlive: true, maxSockets: settings.maxSockets });
    this.#settings = settings;
    this.#connections = new IdentityConnections(context, settings);
    // Like those of any agent, but not enumerable: JSON would contain sockets.
    const show = (pool: string, get: () => unknown) =>
      Object.defineProperty(this, pool, { get, enumerable: false });
    show('sockets', () => this.#connections.sockets);
    show('freeSockets', () => this.#connections.freeSockets);
    show('requests', () => this.#gate.waiting);
  }

  override getName(options: RequestOptions): string {
    return nameOf(options);
  }

  /** node:http calls this for each request. */
  addRequest(request: ClientRequest, options: RequestOptions): void {
    if (this.#isClosed) return failRequest(request, closedError());
    endAfterUnreadBody(request);
    const { timeout } = options;
    // The request's own. Node leaves it out if it equals the idle time.
    if (timeout !== undefined) request.once('socket', (socket) => socket.setTimeout(timeout));
    this.#gate.enter(nameOf(options), request, () => this.#connections.addRequest(request, options));
  }

  override createConnection(options: RequestOptions): Duplex {
    if (this.#isClosed) throw closedError();
    return this.#connections.createConnection(options);
  }

  /** New calls use this identity, and so do calls that wait for a connection. Calls in flight finish with the old one. */
  use(context: SecureContext): void {
    const before = this.#connections;
    this.#connections = new IdentityConnections(context, this.#settings);
    before.retire();
    this.#retired = [...this.#retired, before].filter(({ isEmpty }) => !isEmpty);
    this.#gate.renew();
  }

  /**
   * Takes no more calls (ERR_AGENT_CLOSED). Idle connections are closed at once; calls in flight get `graceMs`, then
   * are cut. Resolves as soon as no call is left.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    this.#connections.retire();
    if (graceMs > 0) await this.#emptied(graceMs);
    this.#gate.endWaiting(closedError());
    this.destroy();
  }

  /** Closes all connections. Calls that wait for one go on over new ones. */
  override destroy(): void {
    for (const connections of [...this.#retired, this.#connections]) connections.destroy();
  }

  #emptied(graceMs: number): Promise<void> {
    const { clock = systemClock } = this.#settings;
    return new Promise((resolve) => {
      const cancel = clock.schedule(resolve, graceMs);
      this.#gate.whenEmpty(() => {
        cancel();
        resolve();
      });
    });
  }
}
