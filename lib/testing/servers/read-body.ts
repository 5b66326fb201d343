import { type IncomingMessage } from 'node:http';

const LIMIT = 1024 * 1024;

interface RequestBody {
  /** Empty where the body was over 1 MiB. */
  text: string;
  tooLarge: boolean;
}

/** The whole body; undefined if the client closed the connection before its end. */
export async function readBody(request: IncomingMessage): Promise<RequestBody | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      // A body that is too large is read to its end too: otherwise the client would see a reset, not the answer.
      if (size <= LIMIT) chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  const tooLarge = size > LIMIT;
  return { text: tooLarge ? '' : Buffer.concat(chunks).toString(), tooLarge };
}
