import { type NestExpressApplication } from '@nestjs/platform-express';
import { type IncomingMessage, type ServerResponse } from 'node:http';

const LOCAL = ['127.0.0.1', 'localhost', '[::1]'];
const OF_PROXY = /^(?:forwarded|via|x-forwarded-.+|x-real-ip)$/;
const REFUSAL =
  'The sample accepts requests of this machine only, from its own page and not through a proxy. A POST needs an Origin header with the address of the page.';

/**
 * The routes have no authentication, so requests that do not come from this machine and its own page are refused:
 *
 * - A website that is open in the same browser may send forms to this machine (CSRF), or let its own host name resolve to
 *   this machine (DNS rebinding).
 * - A proxy on this machine may forward requests from elsewhere.
 * - Another page may show this page in a frame (clickjacking).
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
  // Browsers send no Origin header when they load a page.
  const mayLackOrigin = origin === undefined && ['GET', 'HEAD'].includes(method);
  return mayLackOrigin || origin === `http://${host}`;
}
