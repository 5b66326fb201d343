import { Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import { type Socket } from 'node:net';
import { type Duplex } from 'node:stream';
// Those of Node: fake timers of a host's tests would never let a connection go.
import { setImmediate } from 'node:timers';
import {
  failRequest,
  inContext,
  endDestroyed,
  nodeAgent,
  type AgentRequestOptions,
  type SocketCallback,
} from './node-agent.js';

/** What Node keeps on a socket and its types leave out. */
type UsedSocket = Socket & {
  /** Reads the answer of the request that the socket has; absent where it has none. */
  parser?: object | null;
  _httpMessage?: ClientRequest & { res?: IncomingMessage };
};

type OnFree = (this: Agent, socket: UsedSocket, options: AgentRequestOptions) => void;

/**
 * Lets an agent use a connection again only where no leftover can become the next call's answer (RFC 9112, 6.3): not after
 * HEAD, which some servers answer with a body, and not where bytes came that no request waited for. What comes after a
 * request was written cannot be told from its answer; so a connection is let go only after the event loop has read once
 * more what was there already.
 */
export class CleanReuse {
  /** Connections that brought something before their first request was written. */
  readonly #early = new WeakSet<Socket>();
  /** What waits for the connection that was the last to become free: those before it are free by then too. */
  #waiting?: (() => void)[];

  constructor(agent: Agent) {
    const [onFree] = agent.listeners('free') as OnFree[];
    agent.removeAllListeners('free');
    agent.on('free', (socket: UsedSocket, options: AgentRequestOptions) => {
      if (this.#early.has(socket) || mayHaveUnreadBody(socket._httpMessage)) drop(socket);
      // Node listens to errors again once the socket is idle.
      socket.on('error', ignore);
      const waiting: (() => void)[] = [];
      this.#waiting = waiting;
      afterReading(() => {
        if (this.#waiting === waiting) this.#waiting = undefined;
        socket.off('error', ignore);
        onFree.call(agent, socket, options);
        for (const place of waiting) place();
      });
    });
  }

  /** For an agent's createSocket: sees what comes on its sockets. */
  watched(callback: SocketCallback): SocketCallback {
    return (error, socket) => {
      if (socket) this.#watch(socket as UsedSocket);
      callback(error, socket);
    };
  }

  /** Calls `place` at once; where connections are about to be free, after that, so that no other is opened. */
  whenSettled(request: ClientRequest, place: () => void): void {
    if (!this.#waiting) return place();
    const placeOrFail = (): void => (request.destroyed ? failRequest(request) : place());
    // In the caller's async context, not in that of the call before.
    this.#waiting.push(inContext(placeOrFail));
  }

  #watch(socket: UsedSocket): void {
    socket.on('data', () => {
      if (!socket.parser) drop(socket);
    });
    // TLS brings it together with the end of the handshake, before our request is on its way.
    socket.once('secureConnect', () =>
      setImmediate(() => {
        if (socket.bytesRead > 0) this.#early.add(socket);
      }),
    );
  }
}

/** Closes it, and takes it out of the agent at once: it would be there until it is closed. */
export function drop(socket: Duplex): void {
  socket.destroy();
  socket.emit('agentRemove');
}

/** For plain http. */
export class PlainAgent extends Agent {
  readonly #reuse = new CleanReuse(this);

  /** @param maxSockets connections to one origin */
  constructor({ maxSockets }: { maxSockets: number }) {
    super({ keepAlive: true, scheduling: 'lifo', maxSockets });
  }

  addRequest(request: ClientRequest, options: AgentRequestOptions): void {
    this.#reuse.whenSettled(request, () => nodeAgent.addRequest.call(this, request, options));
  }

  createSocket(request: ClientRequest, options: AgentRequestOptions, callback: SocketCallback): void {
    nodeAgent.createSocket.call(this, request, options, this.#reuse.watched(callback));
  }

  removeSocket(socket: Duplex, options: AgentRequestOptions): void {
    endDestroyed(this);
    nodeAgent.removeSocket.call(this, socket, options);
  }
}

/** Answers without a body by their method or status, where the server may send one all the same. */
function mayHaveUnreadBody({ method, res }: Partial<NonNullable<UsedSocket['_httpMessage']>> = {}): boolean {
  if (method === 'HEAD') return true;
  return (res?.statusCode === 204 || res?.statusCode === 304) && Number(res.headers['content-length']) > 0;
}

/** The first comes right after what is read now, the second after the event loop has read again. */
function afterReading(run: () => void): void {
  setImmediate(() => setImmediate(run));
}

function ignore(): void {
  // The socket is destroyed, and so not used again.
}
