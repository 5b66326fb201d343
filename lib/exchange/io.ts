import { type Clock } from '../config/clock.js';
import { type Exchange } from './exchange.types.js';

/** Where log lines go. None of them contains a key, a token or PEM text. Must not throw. */
export interface ServiceLog {
  debug(message: string): void;
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What a client uses of the world around it. The doubles and the tests of the package bring their own. */
export interface ServiceIo {
  /** Sends one request. Nothing else of a client uses the network, but for the token store of the host. */
  exchange: Exchange;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: ServiceLog;
}

const silently = (): void => undefined;
export const SILENT: ServiceLog = { debug: silently, log: silently, warn: silently, error: silently };
