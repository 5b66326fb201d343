import { type ServerResponse } from 'node:http';
import { type RecordedRequest } from '../request-log.js';

/** A response of a server. `json` is sent as JSON, `body` unchanged. */
export interface SimulatedAnswer {
  status: number;
  headers?: Record<string, string>;
  json?: unknown;
  body?: string | Uint8Array;
}

/** Makes an error response in the form of docs/service.md#errors. */
export function failure(
  status: number,
  name: string,
  message: string,
  headers?: Record<string, string>,
): SimulatedAnswer {
  const json = { timestamp: new Date().toISOString(), status: name, message, metadata: null };
  return { status, json, headers };
}

/** Makes the HTML page with which nginx refuses a client certificate. */
export function nginxRefusal(reason: string): SimulatedAnswer {
  const body = [
    `<html>\r\n<head><title>400 ${reason}</title></head>`,
    `<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n<center>${reason}</center>`,
    '<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n',
  ].join('\r\n');
  return { status: 400, headers: { 'content-type': 'text/html' }, body };
}

/** Sends the response, and records its status. */
export function sendAnswer(response: ServerResponse, record: RecordedRequest, answer: SimulatedAnswer): void {
  if (response.destroyed) return;
  record.status = answer.status;
  const hasJson = answer.json !== undefined;
  const content = hasJson ? JSON.stringify(answer.json) : (answer.body ?? '');
  const body = typeof content === 'string' ? Buffer.from(content) : content;
  const empty = answer.status === 204 || answer.status === 304;
  response.writeHead(answer.status, {
    ...(hasJson ? { 'content-type': 'application/json; charset=utf-8' } : {}),
    ...(empty ? {} : { 'content-length': body.length }),
    ...answer.headers,
  });
  response.end(empty ? undefined : body);
}

/** Waits, but not longer than the connection is open. */
export function waitUnlessClosed(response: ServerResponse, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      response.off('close', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    response.once('close', done);
  });
}
