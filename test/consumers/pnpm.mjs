import { cp, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { withoutOptionalPeers } from './checks.mjs';
import { installArguments, writeApplication } from './readme.mjs';
import { npmInstall, runBounded } from './run-bounded.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
/** The last line that runs on Node 20. */
const PNPM = 'pnpm@10';

/**
 * A host with the strict node_modules of pnpm. It has what docs/getting-started.md tells it to install, and no optional
 * peer; the compiler and the simulator are those of this repository. As checks to run in order.
 */
export async function pnpmChecks({ template, folder }) {
  const tools = `${folder}-tools`;
  const pnpm = join(tools, 'node_modules', 'pnpm', 'bin', 'pnpm.cjs');
  const run = (command, args, timeoutMs) => runBounded(command, args, { cwd: folder, timeoutMs });
  const node = (args, timeoutMs = 30_000) => run(process.execPath, args, timeoutMs);

  return {
    name: basename(template),
    checks: [
      {
        name: 'install',
        run: async () => {
          await cp(template, folder, { recursive: true });
          await writeApplication(folder);
          await npmInstall(folder, '--no-save', '--prefix', tools, PNPM);
          const packages = await installArguments(12, '../nestjs-service.tgz');
          const pnpmRun = (...args) => node([pnpm, ...args, '--store-dir', join(tools, 'store')], 180_000);
          await pnpmRun('add', '--lockfile-only', ...packages);
          // A missing peer fails an installation without lockfile, and no other.
          await rm(join(folder, 'pnpm-lock.yaml'));
          await pnpmRun('install');
        },
      },
      {
        name: 'types',
        run: () => node([join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', '.'], 120_000),
      },
      {
        name: 'first call',
        run: () => withSimulator(folder, () => node([join('programs', 'first-call.mjs')])),
      },
      {
        name: 'doctor',
        run: () => node([pnpm, 'exec', 'nestjs-service', 'doctor', '--offline', '--env-file', '.env']),
      },
      {
        name: 'no optional peers',
        run: () => node(['--input-type=module', '-e', withoutOptionalPeers('module')]),
      },
    ],
  };
}

/** With a simulator of the service, and its variables in the host's .env. */
async function withSimulator(folder, task) {
  const { ServiceSimulator } = await import(join(ROOT, 'dist', 'testing', 'index.js'));
  const simulator = await ServiceSimulator.start();
  try {
    const variables = simulator.env({ environment: 'production', authentication: 'mtls', oauth: true });
    const lines = Object.entries(variables).map(([name, value]) => `${name}='${value}'\n`);
    await writeFile(join(folder, '.env'), lines.join(''));
    await task();
  } finally {
    await simulator.stop();
  }
}
