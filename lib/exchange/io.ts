import { type Clock } from '../time/clock.js';
import { type Exchange } from './exchange.types.js';

/** Where log lines go. */
export type Log = Record<'debug' | 'log' | 'warn' | 'error', (message: string) => void>;

/** What a client uses of the world around it. The doubles and the tests of the package bring their own. */
export interface ServiceIo {
  /** Sends one request. Nothing else of a client uses the network, but for the token store of the host. */
  exchange: Exchange;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
  /** What was warned of already, and is not again: shared by the clients of one ServiceClients. */
  warned?: Set<string>;
}

/** Of several clients that share `warned`, the first alone logs it. */
export function warnOnce({ log, warned }: Pick<ServiceIo, 'log' | 'warned'>, text: string): void {
  if (!warned?.has(text)) log.warn(text);
  warned?.add(text);
}

const silently = (): void => undefined;
export const SILENT: Log = { debug: silently, log: silently, warn: silently, error: silently };
