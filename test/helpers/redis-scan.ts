import { type RedisClientType } from '@redis/client';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { secretsIn } from './secret-scan.js';

export interface RedisScan {
  keys: string[];
  /** Keys that never end. */
  endless: string[];
  /** Names of what shows in keys, values or dumps, in clear or in base64. */
  shown: string[];
  /** Bytes of each entry as Redis counts them. */
  bytes: number[];
}

/** Looks through all that is in Redis for what must not be readable there. */
export async function scanRedis(
  client: RedisClientType,
  simulator: ServiceSimulator,
  more: Record<string, string> = {},
): Promise<RedisScan> {
  const tokens = simulator.apiRequests.map(
    ({ headers }) => headers.authorization?.slice('Bearer '.length) ?? '',
  );
  const secrets: Record<string, string> = {
    secret: simulator.clientSecret,
    client: simulator.clientId,
    ...more,
    ...Object.fromEntries([...new Set(tokens)].map((token, index) => [`token ${index}`, token])),
  };
  const scan: RedisScan = { keys: await client.keys('*'), endless: [], shown: [], bytes: [] };
  for (const key of scan.keys) {
    if ((await client.pTTL(key)) === -1) scan.endless.push(key);
    const value = (await client.get(key)) ?? '';
    const decoded = Buffer.from(value.replace(/^v\d+\./, ''), 'base64url').toString('latin1');
    const dump = await client.sendCommand<string>(['DUMP', key]);
    for (const text of [key, value, decoded, dump]) scan.shown.push(...secretsIn(text ?? '', secrets));
    scan.bytes.push((await client.memoryUsage(key)) ?? 0);
  }
  return scan;
}
