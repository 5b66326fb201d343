import { Agent, type ClientRequest, type ClientRequestArgs } from 'node:http';
import { type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { systemClock } from '../../time/clock.js';
import { connectInTurn } from './addresses.js';
import {
  endAfterUnreadBody,
  IDLE_TIMEOUT_MS,
  IdleConnections,
  type PoolSettings,
} from './idle-connections.js';
import { closedError, RequestGate, type RequestTaker } from './request-gate.js';

const nodeAgent = Agent.prototype as unknown as RequestTaker;

/** For plain http, on loopback. */
export class PlainAgent extends Agent {
  readonly #gate = new RequestGate(() => this.maxSockets);
  readonly #idle: IdleConnections;
  readonly #connectTimeoutMs?: number;

  constructor(settings: PoolSettings) {
    const { maxSockets, idleTimeoutMs = IDLE_TIMEOUT_MS, connectTimeoutMs, clock = systemClock } = settings;
    super({ keepAlive: true, maxSockets, timeout: idleTimeoutMs });
    this.#idle = new IdleConnections(clock);
    this.#connectTimeoutMs = connectTimeoutMs;
  }

  /** node:http calls this for each request. */
  addRequest(request: ClientRequest, options: ClientRequestArgs): void {
    endAfterUnreadBody(request);
    this.#gate.enter(this.getName(options), request, () => {
      this.#idle.dropOverdue();
      nodeAgent.addRequest.call(this, request, options);
    });
  }

  override createConnection(options: ClientRequestArgs & { connectTimeoutMs?: number }): Duplex {
    const { connectTimeoutMs = this.#connectTimeoutMs } = options;
    const connect = (given: ClientRequestArgs) => super.createConnection(given) as Socket;
    const socket = connectInTurn(connect, options, connectTimeoutMs);
    this.#idle.watch(socket);
    return socket;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const isKept = super.keepSocketAlive(socket) as unknown as boolean;
    if (isKept) this.#idle.add(socket);
    return isKept;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    this.#idle.take(socket);
  }

  /** Ends all connections and calls, those that wait too. */
  close(): void {
    this.#gate.endWaiting(closedError());
    this.destroy();
  }
}
