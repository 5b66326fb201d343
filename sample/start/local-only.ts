import { type NestExpressApplication } from '@nestjs/platform-express';
import { type IncomingMessage, type ServerResponse } from 'node:http';

const LOCAL = ['127.0.0.1', 'localhost', '[::1]'];

/**
 * The routes ask nobody who they are. A website that the same browser has open may send forms to this machine, or give
 * its own name this machine's address (DNS rebinding): neither gets through.
 */
export function acceptLocalOnly(app: NestExpressApplication): void {
  app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
    if (isLocal(request)) return next();
    response.writeHead(403, { 'content-type': 'application/json' });
    response.end('{"statusCode":403,"message":"Only this machine may call the sample, from its own page."}');
  });
}

function isLocal({ headers: { host = '', origin } }: IncomingMessage): boolean {
  const hostname = host.replace(/:\d+$/, '').toLowerCase();
  return LOCAL.includes(hostname) && (origin === undefined || origin === `http://${host}`);
}
