#!/usr/bin/env bash
# keyv 5.6.0 with @keyv/redis 5.1.6, and cache-manager 7.2.9 above them: a token is kept for 90 % of its lifetime, 0.9 * 1999 ms, which is
# 1799.1000000000001.
#
# Expected: the token is kept for about this time, as keyv's store in memory does, or set() rejects or returns false.
# Seen: Redis takes whole milliseconds only and refuses the command. keyv gives this to its event `error` and to nobody else: set() returns
# true, and the token is not there. cache.wrap() of cache-manager fetches a token for each call. cache.set(), which is documented to throw on
# any failure, returns the token. Tests with the store in memory pass. Whether there is a fraction depends on the lifetime:
# 0.9 * 2000 is 1800.
#
#   memory, 0.9 * 1999:  set true, get 'token', 2 calls of wrap() fetch 1 token
#   Redis,  0.9 * 1999:  set true, get undefined, 2 calls of wrap() fetch 2 tokens
#   Redis,  0.9 * 2000:  set true, get 'token', 2 calls of wrap() fetch 1 token
set -euo pipefail
command -v redis-server >/dev/null || { echo 'needs redis-server'; exit 2; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts keyv@5.6.0 @keyv/redis@5.1.6 cache-manager@7.2.9
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import KeyvRedis from '@keyv/redis';
import { createCache } from 'cache-manager';
import { Keyv } from 'keyv';

const free = createServer().listen(0, '127.0.0.1');
await once(free, 'listening');
const { port } = free.address();
free.close();
const redis = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']);
for await (const line of redis.stdout) if (String(line).includes('Ready to accept')) break;

async function look(store, ttl) {
  const errors = new Set();
  const keyv = new Keyv(store && { store }).on('error', ({ message }) => errors.add(message));
  const cache = createCache({ stores: [keyv] });
  const set = await keyv.set('keyv', 'token', ttl);
  const get = await keyv.get('keyv');
  let fetched = 0;
  for (const _ of [1, 2]) await cache.wrap('wrap', async () => (fetched++, 'token'), ttl);
  const cached = await cache.set('set', 'token', ttl);
  await keyv.clear();
  return [set, get, fetched, cached, ...errors];
}
try {
  const ofRedis = new KeyvRedis(`redis://127.0.0.1:${port}`);
  const seen = [await look(undefined, 0.9 * 1999), await look(ofRedis, 0.9 * 1999), await look(ofRedis, 0.9 * 2000)];
  console.log(seen);
  assert.deepEqual(seen, [
    [true, 'token', 1, 'token'],
    [true, undefined, 2, 'token', 'ERR value is not an integer or out of range'],
    [true, 'token', 1, 'token'],
  ]);
} finally {
  redis.kill();
}
process.exit();
JS
node run.mjs
