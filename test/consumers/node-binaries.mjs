import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runBounded } from './run-bounded.mjs';

/** The oldest that package.json's `engines` names, and the newest line. */
const LINES = ['20.19', '24'];

/** The Node that runs this. */
export function currentNode() {
  return [{ version: process.versions.node, path: process.execPath }];
}

/** The oldest and the newest Node, from npm packages that hold the binary, installed into `folder`. */
export async function supportedNodes(folder) {
  const packageName = `node-${process.platform}-${process.arch}`;
  const binaries = LINES.map((line) => [`node-${line.split('.')[0]}`, `npm:${packageName}@${line}`]);
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, dependencies: Object.fromEntries(binaries) }),
  );
  await runBounded('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'], {
    cwd: folder,
    timeoutMs: 180_000,
  });
  return Promise.all(
    binaries.map(async ([name]) => {
      const path = join(folder, 'node_modules', name, 'bin', 'node');
      const version = await runBounded(path, ['-p', 'process.versions.node'], {
        cwd: folder,
        timeoutMs: 10_000,
      });
      return { version: version.trim(), path };
    }),
  );
}
