import { checkSignal, checkTimeout } from '../exchange/call-limits.js';
import { type WaitOptions } from './cache/waiting-callers.js';

/** How long a caller waits for a token. */
export interface TokenOptions {
  /** The caller's own: only that caller is rejected, with its reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds, at most a day. Default (also for 0): `http.timeout`. */
  timeout?: number | undefined;
  /** The same by its older name; `timeout` counts where both are set. */
  timeoutMs?: number | undefined;
}

/** @throws ServiceRequestError for a time limit or signal that is none */
export function checkedWait({ signal, timeout, timeoutMs }: TokenOptions = {}): WaitOptions {
  checkSignal(signal);
  return { signal, timeoutMs: checkTimeout(timeout) ?? checkTimeout(timeoutMs, 'timeoutMs') };
}
