import { expect, it } from '@jest/globals';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rawServer } from '../../helpers/loopback.js';
import { startProcess } from '../../helpers/sample-process.js';
import { REGISTER } from '../../helpers/source-process.js';

const ROOT = join(import.meta.dirname, '../../..');
const BYTES = 1_000_000;

const program = (url: string): string => `
  import { Agent } from 'node:http';
  const { exchange } = await import(${JSON.stringify(pathToFileURL(join(ROOT, 'lib/exchange/exchange.ts')).href)});
  const { body } = await exchange({
    url: new URL('${url}'),
    method: 'GET',
    headers: {},
    agent: new Agent(),
    timeoutMs: 600_000,
    maxResponseBytes: ${BYTES},
  });
  const [first] = body;
  console.log(body.length, body.every((byte) => byte === first));`;

it('a body in chunks of one byte takes no more memory than any other', async () => {
  const server = await rawServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      socket.end(`${'1\r\nx\r\n'.repeat(BYTES)}0\r\n\r\n`);
    });
  });
  // A Buffer for each byte would take 200 MB.
  const node = [process.execPath, '--no-warnings', '--max-old-space-size=64', '--import', REGISTER];
  const child = startProcess([...node, '--input-type=module', '--eval', program(server.url)], { cwd: ROOT });
  try {
    const { code } = await child.exited;
    expect([code, child.output().trim()]).toEqual([0, `${BYTES} true`]);
  } finally {
    await child.kill();
    await server.close();
  }
});
