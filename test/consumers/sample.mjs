import assert from 'node:assert/strict';
import { cp, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { composeCheck } from './compose.mjs';
import { freePort } from './ports.mjs';
import { runBounded, runUntil } from './run-bounded.mjs';

const ROOT = join(import.meta.dirname, '../..');
const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'];

/**
 * The sample as the sources of a new NestJS 12 application, with the packages that the head of its main.ts has installed,
 * this one from its tarball. As checks to run in order.
 */
export async function sampleChecks({ template, folder, nodes }) {
  await cp(template, folder, { recursive: true });
  await cp(join(ROOT, 'sample'), join(folder, 'src'), { recursive: true });
  const run = (args, timeoutMs) => runBounded(args[0], args.slice(1), { cwd: folder, timeoutMs });
  return {
    name: basename(template),
    checks: [
      { name: 'install', run: async () => run(['npm', ...INSTALL, ...(await packages())], 180_000) },
      { name: 'types, and build', run: () => run(['npx', 'nest', 'build'], 120_000) },
      ...nodes.map(({ version, path }) => ({ name: 'start', node: version, run: () => start(path, folder) })),
      await composeCheck(folder),
    ],
  };
}

async function packages() {
  const text = await readFile(join(ROOT, 'sample/main.ts'), 'utf8');
  const [, named] = /^\/\/ +npm i nestjs-service (.+)$/m.exec(text) ?? [];
  assert.ok(named, 'sample/main.ts says what to install');
  return ['../nestjs-service.tgz', ...named.split(' ')];
}

async function start(node, folder) {
  const port = await freePort();
  const env = { PORT: String(port) };
  const ready = '/docs\n';
  const { output, end } = await runUntil(node, ['dist/main.js'], {
    cwd: folder,
    env,
    timeoutMs: 60_000,
    ready,
  });
  try {
    assert.match(output(), /banks\.list +ok: 10 banks[^]*customers\.create +ok[^]*connectParameters +ok/);
    const text = async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    assert.match(await text('/'), /<h1>nestjs-service sample<\/h1>/);
    assert.match(await text('/page.js'), /Service\.connect\(/);
    assert.match(await text('/link-sdk.js'), /globalThis\.Service/);
    assert.equal(JSON.parse(await text('/page/banks')).length, 10);
  } finally {
    await end();
  }
}
