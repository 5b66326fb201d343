import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo } from 'node:net';

export interface CannedResponse {
  status?: number;
  headers?: Record<string, string>;
  /** An object is sent as JSON. */
  body?: unknown;
  /** `drop`: closes the connection without a response. `trickle`: the body never ends. `silent`: sends no response. */
  fault?: 'drop' | 'trickle' | 'silent';
}

export interface ArrivedRequest {
  method?: string;
  url?: string;
  headers: IncomingHttpHeaders;
  form: URLSearchParams;
}

/** Starts a token endpoint on loopback that sends the responses which `respond` returns. */
export async function tokenServer(respond: (request: ArrivedRequest, number: number) => CannedResponse) {
  const arrived: ArrivedRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    let text = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    incoming.on('end', () => {
      const { method, url, headers } = incoming;
      const request = { method, url, headers, form: new URLSearchParams(text) };
      arrived.push(request);
      const { status = 200, headers: sent, body, fault } = respond(request, arrived.length);
      if (fault === 'silent') return;
      if (fault === 'drop') return void incoming.socket.destroy();
      outgoing.writeHead(status, { 'content-type': 'application/json', ...sent });
      if (fault === 'trickle') return void outgoing.write('{"access');
      outgoing.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    arrived,
    url: `http://127.0.0.1:${port}/oauth2/token`,
    close: async () => {
      // Stop listening first: a connection that is accepted after closeAllConnections() would stay open.
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

export function granted(scope: string | null, accessToken = 'token', expires_in = 600): CannedResponse {
  return { body: { access_token: accessToken, token_type: 'bearer', expires_in, scope } };
}
