import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** For an application that has said that it is started: Nest says so just before it listens. */
export async function untilListening(port) {
  const start = performance.now();
  while (!(await isListening(port))) {
    assert.ok(performance.now() - start < 10_000, `nothing listens on ${port}`);
    await setTimeout(20);
  }
}

function isListening(port) {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).finally(() => socket.destroy());
}
