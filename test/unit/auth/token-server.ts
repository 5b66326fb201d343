import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo } from 'node:net';

export interface ServerAnswer {
  status?: number;
  headers?: Record<string, string>;
  /** An object is sent as JSON. */
  body?: unknown;
  /** `drop`: the connection ends without an answer; `trickle`: the body never ends; `silent`: no answer at all. */
  fault?: 'drop' | 'trickle' | 'silent';
}

export interface ArrivedRequest {
  method?: string;
  url?: string;
  headers: IncomingHttpHeaders;
  form: URLSearchParams;
}

/** A token endpoint on loopback that answers as it is told. */
export async function tokenServer(answer: (request: ArrivedRequest, number: number) => ServerAnswer) {
  const arrived: ArrivedRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    let text = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    incoming.on('end', () => {
      const { method, url, headers } = incoming;
      const request = { method, url, headers, form: new URLSearchParams(text) };
      arrived.push(request);
      const { status = 200, headers: sent, body, fault } = answer(request, arrived.length);
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
      // Listening ends first: a connection accepted after the others were ended would never end.
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

export function granted(scope: string | null, accessToken = 'token', expires_in = 600): ServerAnswer {
  return { body: { access_token: accessToken, token_type: 'bearer', expires_in, scope } };
}
