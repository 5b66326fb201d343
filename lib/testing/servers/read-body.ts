import { type IncomingMessage } from 'node:http';

const LIMIT = 1024 * 1024;

export interface RequestBody {
  /** Empty where the body was over 1 MiB. */
  text: string;
  tooLarge: boolean;
}

/** The whole body; undefined where the client left before its end. */
export async function readBody(request: IncomingMessage): Promise<RequestBody | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      // Read on all the same: a client that still writes would see a reset in place of the answer.
      if (size <= LIMIT) chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  const tooLarge = size > LIMIT;
  return { text: tooLarge ? '' : Buffer.concat(chunks).toString(), tooLarge };
}
