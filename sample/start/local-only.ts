import { type NestExpressApplication } from '@nestjs/platform-express';
import { type IncomingMessage, type ServerResponse } from 'node:http';

const LOCAL = ['127.0.0.1', 'localhost', '[::1]'];
const OF_PROXY = /^(?:forwarded|via|x-forwarded-.+|x-real-ip)$/;
const REFUSAL =
  'Only this machine may call the sample, from its own page and not through a proxy. A POST needs the Origin of the page.';

/**
 * The routes ask nobody who they are. A website that the same browser has open may send forms to this machine, or give
 * its own name this machine's address (DNS rebinding), and a proxy may pass on what comes from elsewhere: none of them
 * gets through. No other page may frame one of these.
 */
export function acceptLocalOnly(app: NestExpressApplication): void {
  app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
    response.setHeader('Content-Security-Policy', "frame-ancestors 'none'");
    response.setHeader('X-Frame-Options', 'DENY');
    if (isLocal(request)) return next();
    response.writeHead(403, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ statusCode: 403, message: REFUSAL }));
  });
}

function isLocal({ method = '', headers }: IncomingMessage): boolean {
  const { host = '', origin } = headers;
  const hostname = host.replace(/:\d+$/, '').toLowerCase();
  if (!LOCAL.includes(hostname) || Object.keys(headers).some((name) => OF_PROXY.test(name))) return false;
  // Browsers send no Origin with a page that they only load.
  const mayLackOrigin = origin === undefined && ['GET', 'HEAD'].includes(method);
  return mayLackOrigin || origin === `http://${host}`;
}
