import { AsyncResource } from 'node:async_hooks';
import { type Agent as HttpAgent, type ClientRequest, type ClientRequestArgs } from 'node:http';
import { Agent } from 'node:https';
import { type Duplex } from 'node:stream';
import { type SecureContext } from 'node:tls';
import { codedError } from '../../config/coded-error.js';

/** An identity, and how many the agent had before it. */
export interface NumberedIdentity {
  context: SecureContext;
  generation: number;
}

/** The options that an agent's methods receive: the request's, merged with the agent's. */
export interface AgentRequestOptions extends ClientRequestArgs {
  servername?: string;
  socketPath?: string;
  /** The one whose connection it is. */
  identity?: NumberedIdentity;
}

export type SocketCallback = (error: Error | null, socket?: Duplex) => void;

/** The part of an agent that ClientRequest and other agents rely on and that its types leave out. */
export interface AgentInternals {
  addRequest(request: ClientRequest, options: AgentRequestOptions): void;
  createSocket(request: ClientRequest, options: AgentRequestOptions, callback: SocketCallback): void;
  removeSocket(socket: Duplex, options: AgentRequestOptions): void;
  keepSocketAlive(socket: Duplex): boolean;
}

/** Node's own implementation, to be called with an agent as `this`. */
export const nodeAgent = Agent.prototype as unknown as AgentInternals;

/** Runs it later in the async context of now. `AsyncResource.bind` costs a call 50 us on Node 20. */
export function inContext(run: () => void): () => void {
  const context = new AsyncResource('nestjs-service');
  return () => context.runInAsyncScope(run);
}

/** Rejects a request that has no socket, as Node does. One that was destroyed needs no error: it has its own. */
export function failRequest(request: ClientRequest, error?: Error): void {
  (request as unknown as { onSocket(socket: null, error?: Error): void }).onSocket(null, error);
}

export function closedError(): Error {
  return codedError('The client is closed: its agent takes no more calls.', 'ERR_AGENT_CLOSED');
}

/** Ends requests of the queue that were destroyed: when a connection ends, Node would open one for each of them. */
export function endDestroyed(agent: Agent | HttpAgent): void {
  const queues = agent.requests as Record<string, ClientRequest[] | undefined>;
  for (const [name, queue = []] of Object.entries(queues)) {
    const waiting = queue.filter(({ destroyed }) => !destroyed);
    if (waiting.length === queue.length) continue;
    if (waiting.length > 0) queues[name] = waiting;
    else delete queues[name];
    for (const request of queue) if (request.destroyed) failRequest(request);
  }
}

/** Removes the requests that wait for a connection. Node would open one for them as soon as another one ends. */
export function takeQueue(agent: Agent | HttpAgent): ClientRequest[] {
  const queues = agent.requests as Record<string, ClientRequest[] | undefined>;
  const waiting = Object.values(queues).flatMap((queue) => queue ?? []);
  for (const name of Object.keys(queues)) delete queues[name];
  return waiting;
}
