import { type Exchange } from './exchange.types.js';
import { noHeaders } from './no-headers.js';

/** The same exchange with a User-Agent (RFC 9110, 10.1.5): firewalls refuse requests without one. A request's own wins. */
export function withUserAgent(exchange: Exchange, userAgent: string): Exchange {
  return (request) => {
    const headers = noHeaders<typeof request.headers>();
    headers['user-agent'] = userAgent;
    return exchange({ ...request, headers: Object.assign(headers, request.headers) });
  };
}
