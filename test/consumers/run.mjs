// Packs the package, installs the tarball into applications of the kinds that hosts are, and runs them.
//
//   node test/consumers/run.mjs [--all-nodes] [consumer...]
//
// With --all-nodes they run on the oldest and the newest supported Node, otherwise on the one that runs this.
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleChecks } from './bundle.mjs';
import { consumerChecks, vitestChecks } from './consumer.mjs';
import { gettingStartedChecks } from './getting-started.mjs';
import { currentNode, supportedNodes } from './node-binaries.mjs';
import { pnpmChecks } from './pnpm.mjs';
import { recipesChecks } from './recipes.mjs';
import { rehearseRelease } from './release.mjs';
import { endAll, runBounded } from './run-bounded.mjs';

const here = import.meta.dirname;
const repository = join(here, '..', '..');
const consumers = [
  'esm-nest12',
  'cjs-nest11',
  'vitest-nest12',
  'getting-started-12',
  'bundle-nest12',
  'pnpm-nest12',
  'recipes-nest12',
];

const workspace = mkdtempSync(join(tmpdir(), 'nestjs-service-consumers-'));
process.on('exit', () => rmSync(workspace, { recursive: true, force: true }));
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
]) {
  process.on(signal, () => {
    endAll();
    process.exit(code);
  });
}

const rows = [];

/** Runs one check, notes its outcome and says whether it passed. */
async function check(consumer, { name, node = '', run }) {
  const start = performance.now();
  let fault;
  try {
    await run();
  } catch (error) {
    fault = error instanceof Error ? error.message : String(error);
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  rows.push({ consumer, check: name, node, outcome: fault === undefined ? 'ok' : 'FAILED', seconds });
  if (fault !== undefined) console.error(`\n${consumer}: ${name} ${node} failed\n${fault}\n`);
  return fault === undefined;
}

async function pack() {
  await runBounded('npm', ['pack', '--pack-destination', workspace], { cwd: repository, timeoutMs: 120_000 });
  const tarball = (await readdir(workspace)).find((file) => file.endsWith('.tgz'));
  await rename(join(workspace, tarball), join(workspace, 'nestjs-service.tgz'));
}

function checksOf(name, nodes) {
  const folder = join(workspace, name);
  const tarball = join(workspace, 'nestjs-service.tgz');
  const kinds = {
    vitest: vitestChecks,
    getting: gettingStartedChecks,
    bundle: bundleChecks,
    pnpm: pnpmChecks,
    recipes: recipesChecks,
  };
  const checks = kinds[name.split('-')[0]] ?? consumerChecks;
  return checks({ template: join(here, name), host: join(here, 'host'), folder, nodes, tarball });
}

async function runConsumer(name, nodes) {
  const { checks, end } = await checksOf(name, nodes);
  let passed = true;
  for (const one of checks) {
    const ok = await check(name, one);
    passed &&= ok;
    // The next checks cannot work.
    if (!ok && (one.needed || one.name === 'install' || one.name.startsWith('types'))) break;
  }
  await end?.();
  console.log(`${passed ? 'ok' : 'not ok'} ${name}`);
}

const args = process.argv.slice(2);
const named = args.filter((arg) => !arg.startsWith('--'));
const unknown = args.filter((arg) => arg !== '--all-nodes' && !consumers.includes(arg));
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(' ')}. Consumers: ${consumers.join(', ')}.`);
  process.exit(2);
}

let nodes = currentNode();
let ready = await check('(package)', { name: 'npm pack', run: pack });
if (named.length === 0) {
  await check('(package)', { name: 'release', run: () => rehearseRelease({ repository, workspace }) });
}
if (ready && args.includes('--all-nodes')) {
  const install = async () => {
    nodes = await supportedNodes(join(workspace, 'nodes'));
  };
  ready = await check('(nodes)', { name: 'install', run: install });
}
if (ready) {
  for (const name of named.length > 0 ? named : consumers) await runConsumer(name, nodes);
}

console.table(rows);
const failed = rows.filter(({ outcome }) => outcome === 'FAILED').length;
console.log(`${rows.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
