import { type IncomingHttpHeaders } from 'node:http';
import { Agent, request, type RequestOptions } from 'node:https';
import { type IssuedCertificate } from '../../lib/testing/certificate-authority.js';
import { type ServiceSimulator } from '../../lib/testing/simulator.js';

export interface CallOptions extends RequestOptions {
  body?: string;
  certificate?: IssuedCertificate;
}

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
  /** The parsed body, for assertions. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  json: any;
}

/** One call with node:https on a connection of its own, verified against the simulator's chain. */
export function sendWithoutClient(
  simulator: ServiceSimulator,
  url: string,
  options: CallOptions = {},
): Promise<Reply> {
  const { body, certificate, ...rest } = options;
  const identity = certificate && {
    cert: certificate.certificate,
    key: certificate.privateKey,
    passphrase: certificate.passphrase,
  };
  return new Promise((resolve, reject) => {
    // Without a length, node:http sends the body of a DELETE unframed.
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const headers = { ...length, ...(rest.headers as Record<string, string>) };
    const settings = { agent: false as const, ca: simulator.chain, ...identity, ...rest, headers };
    const outgoing = request(url, settings, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const json = /json/.test(response.headers['content-type'] ?? '') ? parse(text) : undefined;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text, json });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** A call that must not get a whole answer: the error's code. */
export async function failCode(promise: Promise<Reply>): Promise<string> {
  try {
    const reply = await promise;
    return `answered ${reply.status}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
}

/** A token request with valid fields, except for the given ones. undefined leaves a field out. */
export function requestToken(
  simulator: ServiceSimulator,
  fields: Record<string, string | undefined> = {},
  options: CallOptions & { url?: string } = {},
): Promise<Reply> {
  const all = {
    client_id: simulator.clientId,
    client_secret: simulator.clientSecret,
    grant_type: 'client_credentials',
    scope: 'api',
    ...fields,
  };
  const present = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const { url = `${simulator.urls.authUrl}/oauth2/token`, ...rest } = options;
  return sendWithoutClient(simulator, url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(present).toString(),
    ...rest,
  });
}

export function keptAliveAgent(simulator: ServiceSimulator, certificate?: IssuedCertificate): Agent {
  const identity = certificate && { cert: certificate.certificate, key: certificate.privateKey };
  return new Agent({ keepAlive: true, maxSockets: 1, ca: simulator.chain, ...identity });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
