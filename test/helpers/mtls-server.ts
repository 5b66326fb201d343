import { once } from 'node:events';
import { type Agent, type IncomingMessage, type RequestOptions, type ServerResponse } from 'node:http';
import * as https from 'node:https';
import { type AddressInfo, type Socket } from 'node:net';
import { type PeerCertificate, type TLSSocket } from 'node:tls';
import { type Authority } from './certificates.js';

export interface MtlsServer {
  port: number;
  url: string;
  /** Subjects in the order of their calls. */
  subjects: string[];
  handshakes: number;
  resumed: number;
  sockets: Set<Socket>;
  close(): Promise<void>;
}

export interface MtlsServerOptions extends https.ServerOptions {
  /** Default: true. */
  demandCertificate?: boolean;
  /** Default: one that the system gives. */
  port?: number;
  onRequest?: (request: IncomingMessage, response: ServerResponse) => void;
}

/** A real server that asks for client certificates of the authority. */
export async function mtlsServer(authority: Authority, options: MtlsServerOptions = {}): Promise<MtlsServer> {
  const {
    demandCertificate = true,
    port = 0,
    onRequest = (_request, response) => response.end('{}'),
    ...rest
  } = options;
  const server = https.createServer({
    cert: authority.serverChain,
    key: authority.server.key,
    ca: authority.chain,
    requestCert: demandCertificate,
    rejectUnauthorized: demandCertificate,
    ...rest,
  });
  const seen: MtlsServer = {
    port: 0,
    url: '',
    subjects: [],
    handshakes: 0,
    resumed: 0,
    sockets: new Set(),
    close: async () => {
      seen.sockets.forEach((socket) => socket.destroy());
      server.close();
      await once(server, 'close');
    },
  };
  server.on('connection', (socket: Socket) => {
    seen.sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => seen.sockets.delete(socket));
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    seen.handshakes++;
    if (socket.isSessionReused()) seen.resumed++;
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const peer = (request.socket as TLSSocket).getPeerCertificate() as Partial<PeerCertificate> | null;
    seen.subjects.push(String(peer?.subject?.CN ?? ''));
    onRequest(request, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  seen.port = (server.address() as AddressInfo).port;
  seen.url = `https://127.0.0.1:${seen.port}`;
  return seen;
}

export interface MtlsResponse {
  status: number;
  body: string;
  reused: boolean;
}

/** One call through an agent, with node:https. */
export function sendRequest(
  url: string,
  agent: Agent,
  options: RequestOptions & Record<string, unknown> = {},
): Promise<MtlsResponse> {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { agent, ...options }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body, reused: request.reusedSocket }),
      );
    });
    request.on('error', reject).end();
  });
}
