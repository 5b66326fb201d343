// A million distinct customers through the token cache: what stays in memory, and how fast they go through.
import { built, callAll, cpuSince, must, printTable, publishTable, round, spread } from './harness.mjs';

const CUSTOMERS = 1_000_000;
const MAX_ENTRIES = 10_000;
const CONCURRENCY = 100;
/** The heap is measured after each of these. */
const PARTS = 10;

const { TokenCache } = await built('auth/token-cache.js');
const { systemClock } = await built('time/time.js');
const { SILENT } = await built('telemetry/telemetry.js');

let issued = 0;
const source = {
  request: async (scope) => {
    issued += 1;
    // As long as a JWT, and each one a string of its own.
    const accessToken = Buffer.alloc(500, issued % 251).toString('base64url') + issued;
    return { accessToken, tokenType: 'bearer', scope, expiresIn: 3600 };
  },
};
const settings = {
  refresh: 'ahead',
  maxEntries: MAX_ENTRIES,
  customerReserveMs: 600_000,
  customerRequests: 50,
  timeoutMs: 30_000,
};
const io = {
  clock: systemClock,
  random: Math.random,
  log: SILENT,
  describeOption: String,
};
const cache = new TokenCache(source, settings, io);

let customer = 0;
const next = () => cache.scope(`customer.customer-${customer++}`).get();

/**
 * Counts from the newest customer on. Looking for one that is not in the cache makes a new entry in place of another one, so this
 * counts right only once after a customer was added.
 */
function entries() {
  let count = 0;
  while (count < customer && cache.scope(`customer.customer-${customer - 1 - count}`).getCached()) count += 1;
  return count;
}

function heapMB() {
  globalThis.gc();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

const rows = [];
function note(customers, cpu) {
  const heap = heapMB();
  const { rss } = process.memoryUsage();
  rows.push({
    'customers so far': customers,
    'entries in the cache': entries(),
    'heap after GC, MB': round(heap, 1),
    'RSS, MB': round(rss / 2 ** 20),
    'CPU us a token': cpu === undefined ? '' : round(cpu / CUSTOMERS, 1),
    'tokens/s of CPU': cpu === undefined ? '' : round((CUSTOMERS / cpu) * 1e6),
  });
}

note(0);
await callAll(next, MAX_ENTRIES * 2, CONCURRENCY);
note(customer);
const full = heapMB();
const heaps = [];
const before = process.cpuUsage();
for (let part = 0; part < PARTS; part += 1) {
  await callAll(next, CUSTOMERS / PARTS, CONCURRENCY);
  heaps.push(heapMB() / full);
}
note(customer, cpuSince(before));

must(issued === customer, `${issued} tokens were issued to ${customer} customers`);
const left = rows.at(-1)['entries in the cache'];
must(left > 0 && left <= MAX_ENTRIES, `the cache holds ${left} entries`);
printTable(
  `${CUSTOMERS.toLocaleString('en')} customers, tokenCache.maxEntries ${MAX_ENTRIES.toLocaleString('en')}`,
  rows,
);
publishTable(
  `Memory of the token cache: ${CUSTOMERS.toLocaleString('en')} customers more than it has room for`,
  [{ entries: left, 'heap / heap of the cache when it was just full': spread(heaps, 2) }],
);
cache.close();
