import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readCompose } from './readme.mjs';
import { runBounded } from './run-bounded.mjs';

/** What the image of docs/command.md has of use here. */
const IMAGE = 'node:24-slim';
const STARTED = 'banks.list ';
const SHELL = '/bin/sh';

/**
 * The compose file of docs/command.md, in a folder with a built application: its simulator and its application in
 * containers of their own. Their image is made from the Node of this machine, so that none is downloaded. A check without
 * `run` if no containers can be run here.
 */
export async function composeCheck(folder) {
  const name = 'compose';
  const compose = await findCompose();
  if (!compose) return { name, leftOut: 'it needs Linux, docker compose and a Docker daemon' };
  return { name, run: () => tryCompose(compose, folder) };
}

async function findCompose() {
  const answers = (...command) =>
    runBounded(command[0], command.slice(1), { timeoutMs: 10_000 }).then(
      () => true,
      () => false,
    );
  if (process.platform !== 'linux' || !(await answers('docker', 'info'))) return undefined;
  for (const command of [['docker', 'compose'], ['docker-compose']]) {
    if (await answers(...command, 'version')) return command;
  }
  return undefined;
}

async function tryCompose([program, ...first], folder) {
  const id = `nestjs-service-${process.pid}`;
  const image = `${id}-node`;
  const run = (command, args, timeoutMs = 60_000) => runBounded(command, args, { cwd: folder, timeoutMs });
  const compose = (...args) => run(program, [...first, '-p', id, ...args]);
  const { file, commands } = await readCompose();
  assert.equal(file.split(`image: ${IMAGE}\n`).length, 3);
  await writeFile(join(folder, 'compose.yaml'), file.replaceAll(IMAGE, image));
  await makeImage(image, run);
  try {
    await compose('up', '-d');
    const log = await logWith(compose, STARTED);
    assert.match(log, /banks\.list +ok: 10 banks/);
    assert.match(log, /SERVICE_BASE_URL +https:\/\/simulator:8443 /);
    assert.match(log, /Warning: it listens on 0\.0\.0\.0/);
    assert.match(log, /GET \/banks\/v1 200 \d+ ms \(base\)/);
    const own = [program, ...first, '-p', id].join(' ');
    const tried = await run('sh', ['-e', '-c', commands.replaceAll('docker compose', own)]);
    assert.match(tried, /HTTP 200\n[^]*"bank_identifier"/);
    await compose('restart', 'simulator');
    await compose('restart', 'app');
    const later = await logWith(compose, STARTED, 2);
    assert.match(later, /They are those of the last start/);
    assert.doesNotMatch(later, /PRIVATE KEY/);
  } finally {
    await compose('down', '--volumes', '--timeout', '5');
    await run('docker', ['rmi', image]);
  }
}

/** Waits until a text was logged so many times. */
async function logWith(compose, text, times = 1) {
  const endsAt = Date.now() + 60_000;
  for (;;) {
    const log = await compose('logs', '--no-color');
    if (log.split(text).length > times) return log;
    assert.ok(Date.now() < endsAt, `not logged ${times} times: ${text}\n${log}`);
  }
}

/** The Node that runs this, and a shell, with the libraries that they load. */
async function makeImage(image, run) {
  const libraries = await run('ldd', [process.execPath, SHELL]);
  const files = new Set([process.execPath, SHELL, ...libraries.match(/\/[^\s:]+(?=\s)/g)]);
  await run('tar', ['-chf', 'image.tar', ...files]);
  const path = `ENV PATH=${dirname(process.execPath)}:${dirname(SHELL)}`;
  await run('docker', ['import', '--change', path, 'image.tar', image]);
  await run('rm', ['image.tar']);
}
