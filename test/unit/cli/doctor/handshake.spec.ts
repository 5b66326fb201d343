import { afterEach, describe, expect, it } from '@jest/globals';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { shakeHands } from '../../../../lib/cli/doctor/handshake.js';

const closes: (() => void)[] = [];
afterEach(() => closes.splice(0).forEach((close) => close()));

/** Answers the first bytes of each connection, and ends it. */
async function answering(bytes: string | Buffer): Promise<number> {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined).once('data', () => socket.end(bytes));
  });
  closes.push(() => server.close());
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return (server.address() as AddressInfo).port;
}

describe('a handshake shows what the other side talks', () => {
  it.each([
    ['http', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['other', '220 mail.example ESMTP\r\n'],
    // A fatal alert: protocol_version.
    ['tls', Buffer.from([21, 3, 3, 0, 2, 2, 70])],
    // The beginning of a ServerHello.
    ['tls', Buffer.from([22, 3, 3, 0, 64, 2])],
    [undefined, ''],
  ])('%s', async (talks, bytes) => {
    const port = await answering(bytes);
    const { established, peerTalks } = await shakeHands({ host: '127.0.0.1', port }, 5_000);
    expect({ established, peerTalks }).toEqual({ established: false, peerTalks: talks });
  });
});
