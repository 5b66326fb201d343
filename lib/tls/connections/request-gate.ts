import { AsyncResource } from 'node:async_hooks';
import { type ClientRequest, type RequestOptions } from 'node:http';
import { codedError } from '../../errors/coded-error.js';
import { setImmediate } from '../../time/immediate.js';

/** The part of an agent by which node:http hands it a request, and which the types leave out. */
export interface RequestTaker {
  addRequest(request: ClientRequest, options: RequestOptions): void;
}

interface Waiting {
  request: ClientRequest;
  start: () => void;
}

/** A destination: usually host and port. */
interface Place {
  running: number;
  waiting: Waiting[];
}

/**
 * Limits how many requests run at a time for each place; the others wait, first in, first out. In Node's own queue a request
 * belongs to the agent that it waits in: here it goes to the connections of the time when it starts.
 */
export class RequestGate {
  readonly #maxRunning: () => number;
  #places = new Map<string, Place>();
  /** In all places, those before {@link renew} too. */
  #running = 0;
  #onEmpty?: () => void;

  constructor(maxRunning: () => number) {
    this.#maxRunning = maxRunning;
  }

  /** Calls `start` now or at the request's turn, in the current async context. The request counts until it closes. */
  enter(name: string, request: ClientRequest, start: () => void): void {
    let place = this.#places.get(name);
    if (!place) this.#places.set(name, (place = { running: 0, waiting: [] }));
    const mayRun = place.running < this.#maxRunning();
    if (mayRun && place.waiting.length === 0) return this.#run(place, request, start);
    place.waiting.push({ request, start: inContext(start) });
    // Behind requests whose turn comes soon; or the host has just raised the limit.
    if (mayRun) this.#startSoon(place);
  }

  /** From now on, running requests do not count, and waiting ones may start. */
  renew(): void {
    const places = this.#places;
    this.#places = new Map();
    for (const [name, { waiting }] of places)
      for (const { request, start } of waiting.splice(0)) this.enter(name, request, start);
  }

  /** The waiting requests, by place. */
  get waiting(): Record<string, ClientRequest[]> {
    const places = [...this.#places].filter(([, { waiting }]) => waiting.length > 0);
    return Object.fromEntries(
      places.map(([name, { waiting }]) => [name, waiting.map(({ request }) => request)]),
    );
  }

  endWaiting(error: Error): void {
    for (const { waiting } of this.#places.values())
      for (const { request } of waiting.splice(0)) failRequest(request, error);
    this.#tellIfEmpty();
  }

  /** Calls `tell` once no request runs or waits: now or later. */
  whenEmpty(tell: () => void): void {
    const before = this.#onEmpty;
    this.#onEmpty = () => {
      before?.();
      tell();
    };
    this.#tellIfEmpty();
  }

  #run(place: Place, request: ClientRequest, start: () => void): void {
    place.running += 1;
    this.#running += 1;
    request.once('close', () => this.#onClose(place));
    try {
      start();
    } catch (error) {
      failRequest(request, error as Error);
    }
  }

  #onClose(place: Place): void {
    place.running -= 1;
    this.#running -= 1;
    if (place.waiting.length > 0) this.#startSoon(place);
    else this.#tellIfEmpty();
  }

  /** Node frees a connection right after its request closed. Requests that start in one turn of the event loop go out together. */
  #startSoon(place: Place): void {
    setImmediate(() => this.#startNext(place));
  }

  #startNext(place: Place): void {
    while (place.waiting.length > 0 && place.running < this.#maxRunning()) {
      const { request, start } = place.waiting.shift() as Waiting;
      if (request.destroyed) failRequest(request);
      else this.#run(place, request, start);
    }
    this.#tellIfEmpty();
  }

  #tellIfEmpty(): void {
    if (!this.#onEmpty || this.#running > 0) return;
    if ([...this.#places.values()].some(({ waiting }) => waiting.length > 0)) return;
    this.#onEmpty();
    this.#onEmpty = undefined;
  }
}

/** Ends a request that has no connection, as Node does. A destroyed request has its own error. */
export function failRequest(request: ClientRequest, error?: Error): void {
  (request as unknown as { onSocket(socket: null, error?: Error): void }).onSocket(null, error);
}

export function closedError(): Error {
  return codedError('The client is closed: its agent takes no more calls.', 'ERR_AGENT_CLOSED');
}

/** Returns a function that runs it in the current async context. `AsyncResource.bind` costs 50 us on Node 20. */
function inContext(run: () => void): () => void {
  const context = new AsyncResource('nestjs-service');
  return () => context.runInAsyncScope(run);
}
