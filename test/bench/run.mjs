// Builds the package into a folder of the bench, installs the peers on first use, runs the parts one after another.
//
//   npm run bench [-- tokens memory boot calls round-trips]
//   npm run bench -- compare [commit] [--delay <ms>]
//   npm run bench -- doubts [commit]
//
// Prints tables of medians and ratios. A run of all parts writes the figures of README.md too. Never fails for a figure; exits
// 1 where a part itself broke. All of it runs on the Node that runs this file.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { barChart, withFigures } from './report.mjs';

const here = import.meta.dirname;
const repository = join(here, '..', '..');
const build = join(here, '.build');
const PARTS = ['tokens', 'memory', 'boot', 'calls', 'round-trips'];
const PART_TIMEOUT_MS = 900_000;

/** Rejects unless the command succeeds within its time. `onMessage` is for a program of ours. */
async function run(command, args, { cwd = repository, timeoutMs = 180_000, onMessage } = {}) {
  const stdio = ['inherit', 'inherit', 'inherit', ...(onMessage ? ['ipc'] : [])];
  const child = spawn(command, args, { cwd, stdio, timeout: timeoutMs, killSignal: 'SIGKILL' });
  if (onMessage) child.on('message', onMessage);
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (...outcome) => resolve(outcome));
  });
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ended with ${code ?? signal}`);
}

async function installPeers() {
  const changed = (file) => statSync(join(here, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // npm writes the second one as the last thing that it does.
  if (changed('node_modules/.package-lock.json') >= changed('package-lock.json')) return;
  await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: here });
}

const lib = join(build, 'lib');

function compile(folder, outDir, ...flags) {
  const compiler = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
  const project = join(folder, 'tsconfig.build.json');
  return run(process.execPath, [compiler, '-p', project, '--outDir', outDir, ...flags]);
}

async function bundlePackage() {
  const bundle = join(build, 'package');
  cpSync(lib, bundle, { recursive: true });
  await run(process.execPath, [join(repository, 'build', 'bundle.mjs'), bundle]);
}

/** Resolves to the URL of lib/ as it was compiled from that commit, with the packages that are installed now. */
async function compileCommit(commit) {
  const [folder, archive] = [join(build, 'before'), join(build, 'before.tar')];
  mkdirSync(folder);
  const sources = ['lib', 'tsconfig.json', 'tsconfig.build.json'];
  await run('git', ['archive', '--output', archive, commit, ...sources]);
  await run('tar', ['-xf', archive, '-C', folder]);
  // Against other versions of the packages its types may not fit.
  await compile(folder, join(folder, 'built'), '--noCheck');
  return `${pathToFileURL(join(folder, 'built')).href}/`;
}

/** The commit before: of what is not committed yet that is the last one. */
function commitBefore() {
  const isCommitted =
    spawnSync('git', ['diff', '--quiet', 'HEAD', '--', 'lib'], { cwd: repository }).status === 0;
  return isCommitted ? 'HEAD~1' : 'HEAD';
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { delay: { type: 'string', default: '0' } },
});
/** The parts that run beside the build of another commit. */
const COMPARING = ['compare', 'doubts'];
const compares = COMPARING.includes(positionals[0]);
const named = compares ? [positionals[0]] : positionals;
const unknown = named.filter((part) => !PARTS.includes(part) && !compares);
if (unknown.length > 0) {
  console.error(
    `Unknown: ${unknown.join(' ')}. Parts: ${PARTS.join(', ')}; or compare [commit] or doubts [commit] alone.`,
  );
  process.exit(2);
}

await installPeers();
rmSync(build, { recursive: true, force: true });
await compile(repository, lib);
const args = [];
if (compares) {
  const commit = positionals[1] ?? commitBefore();
  console.log(`before: ${commit}`);
  args.push(await compileCommit(commit), values.delay);
} else await bundlePackage();
const cores = cpus();
console.log(
  `Node ${process.version}, ${cores.length} cores (${cores[0]?.model}), load ${loadavg()[0].toFixed(1)}`,
);

let broken = 0;
const tables = [];
for (const part of named.length > 0 ? named : PARTS) {
  const start = performance.now();
  console.log(`\n## ${part}`);
  try {
    const flags = ['--expose-gc', '--disable-warning=ExperimentalWarning'];
    const onMessage = (table) => tables.push(table);
    const program = join(here, `${part}.mjs`);
    await run(process.execPath, [...flags, program, ...args], { timeoutMs: PART_TIMEOUT_MS, onMessage });
  } catch (error) {
    broken += 1;
    console.error(error.message);
  }
  console.log(`(${((performance.now() - start) / 1000).toFixed(0)} s, load ${loadavg()[0].toFixed(1)})`);
}
if (broken === 0 && named.length === 0) {
  const readme = join(here, 'README.md');
  const machine = `Node ${process.version}, ${process.platform} ${process.arch}, ${cores.length} cores (${cores[0]?.model})`;
  const calls = tables.find(({ title }) => title.startsWith('A GET'));
  writeFileSync(readme, withFigures(readFileSync(readme, 'utf8'), tables, machine));
  writeFileSync(join(here, 'calls.svg'), barChart(calls, '/ @nestjs/axios recipe'));
}
process.exitCode = broken === 0 ? 0 : 1;
