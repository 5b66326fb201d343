#!/usr/bin/env bash
# ioredis-mock 8.13.1 and ioredis 5.11.1 with a Redis 7 server: the options of SET and PEXPIRE that a store of tokens and locks uses.
#
# Expected: ioredis-mock does what Redis does, or reports an option that it does not know, as it does with a command that it does not know.
# Seen: it ignores the options and reports success. SET with KEEPTTL drops the time limit, so that the value stays for ever.
# PEXPIRE with NX or GT, which may only set or extend a limit, returns 1 and shortens it. And a Lua script gives `false` for a SET NX
# whose key is taken, and true for true, where Redis gives null and 1: a test with ioredis-mock passes that compares with `=== false`.
#
#                                          Redis   ioredis-mock
#   PTTL after SET key value KEEPTTL        5000    -1
#   PEXPIRE key 100 NX, limit 9000          0       1, and the limit is 100
#   PEXPIRE key 100 GT, limit 9000          0       1, and the limit is 100
#   EVAL "return redis.call('set', ... NX)" null    false
#   EVAL "return true"                      1       true
set -euo pipefail
command -v redis-server >/dev/null || { echo 'needs redis-server'; exit 2; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts ioredis@5.11.1 ioredis-mock@8.13.1
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import Redis from 'ioredis';
import RedisMock from 'ioredis-mock';

const free = createServer().listen(0, '127.0.0.1');
await once(free, 'listening');
const { port } = free.address();
free.close();
const redis = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']);
for await (const line of redis.stdout) if (String(line).includes('Ready to accept')) break;

/** The remaining time of a key, rounded to half a second, or -1 if it has none. */
const remaining = async (client, key) => Math.round((await client.pttl(key)) / 500) * 500 || -1;
async function look(client) {
  await client.set('kept', 'a', 'PX', 5_000);
  await client.set('kept', 'b', 'KEEPTTL');
  const seen = { kept: await remaining(client, 'kept') };
  for (const option of ['NX', 'GT']) {
    await client.set(option, 'a', 'PX', 9_000);
    seen[option] = [await client.pexpire(option, 100, option), (await client.pttl(option)) > 5_000];
  }
  seen.taken = await client.eval("return redis.call('set', KEYS[1], ARGV[1], 'NX')", 1, 'kept', 'c');
  seen.true = await client.eval('return true', 0);
  return seen;
}
try {
  const seen = [await look(new Redis(port, '127.0.0.1')), await look(new RedisMock())];
  console.log(seen);
  assert.deepEqual(seen, [
    { kept: 5_000, NX: [0, true], GT: [0, true], taken: null, true: 1 },
    { kept: -1, NX: [1, false], GT: [1, false], taken: false, true: true },
  ]);
} finally {
  redis.kill();
}
process.exit();
JS
node run.mjs
