// A program that keeps errors as a queue does, and prints what is reachable from them in a snapshot of the heap.
import { Logger } from '@nestjs/common';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { getHeapSnapshot } from 'node:v8';
import { createServiceClient } from 'nestjs-service';

const COUNT = 10;
/** Made at run time, so that no source in the heap contains it. */
const planted = (what: string): string => ['planted', what].join('-');
const [APP_TOKEN, BEARER, SECRET] = ['app-token', 'bearer', 'secret'].map(planted);
const [BODY, PAGE] = ['body', 'page'].map(planted);

/** The errors of one path. A class, by whose name the walk finds them. */
class KeptErrors {
  readonly all: Error[] = [];
}

const errorsOf = (bytes: number): object[] =>
  Array.from({ length: bytes / 100 }, (_, index) => ({ index, text: 'e'.padEnd(72, '.') }));

/** The responses by path. The connection of any other path is reset. */
const RESPONSES: Record<string, [status: number, body: unknown]> = {
  '/oauth2/token': [200, { access_token: BEARER, token_type: 'bearer', expires_in: 3_600 }],
  '/page': [502, `<html>${PAGE}${'x'.repeat(3_000_000)}`],
  '/small': [422, { status: 'NOT_VALID', message: 'wrong', errors: errorsOf(1_000) }],
  '/large': [422, { message: 'wrong', errors: errorsOf(63_000) }],
  '/wide': [422, { message: '\u0627'.repeat(31_000), icon: '\u{1f600}' }],
  '/echo': [403, { status: 'NO', message: 'no', detail: `of ${BEARER}` }],
  '/html': [200, `<html>${PAGE}${'x'.repeat(500_000)}`],
  '/parse': [200, errorsOf(50_000)],
};

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const [status, body] = RESPONSES[request.url ?? ''] ?? [];
    if (status === undefined) return void request.socket.destroy();
    const isPage = typeof body === 'string';
    response.writeHead(status, { 'content-type': isPage ? 'text/html' : 'application/json' });
    response.end(isPage ? body : JSON.stringify(body));
  });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function collectErrors(path: string): Promise<KeptErrors> {
  const kept = new KeptErrors();
  const { http, close } = await createServiceClient({
    environment: 'sandbox',
    authentication: 'oauth',
    urls: { sandboxUrl: origin, sandboxAuthUrl: origin },
    oauth: { clientId: 'a0a0a0a0-0000-4000-8000-000000000000', clientSecret: SECRET },
    appToken: APP_TOKEN,
    http: { retries: 0 },
  });
  const parse = (): never => {
    throw new Error('not so');
  };
  for (let count = 0; count < COUNT; count += 1) {
    const data = { pad: `${BODY}${count}`.padEnd(1_000_000, '.') };
    const options = path === '/parse' ? { parse } : {};
    await http.post(path, data, options).catch((error: Error) => kept.all.push(error));
  }
  await close();
  return kept;
}

interface Snapshot {
  snapshot: {
    meta: {
      node_fields: string[];
      node_types: [string[]];
      edge_fields: string[];
      edge_types: [string[]];
    };
  };
  nodes: number[];
  edges: number[];
  strings: string[];
}

/** Edges that lead to code and to classes, which are there without any error. */
const OF_CODE = new Set([
  ...['map', '__proto__', 'prototype', 'constructor', 'shared', 'code', 'feedback_cell'],
  ...['scope_info', 'previous', 'native_context'],
]);

/** Walks from each instance of KeptErrors. Yields the type and name of what it reaches, and the bytes of all of it. */
function* walkAll({ snapshot, nodes, edges, strings }: Snapshot) {
  const { node_fields, node_types, edge_fields, edge_types } = snapshot.meta;
  const [nodeSize, edgeSize] = [node_fields.length, edge_fields.length];
  const field = (node: number, name: string): number => nodes[node + node_fields.indexOf(name)];
  const typeOf = (node: number): string => node_types[0][field(node, 'type')];
  const firstEdges: number[] = [];
  let edgeCount = 0;
  for (let node = 0; node < nodes.length; node += nodeSize) {
    firstEdges.push(edgeCount);
    edgeCount += field(node, 'edge_count') * edgeSize;
  }
  for (let root = 0; root < nodes.length; root += nodeSize) {
    if (typeOf(root) !== 'object' || strings[field(root, 'name')] !== KeptErrors.name) continue;
    const names = new Set<string>();
    let bytes = 0;
    const seen = new Set([root]);
    for (const node of seen) {
      bytes += field(node, 'self_size');
      names.add(`${typeOf(node)} ${strings[field(node, 'name')].slice(0, 80)}`);
      const first = firstEdges[node / nodeSize];
      const end = first + field(node, 'edge_count') * edgeSize;
      for (let edge = first; edge < end; edge += edgeSize) {
        const kind = edge_types[0][edges[edge]];
        const isNamed = kind !== 'element' && kind !== 'hidden';
        const isCode = isNamed && OF_CODE.has(strings[edges[edge + 1]]);
        if (kind !== 'weak' && !isCode) seen.add(edges[edge + 2]);
      }
    }
    yield { bytes, names };
  }
}

async function takeSnapshot(): Promise<Snapshot> {
  let text = '';
  for await (const chunk of getHeapSnapshot().setEncoding('utf8')) text += chunk as string;
  return JSON.parse(text) as Snapshot;
}

Logger.overrideLogger(false);
const paths = ['/page', '/small', '/large', '/wide', '/echo', '/html', '/parse', '/reset'];
const all: KeptErrors[] = [];
for (const path of paths) all.push(await collectErrors(path));
server.close();
const FORBIDDEN =
  /planted|^object (Call|CallResponse|Uint8Array|Buffer|ArrayBuffer|IncomingMessage|Socket|Secret)$/;
const reached = [...walkAll(await takeSnapshot())];
// `all` is in use until here.
const walked = {
  counts: all.map((kept) => kept.all.length),
  kilobytes: reached.map(({ bytes }) => Math.ceil(bytes / COUNT / 1_000)),
  forbidden: reached.flatMap(({ names }) => [...names].filter((name) => FORBIDDEN.test(name))),
};
console.log(JSON.stringify(walked));
