import { type Clock } from '../time/clock.js';
import { type Exchange } from './exchange.types.js';

/** Takes log lines. */
export type Log = Record<'debug' | 'log' | 'warn' | 'error', (message: string) => void>;

/** The outside world of a client. The doubles and the tests of the package replace it. */
export interface ServiceIo {
  /** Sends one request. Apart from the host's token store, a client uses the network only by this. */
  exchange: Exchange;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
}

const ignore = (): void => undefined;
export const SILENT: Log = { debug: ignore, log: ignore, warn: ignore, error: ignore };
