// Breaks the files of a room of lib/ at random, and tells which breaks the room's own specs notice. See README.md.
//
//   node test/breaks/run.mjs --room redis [--count 40] [--seed 1] [--jobs 1] [--soak] [--show]
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compilerOf, reaches } from './compiler.mjs';
import { Copy } from './copy.mjs';
import { breaksOf, shuffle } from './draw.mjs';

// A room is a folder of lib/. Its specs are in the same folder of test/unit/, and these are in test/e2e/.
const E2E = {
  auth: ['secret-rotation', 'token-store'],
  banks: ['resources'],
  cli: ['docs-command', 'doctor', 'simulator-command'],
  'cli/doctor': ['docs-command', 'doctor', 'sidecar'],
  config: ['config-module', 'environment-proxies', 'request-headers', 'start-fails'],
  customers: ['resources'],
  engine: ['shutdown', 'sidecar', 'start-fails', 'start-up'],
  errors: ['docs-calls'],
  exchange: ['api-faults', 'changed-globals', 'environment-proxies', 'hanging', 'request-headers'],
  http: [
    'api-statuses',
    'exception-filter',
    'idempotency',
    'observability',
    'on-call',
    'request-headers',
    'typed-answers',
  ],
  'link-sdk': ['docs-tokens', 'modes', 'resources'],
  module: ['changed-globals', 'config-module', 'module', 'service-clients', 'start-up'],
  redis: ['redis-token-store'],
  telemetry: ['docs-operation', 'observability', 'on-call', 'throwing-host'],
  terminus: ['health'],
  'testing/doubles': ['docs-testing'],
  tls: ['certificates', 'rotation'],
};
// Rooms of their own, though they are in another one.
const INNER_ROOMS = ['cli/doctor', 'testing/doubles'];

const ROOT = join(import.meta.dirname, '../..');
const NUMBER = { type: 'string', default: '1' };
const { values } = parseArgs({
  options: {
    room: { type: 'string' },
    count: { ...NUMBER, default: '40' },
    seed: NUMBER,
    jobs: NUMBER,
    show: { type: 'boolean' },
    soak: { type: 'boolean', default: false },
  },
});
const { room, show } = values;
const [count, seed, jobs] = [values.count, values.seed, values.jobs].map(Number);
if (![count, seed, jobs].every((number) => Number.isInteger(number) && number > 0))
  refuse('--count, --seed and --jobs take whole numbers from 1');

const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
const tree = list.split('\n').filter((file) => file !== '' && existsSync(join(ROOT, file)));
const filesOf = (folder, ending) => {
  const others = INNER_ROOMS.filter((inner) => inner.startsWith(`${room}/`)).map((inner) =>
    inner.slice(room.length),
  );
  return tree.filter(
    (file) =>
      file.startsWith(`${folder}/`) &&
      ending.test(file) &&
      !others.some((inner) => file.startsWith(`${folder}${inner}/`)),
  );
};
const files = filesOf(`lib/${room}`, /(?<!\.d)\.ts$/);
const specs = [
  ...filesOf(`test/unit/${room}`, /\.spec\.ts$/),
  ...(E2E[room] ?? []).map((name) => `test/e2e/${name}.spec.ts`),
];
if (files.length === 0) {
  const rooms = new Set(tree.map((file) => /^lib\/([\w-]+)\//.exec(file)?.[1]).filter(Boolean));
  refuse(`--room takes one of ${[...rooms, ...INNER_ROOMS].join(', ')}`);
}

const copies = Array.from({ length: jobs }, () => new Copy(ROOT, tree, values.soak));
process.once('exit', () => copies.forEach((copy) => copy.remove()));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const whole = await copies[0].run(specs, 600_000);
if (whole.failure) throw new Error(`The specs fail without a break: ${whole.failure}`);
specs.sort((one, other) => whole.times.get(one) - whole.times.get(other));
const breaks = draw();
const waiting = [...breaks];
await Promise.all(copies.map(testBreaks));

const unnoticed = breaks.filter(({ failure }) => failure === undefined);
for (const each of unnoticed) console.log(show ? `\n${placeOf(each)}\n${diffOf(each)}` : placeOf(each));
console.log(`\n${room}, seed ${seed}: ${breaks.length} drawn, ${unnoticed.length} not noticed`);

/** At most one break of a place, and none with a type error. */
function draw() {
  const compiles = compilerOf(ROOT);
  const all = files.flatMap((file) => {
    const before = readFileSync(join(ROOT, file), 'utf8');
    return breaksOf(file, before).map((change) => ({ file, before, ...change }));
  });
  const drawn = new Map();
  for (const each of shuffle(all, seed)) {
    if (drawn.size === count) break;
    const place = `${each.file} ${each.start} ${each.end}`;
    if (!drawn.has(place) && compiles(each.file, textOf(each))) drawn.set(place, each);
  }
  return [...drawn.values()];
}

async function testBreaks(copy) {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const { file } = next;
    const own = specs.filter((spec) => reaches(ROOT, spec, file));
    const { failure, ms } = await copy.runBroken(file, textOf(next), own, 3 * whole.ms + 20_000);
    next.failure = failure;
    console.error(
      `${(ms / 1000).toFixed(1)} s, ${failure ? `noticed: ${short(failure)}` : 'NOT NOTICED'}, ${placeOf(next)}`,
    );
  }
}

function refuse(message) {
  console.error(message);
  process.exit(2);
}

function textOf({ before, start, end, replacement }) {
  return before.slice(0, start) + replacement + before.slice(end);
}

function placeOf({ file, before, start, end, replacement }) {
  const line = before.slice(0, start).split('\n').length;
  return `${file}:${line} ${short(before.slice(start, end))} -> ${short(replacement)}`;
}

function diffOf({ before, start, end, replacement }) {
  const from = before.lastIndexOf('\n', start) + 1;
  const to = before.indexOf('\n', end);
  const lines = (text, mark) => text.replace(/^/gm, mark);
  const after = before.slice(from, start) + replacement + before.slice(end, to);
  return `${lines(before.slice(from, to), '- ')}\n${lines(after, '+ ')}`;
}

function short(text) {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
}
