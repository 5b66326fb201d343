import { type RedisClientType } from '@redis/client';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './loopback.js';
import { startRedis, type RedisServer } from './redis.js';

/** Several redis-servers with replicas, for tests of a failover. */
export interface RedisTopology {
  /** The addresses that a client connects to first: nodes of the cluster, or sentinels. */
  seeds: { host: string; port: number }[];
  /** All keys on all masters. */
  keys(): Promise<string[]>;
  /** Makes a planned failover: the master of this key becomes a replica of its replica. */
  handOver(key: string): Promise<void>;
  /** Kills the master of this key. Resolves when its replica has taken over. */
  crash(key: string): Promise<void>;
  /** To be called at the end. */
  kill(): Promise<void>;
}

interface RedisNode {
  server: RedisServer;
  client: RedisClientType;
}

interface Shard {
  master: RedisNode;
  replica: RedisNode;
}

/** Milliseconds without an answer after which a master counts as gone. */
const GONE_AFTER = '1000';
const SLOTS = 16_384;
/** A replica gets its data at once. */
const SYNC = ['--repl-diskless-sync-delay', '0'];

/** A node without slots. */
export async function startClusterNode(program: string, ...options: string[]) {
  // By default the bus port is the port plus 10,000, which can exceed 65,535.
  const busPort = await freePort();
  const cluster = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];
  const node = await startRedis(program, ...cluster, '--cluster-port', String(busPort), ...options);
  return { ...node, busPort };
}

/** Three masters, each with a replica. */
export async function startCluster(program: string): Promise<RedisTopology> {
  const start = () => startClusterNode(program, '--cluster-node-timeout', GONE_AFTER, ...SYNC);
  const servers = await Promise.all([start(), start(), start(), start(), start(), start()]);
  const nodes = await Promise.all(servers.map(withClient));
  const clients = nodes.map(({ client }) => client);
  for (const [index, client] of clients.entries()) {
    await client.sendCommand(['CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1)]);
  }
  for (const { port, busPort } of servers.slice(1)) {
    await clients[0].sendCommand(['CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPort)]);
  }
  for (const client of clients) await waitForReply(client, ['CLUSTER', 'INFO'], /cluster_known_nodes:6/);
  const size = Math.ceil(SLOTS / 3);
  const shards = [0, 1, 2].map((index): Shard => ({ master: nodes[index], replica: nodes[index + 3] }));
  for (const [index, { master, replica }] of shards.entries()) {
    const last = Math.min(SLOTS, size * (index + 1)) - 1;
    await master.client.clusterAddSlotsRange({ start: size * index, end: last });
    await replica.client.clusterReplicate(await master.client.clusterMyId());
  }
  for (const client of clients) await waitForReply(client, ['CLUSTER', 'INFO'], /cluster_state:ok/);
  for (const { replica } of shards) await waitForReply(replica.client, ['INFO'], /master_link_status:up/);
  const shardOf = async (key: string): Promise<Shard> =>
    shards[Math.floor((await clients[5].clusterKeySlot(key)) / size)];
  return {
    seeds: servers.map(({ port }) => ({ host: '127.0.0.1', port })),
    keys: async () => (await Promise.all(shards.map(({ master }) => master.client.keys('*')))).flat(),
    handOver: async (key) => {
      const shard = await shardOf(key);
      await shard.replica.client.sendCommand(['CLUSTER', 'FAILOVER']);
      await waitUntilSwapped(shard);
    },
    crash: async (key) => crash(await shardOf(key)),
    kill: () => killAll(nodes),
  };
}

/** A master called mymaster, a replica, and three sentinels. */
export async function startSentinels(program: string): Promise<RedisTopology> {
  const master = await withClient(await startRedis(program, ...SYNC));
  const replicaOf = ['--replicaof', '127.0.0.1', String(master.server.port)];
  const replica = await withClient(await startRedis(program, ...replicaOf, ...SYNC));
  await waitForReply(replica.client, ['INFO'], /master_link_status:up/);
  const start = async () => withClient(await startRedis(program, '--sentinel'));
  const sentinels = await Promise.all([start(), start(), start()]);
  const all = (command: string[]) =>
    Promise.all(sentinels.map(({ client }) => client.sendCommand(['SENTINEL', ...command])));
  await all(['MONITOR', 'mymaster', '127.0.0.1', String(master.server.port), '2']);
  await all(['SET', 'mymaster', 'down-after-milliseconds', GONE_AFTER, 'failover-timeout', GONE_AFTER]);
  const shard = { master, replica };
  const waitUntilReady = async (): Promise<void> => {
    const ready = new RegExp(`status=ok,address=127.0.0.1:${shard.master.server.port},slaves=1,sentinels=3`);
    for (const { client } of sentinels) await waitForReply(client, ['INFO'], ready);
  };
  await waitUntilReady();
  return {
    seeds: sentinels.map(({ server }) => ({ host: '127.0.0.1', port: server.port })),
    keys: () => shard.master.client.keys('*'),
    handOver: async () => {
      await sentinels[0].client.sendCommand(['SENTINEL', 'FAILOVER', 'mymaster']);
      await waitUntilSwapped(shard);
      await waitUntilReady();
    },
    crash: () => crash(shard),
    kill: () => killAll([master, replica, ...sentinels]),
  };
}

async function withClient(server: RedisServer): Promise<RedisNode> {
  return { server, client: await server.connect() };
}

async function waitUntilSwapped(shard: Shard): Promise<void> {
  const { master, replica } = shard;
  await waitForReply(replica.client, ['INFO'], /role:master/);
  await waitForReply(master.client, ['INFO'], /master_link_status:up/);
  Object.assign(shard, { master: replica, replica: master });
}

async function crash({ master, replica }: Shard): Promise<void> {
  master.client.destroy();
  await master.server.crash();
  await waitForReply(replica.client, ['INFO'], /role:master/);
}

/** Sentinel closes the connections of a server that it makes a master. */
async function waitForReply(client: RedisClientType, command: string[], what: RegExp): Promise<void> {
  while (!what.test(await client.sendCommand<string>(command).catch(() => ''))) await sleep(20);
}

async function killAll(nodes: RedisNode[]): Promise<void> {
  nodes.forEach(({ client }) => client.destroy());
  await Promise.all(nodes.map(({ server }) => server.kill()));
}
