import { describe, expect, it } from '@jest/globals';
import { Secret } from '../../../lib/config/secret.js';
import { type NodeRedisClient } from '../../../lib/redis/redis-client.js';
import { RedisTokenStore } from '../../../lib/redis/redis-token-store.js';
import { type OwnClient, UrlConnection } from '../../../lib/redis/url-connection.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';

/** A client of a server that answers as `reply` says. */
class FakeClient {
  isDestroyed = false;
  fail: () => void = () => undefined;
  #drop: (error: Error) => void = () => undefined;

  constructor(
    readonly connect: () => Promise<unknown>,
    readonly reply: () => Promise<unknown>,
  ) {}

  on(_event: string, listener: () => void): void {
    this.fail = listener;
  }

  getRange(): Promise<unknown> {
    const dropped = new Promise((_resolve, reject) => (this.#drop = reject));
    return Promise.race([this.reply(), dropped]);
  }

  unref(): void {}

  destroy(): void {
    this.isDestroyed = true;
    this.#drop(new Error('Dropped'));
  }
}

function setUp(connect = async (): Promise<unknown> => undefined) {
  const clock = new FakeClock();
  const clients: FakeClient[] = [];
  const options: object[] = [];
  const server = { connect, reply: async (): Promise<unknown> => 'PONG' };
  const createClient = (given: object): OwnClient => {
    options.push(given);
    const client = new FakeClient(
      () => server.connect(),
      () => server.reply(),
    );
    clients.push(client);
    return client as unknown as OwnClient;
  };
  const connection = new UrlConnection(new Secret('redis://host'), clock, async () => ({ createClient }));
  const ask = (): Promise<unknown> => connection.run((client) => client.getRange('key', 0, 1));
  return { clock, clients, options, server, connection, ask };
}

const refused = (): Promise<unknown> => Promise.reject(new Error('ECONNREFUSED'));
const silent = (): Promise<unknown> => new Promise(() => undefined);

describe('the connection of a store to its url', () => {
  it('verifies the certificate, keeps no command for later, and leaves reconnecting to us', async () => {
    const { options, ask } = setUp();
    expect(await ask()).toBe('PONG');
    expect(options).toEqual([
      {
        url: 'redis://host',
        RESP: 2,
        disableOfflineQueue: true,
        socket: { connectTimeout: 5_000, reconnectStrategy: false, rejectUnauthorized: true },
      },
    ]);
  });

  it('is one for all commands, also for those that come while it connects', async () => {
    const { clients, ask } = setUp();
    expect(await Promise.all([ask(), ask()])).toEqual(['PONG', 'PONG']);
    expect(await ask()).toBe('PONG');
    expect(clients).toHaveLength(1);
  });

  it('where it fails, says why, plans nothing, and the next command tries again', async () => {
    const { clock, clients, server, ask } = setUp(refused);
    await Promise.all([1, 2].map(() => expect(ask()).rejects.toThrow('ECONNREFUSED')));
    expect(clients).toHaveLength(1);
    expect(clients[0].isDestroyed).toBe(true);
    expect(clock.timers).toBe(0);
    server.connect = async () => undefined;
    expect(await ask()).toBe('PONG');
    expect(clients).toHaveLength(2);
  });

  it('ends one that was lost', async () => {
    const { clients, server, ask } = setUp();
    await ask();
    server.reply = silent;
    const waiting = expect(ask()).rejects.toThrow('Dropped');
    await settle();
    clients[0].fail();
    await waiting;
    expect(clients[0].isDestroyed).toBe(true);
    server.reply = async () => 'PONG';
    expect(await ask()).toBe('PONG');
    // An error of one that was left before changes nothing.
    clients[0].fail();
    expect(await ask()).toBe('PONG');
    expect(clients).toHaveLength(2);
  });

  it('leaves one that has not answered for 5 s, and one that is not ready after 10 s', async () => {
    const { clock, clients, server, ask } = setUp();
    await ask();
    server.reply = silent;
    const waiting = expect(ask()).rejects.toThrow('Dropped');
    await clock.advance(4_999);
    expect(clients[0].isDestroyed).toBe(false);
    await clock.advance(1);
    await waiting;
    expect(clients[0].isDestroyed).toBe(true);
    server.connect = silent;
    const tried = expect(ask()).rejects.toThrow('No answer');
    await clock.advance(9_999);
    expect(clients[1].isDestroyed).toBe(false);
    await clock.advance(1);
    await tried;
    expect(clients[1].isDestroyed).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it('leaves a server that has become a replica, once a minute at most', async () => {
    const { clock, clients, server, ask } = setUp();
    server.reply = () => Promise.reject(new Error('LOADING Redis is loading the dataset in memory'));
    await expect(ask()).rejects.toThrow('LOADING');
    expect(clients[0].isDestroyed).toBe(false);
    server.reply = () => Promise.reject(new Error("READONLY You can't write against a read only replica."));
    for (const connections of [1, 2, 2]) {
      await expect(ask()).rejects.toThrow('READONLY');
      expect(clients).toHaveLength(connections);
      await clock.advance(1_000);
    }
    await clock.advance(60_000);
    await expect(ask()).rejects.toThrow('READONLY');
    expect(clients.at(-1)?.isDestroyed).toBe(true);
  });

  it('closed while it connects: that one is ended, no attempt follows, and it can be used again', async () => {
    let connected = (): void => undefined;
    const { clock, clients, server, connection, ask } = setUp(
      () => new Promise<void>((resolve) => (connected = resolve)),
    );
    server.reply = silent;
    const asked = expect(ask()).rejects.toThrow('Dropped');
    await settle();
    connection.close();
    connected();
    await asked;
    expect(clients[0].isDestroyed).toBe(true);
    expect(clock.timers).toBe(0);
    server.connect = async () => undefined;
    server.reply = async () => 'PONG';
    expect(await ask()).toBe('PONG');
    connection.close();
    await settle();
    expect(clients[1].isDestroyed).toBe(true);
    await clock.advance(60_000);
    expect(clients).toHaveLength(2);
  });

  it('says what to install where there is no library, and tries again', async () => {
    let asked = 0;
    const importLibrary = async (): Promise<undefined> => void (asked += 1);
    const connection = new UrlConnection(new Secret('redis://host'), new FakeClock(), importLibrary);
    for (const times of [1, 2]) {
      await expect(connection.run(async () => undefined)).rejects.toThrow(
        /neither is installed\. Install one: npm i @redis\/client/,
      );
      expect(asked).toBe(times);
    }
  });

  it('ends clients of versions without destroy(), and takes what they throw then', async () => {
    for (const disconnect of [
      () => Promise.reject(new Error('Closed')),
      () => {
        throw new Error('Closed');
      },
    ]) {
      let ended = 0;
      const client = {
        connect: async () => undefined,
        on: () => undefined,
        unref: () => undefined,
        getRange: async () => 'PONG',
        disconnect: () => ((ended += 1), disconnect()),
      };
      const importLibrary = async () => ({ createClient: () => client as unknown as OwnClient });
      const connection = new UrlConnection(new Secret('redis://host'), new FakeClock(), importLibrary);
      expect(await connection.run((used) => used.getRange('key', 0, 1))).toBe('PONG');
      connection.close();
      await settle();
      expect(ended).toBe(1);
    }
  });
});

describe('RedisTokenStore', () => {
  /** A client that notes its commands. */
  function noting(replies: unknown[] = []) {
    const commands: unknown[][] = [];
    const command =
      (name: string) =>
      async (...args: unknown[]): Promise<unknown> => {
        commands.push([name, ...args]);
        const reply = replies.shift();
        if (reply instanceof Error) throw reply;
        return reply;
      };
    const methods = ['getRange', 'getrange', 'set', 'del', 'eval'].map(
      (name) => [name, command(name)] as const,
    );
    return { commands, client: Object.fromEntries(methods) as unknown as NodeRedisClient };
  }
  const ioredis = (made: NodeRedisClient) => Object.assign(made, { defineCommand: () => undefined });

  it.each<[string, (made: NodeRedisClient) => NodeRedisClient, unknown[][]]>([
    [
      'node-redis',
      (made) => made,
      [
        ['set', 'p:k', 'v', { PX: 1 }],
        ['set', 'p:l', expect.any(String), { PX: 1_500, NX: true }],
        ['eval', expect.stringContaining('del'), { keys: ['p:l'], arguments: [expect.any(String)] }],
        ['del', 'p:k'],
        ['eval', expect.stringContaining('del'), { keys: ['p:k'], arguments: ['v'] }],
      ],
    ],
    [
      'ioredis',
      ioredis,
      [
        ['set', 'p:k', 'v', 'PX', 1],
        ['set', 'p:l', expect.any(String), 'PX', 1_500, 'NX'],
        ['eval', expect.stringContaining('del'), 1, 'p:l', expect.any(String)],
        ['del', 'p:k'],
        ['eval', expect.stringContaining('del'), 1, 'p:k', 'v'],
      ],
    ],
  ])('writes with whole milliseconds, and gives a lock back by its holder: %s', async (_, as, expected) => {
    const { commands, client } = noting(['OK', 'OK']);
    const store = new RedisTokenStore({ client: as(client), keyPrefix: 'p:' });
    await store.open();
    await store.set('k', 'v', 0.5);
    const release = await store.lock('l', 1_500.9);
    await release?.();
    await store.delete('k');
    await store.delete('k', 'v');
    await store.close();
    expect(commands).toEqual(expected);
    const [holder, released] = [commands[1]?.[2], JSON.stringify(commands[2])];
    expect(released).toContain(String(holder));
  });

  it('takes text and bytes, and nothing else, for an entry; null for a lock that is taken', async () => {
    const wrong = new Error('WRONGTYPE Operation against a key holding the wrong kind of value');
    const { client } = noting(['text', Buffer.from('bytes'), null, 7, wrong, null]);
    const store = new RedisTokenStore({ client });
    const read = [];
    for (let turn = 0; turn < 5; turn += 1) read.push(await store.get('k'));
    expect(read).toEqual(['text', 'bytes', undefined, undefined, undefined]);
    expect(await store.lock('l', 1)).toBeUndefined();
  });

  it('rejects where Redis refuses', async () => {
    const refused = Array<Error>(5).fill(new Error('READONLY'));
    const store = new RedisTokenStore({ client: noting(['OK', ...refused]).client });
    const release = await store.lock('l', 1);
    for (const command of [
      () => release?.(),
      () => store.lock('l', 1),
      () => store.get('k'),
      () => store.set('k', 'v', 1),
      () => store.delete('k'),
    ])
      await expect(command()).rejects.toThrow('READONLY');
  });

  it.each<[object, RegExp[]]>([
    [{ client: noting().client }, []],
    [{ url: 'redis://host' }, []],
    [{ url: 'rediss://u:p%20w@host:6380/1', timeout: 1 }, []],
    [{ url: 'redis://host', timeout: 10_000 }, []],
    [{ client: noting().client, url: 'redis://host' }, [/not both\.$/]],
    [{ client: { get: () => undefined } }, [/not a client of node-redis or ioredis\.$/]],
    [{ client: 'text' }, [/not a client of node-redis or ioredis\.$/]],
    [{}, [/needs a client or a url/]],
    [{ url: 'redis://host', timeout: 0 }, [/timeout of RedisTokenStore must be between 1 and \d+ ms\.$/]],
    ...['http://host', 'redis:///1', 'redis://host/path', 'redis://u:%@host', 'host'].map(
      (url): [object, RegExp[]] => [
        { url },
        [/the url of RedisTokenStore is not that of a Redis server: redis:\/\//],
      ],
    ),
  ])('says what is wrong with %j', async (options, faults) => {
    const store = new RedisTokenStore(options);
    expect(await store.check()).toEqual(faults.map((fault) => expect.stringMatching(fault)));
  });
});
