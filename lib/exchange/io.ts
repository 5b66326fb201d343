import { type Clock } from '../time/clock.js';
import { type Exchange } from './exchange.types.js';

/** Where log lines go. */
export type Log = Record<'debug' | 'log' | 'warn' | 'error', (message: string) => void>;

/** What a client uses of the outside world. The test doubles and the specs of this package replace it. */
export interface ServiceIo {
  /** Sends one request. Apart from the token store of the host application, a client uses the network only through this function. */
  exchange: Exchange;
  clock: Clock;
  /** Returns a number from 0 (inclusive) to 1 (exclusive), as Math.random() does. */
  random: () => number;
  log: Log;
}

const ignore = (): void => undefined;
export const SILENT: Log = { debug: ignore, log: ignore, warn: ignore, error: ignore };
