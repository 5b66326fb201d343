import { isAxiosError, isCancel } from 'axios';
import { cleanText, ServiceConnectionError, ServiceError, ServiceRequestError } from '../errors/index.js';

interface AxiosLike {
  code?: unknown;
  message?: unknown;
  config?: { signal?: { aborted?: boolean; reason?: unknown } };
}

/**
 * The response interceptor that sees a failure first: whatever axios made of it, nothing of axios goes on to the
 * caller, as its errors carry the request with its headers and keys.
 */
export function cleanErrors(error: unknown): never {
  if (error instanceof ServiceError) throw error;
  if (isCancel(error)) {
    const { config } = error as AxiosLike;
    if (config?.signal?.aborted) throw config.signal.reason as Error;
    throw new ServiceConnectionError({ kind: 'closed', message: 'The call was cancelled.' });
  }
  if (isAxiosError(error) && (error.request !== undefined || error.response !== undefined)) {
    const message = 'The call failed below the adapter of this module; what became of it is not known.';
    throw new ServiceConnectionError({ kind: 'network', message, outcomeUnknown: true });
  }
  if (isAxiosError(error)) {
    const { code, message } = error as AxiosLike;
    throw new ServiceRequestError([
      {
        property: 'call',
        message: cleanText(`could not be built (${String(code)}: ${String(message)})`, [], 200),
      },
    ]);
  }
  throw error;
}
