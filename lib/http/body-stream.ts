import { Readable } from 'node:stream';

/** A stream may fail while its call still waits for a token; without a listener that would end the host's process. */
export function guardBody(data: unknown): void {
  if (data instanceof Readable) data.on('error', () => undefined);
}

/** Closes the stream of a call that is not sent. */
export function discardBody(data: unknown): void {
  if (data instanceof Readable) data.destroy();
}
