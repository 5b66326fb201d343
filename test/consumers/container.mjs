import assert from 'node:assert/strict';
import { chmod, chown, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { buildImage } from './dockerfile.mjs';
import { freePort, untilListening } from './ports.mjs';
import { installArguments, readDeployment, readRecipe, writeApplication } from './readme.mjs';
import { startRegistry } from './registry.mjs';
import { runBounded, runUntil } from './run-bounded.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
/** The user `node` of the official images. */
const NODE_USER = 1000;
/** What Docker waits between SIGTERM and SIGKILL. */
const STOP_GRACE_MS = 10_000;

/**
 * The container of docs/recipes.md, with the variables of docs/operation.md and the application of docs/getting-started.md, without Docker: its user, no right to
 * write a file, the secrets as files, and, where this machine allows it, as process 1. As checks to run in order.
 */
export async function containerChecks({ folder, tarball }) {
  const context = join(folder, 'context');
  const run = (command, args, options) => runBounded(command, args, { timeoutMs: 300_000, ...options });
  let registry;
  let env;
  let image;

  const prepare = async () => {
    // For another user than the one that runs this.
    await mkdir(folder, { recursive: true });
    await chmod(dirname(folder), 0o711);
    await writeApplication(context);
    await cp(join(context, 'src', 'getting-started'), join(context, 'src'), { recursive: true });
    // As nest new writes them: only tsconfig.build.json says that the sources are in src.
    const text = await readFile(join(import.meta.dirname, 'recipes-nest12', 'tsconfig.json'), 'utf8');
    const { compilerOptions, include } = JSON.parse(text);
    const { rootDir, ...base } = compilerOptions;
    const written = {
      'nest-cli.json': { sourceRoot: 'src' },
      'tsconfig.json': { compilerOptions: { ...base, rootDir: '.' } },
      'tsconfig.build.json': { extends: './tsconfig.json', compilerOptions: { rootDir }, include },
    };
    for (const [name, content] of Object.entries(written)) {
      await writeFile(join(context, name), JSON.stringify(content));
    }
    const host = await readFile(join(import.meta.dirname, 'pnpm-nest12', 'package.json'), 'utf8');
    await writeFile(
      join(context, 'package.json'),
      JSON.stringify({ ...JSON.parse(host), scripts: { build: 'tsc -p tsconfig.build.json' } }),
    );

    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const upstream = (await run('npm', ['config', 'get', 'registry'], { cwd: context })).trim();
    registry = await startRegistry({ manifest, tarball, upstream: upstream.split('\n').at(-1) });
    env = { npm_config_registry: registry.url, npm_config_prefer_offline: 'true' };
    const lock = ['install', '--package-lock-only', '--no-audit', '--no-fund'];
    const packages = await installArguments(12, 'nestjs-service');
    await run('npm', [...lock, ...packages], { cwd: context, env });
    await run('npm', [...lock, '--save-dev', 'typescript@6.0'], { cwd: context, env });
  };

  const build = async () => {
    image = await buildImage(await readRecipe('dockerfile', '# Dockerfile\n'), { context, folder, env });
    const [kilobytes] = (await run('du', ['-sk', image.root])).split('\t');
    console.log(`container: ${Math.round(kilobytes / 1000)} MB beside the base image`);
  };

  /** The variables of the guide: addresses and secrets of a simulator in place of those that are written there. */
  const variablesOf = async (values) => {
    const lines = await readDeployment();
    assert.ok(lines.some(([name]) => name === 'SERVICE_TLS_PRIVATE_KEY_FILE'));
    await mkdir(join(folder, 'secrets'));
    const variables = {};
    for (const [name, value] of lines) {
      variables[name] = /^https:/.test(value) ? values[name] : value;
      if (!name.endsWith('_FILE')) continue;
      const file = join(folder, 'secrets', basename(value));
      await writeFile(file, values[name.replace(/_FILE$/, '')].replaceAll('\\n', '\n'), { mode: 0o400 });
      if (process.getuid() === 0) await chown(file, NODE_USER, NODE_USER);
      variables[name] = file;
    }
    return variables;
  };

  const serve = async (simulator) => {
    const port = await freePort();
    const values = simulator.env({ environment: 'production', authentication: 'mtls' });
    const ours = { PORT: String(port), SERVICE_HTTP_SHUTDOWN_TIMEOUT: '1000' };
    const variables = { ...image.env, ...(await variablesOf(values)), ...ours };
    assert.equal(image.user, 'node');
    const [node, ...args] = image.command;
    assert.equal(node, 'node');
    const [first, ...rest] = [...(await asContainer()), process.execPath, ...withoutWriting(), ...args];
    const options = { cwd: image.cwd, env: variables, timeoutMs: 60_000, ready: 'successfully started' };
    const app = await runUntil(first, rest, options);
    try {
      await untilListening(port);
      const call = () => fetch(`http://127.0.0.1:${port}/banks`, { signal: AbortSignal.timeout(30_000) });
      const answer = await call();
      assert.equal(answer.status, 200);
      await answer.text();

      // A call that hangs while SIGTERM comes.
      const arrived = new Promise((resolve) => {
        simulator.fail({ times: 9, fault: 'hang', when: () => (resolve(), true) });
      });
      const hanging = call();
      await Promise.race([arrived, hanging]);
      const [{ how }, { status }] = await Promise.all([app.end(STOP_GRACE_MS), hanging]);
      assert.equal(status, 503);
      assert.doesNotMatch(how, /SIGKILL/);
      assert.doesNotMatch(app.output(), /ERR_ACCESS_DENIED|EACCES/);
      console.log(`container: ${how}`);
    } finally {
      await app.end();
    }
  };

  const withSimulator = async (task) => {
    const { ServiceSimulator } = await import(join(ROOT, 'dist', 'testing', 'index.js'));
    const simulator = await ServiceSimulator.start();
    try {
      await task(simulator);
    } finally {
      await simulator.stop();
    }
  };

  return {
    checks: [
      { name: 'container: context', needed: true, run: prepare },
      { name: 'container: Dockerfile', needed: true, run: build },
      { name: 'container: calls, SIGTERM', run: () => withSimulator(serve) },
    ],
    end: () => registry?.stop(),
  };
}

/** Node's own refusal of all writing: that of a read-only file system needs rights that not every machine gives. */
function withoutWriting() {
  const flag = '--permission';
  const name = process.allowedNodeEnvironmentFlags.has(flag) ? flag : '--experimental-permission';
  return [name, '--allow-fs-read=*'];
}

/** Runs a command as the user of the image, and as process 1 where this machine allows it. */
async function asContainer() {
  if (process.getuid() !== 0) return [];
  const user = [
    'setpriv',
    `--reuid=${NODE_USER}`,
    `--regid=${NODE_USER}`,
    '--clear-groups',
    '--no-new-privs',
  ];
  const alone = ['unshare', '--pid', '--fork', '--mount-proc'];
  const isAllowed = await runBounded(alone[0], [...alone.slice(1), 'true'], { timeoutMs: 10_000 }).then(
    () => true,
    () => false,
  );
  console.log(`container: as user ${NODE_USER}${isAllowed ? ', process 1' : ''}`);
  return isAllowed ? [...alone, ...user] : user;
}
