import { setMaxListeners } from 'node:events';

/**
 * One signal may be shared by any number of calls, each of which listens to it for as long as it runs; without this
 * Node warns of a leak from the eleventh on.
 */
export function allowListeners(signal: AbortSignal | undefined): void {
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
}
