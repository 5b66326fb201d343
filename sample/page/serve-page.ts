import { type NestExpressApplication } from '@nestjs/platform-express';
import { type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Serves the page at `/`: plain files without a build step. */
export function servePage(app: NestExpressApplication): void {
  app.useStaticAssets(fileURLToPath(new URL('./public', import.meta.url)), {
    setHeaders: (response: ServerResponse) => {
      response.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
      response.setHeader('X-Content-Type-Options', 'nosniff');
      response.setHeader('Referrer-Policy', 'no-referrer');
    },
  });
}
