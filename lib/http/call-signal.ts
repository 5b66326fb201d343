import { type InternalAxiosRequestConfig } from 'axios';
import { ServiceConnectionError } from '../errors/index.js';
import { allowListeners } from '../exchange/call-limits.js';

/** What ends one call early. */
export interface CallSignal {
  signal?: AbortSignal;
  /** Takes our listener off the caller's cancel token. */
  release?: () => void;
}

/** Joins the caller's AbortSignal and axios's older cancel token, with which HttpService's Observables unsubscribe. */
export function callSignal({ signal, cancelToken }: InternalAxiosRequestConfig): CallSignal {
  const given = signal as AbortSignal | undefined;
  allowListeners(given);
  if (!cancelToken?.subscribe) return { signal: given };
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(new ServiceConnectionError({ kind: 'closed', message: 'The call was cancelled.' }));
  };
  cancelToken.subscribe(abort);
  return {
    signal: given ? AbortSignal.any([given, controller.signal]) : controller.signal,
    release: () => cancelToken.unsubscribe?.(abort),
  };
}
