import { cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runBounded } from './run-bounded.mjs';

/** Of the host's sources, its main program and what that imports. */
const SOURCES = ['main', 'app.module', 'banking.controller', 'banking.service', 'lazy-parts', 'run'];

const TSC = { name: 'tsc', args: ['--builder', 'tsc'] };
const SWC = { name: 'swc', args: ['--builder', 'swc', '--type-check'] };
const BUILDERS = {
  'builders-nest11': [
    TSC,
    SWC,
    { name: 'webpack', args: ['--builder', 'webpack', '--webpackPath', 'webpack.config.cjs'] },
    {
      name: 'webpack, all in one bundle',
      args: ['--builder', 'webpack', '--webpackPath', 'webpack.bundle.cjs'],
      isWhole: true,
    },
  ],
  // The command of NestJS 12 refuses webpack for ES modules.
  'builders-nest12': [
    TSC,
    SWC,
    { name: 'rspack', args: ['--builder', 'rspack'] },
    {
      name: 'rspack, all in one bundle',
      args: ['--builder', 'rspack', '--rspackPath', 'rspack.bundle.mjs'],
      isWhole: true,
    },
  ],
};

/** A host that `nest build` makes with each builder, and that then runs. As checks to run in order. */
export async function buildersChecks({ template, host, folder }) {
  const name = basename(template);
  const run = (command, args, timeoutMs, cwd = folder) => runBounded(command, args, { cwd, timeoutMs });
  const nest = join(folder, 'node_modules', '@nestjs', 'cli', 'bin', 'nest.js');

  /** Builds into dist/, and runs what is there; a whole bundle runs where no node_modules is. */
  const buildAndRun = async ({ args, isWhole }) => {
    await run(process.execPath, [nest, 'build', ...args], 120_000);
    if (!isWhole) return run(process.execPath, [join('dist', 'main.js')], 30_000);
    const alone = `${folder}-bundle`;
    await rm(alone, { recursive: true, force: true });
    await rename(join(folder, 'dist'), alone);
    const { type = 'commonjs' } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    await writeFile(join(alone, 'package.json'), JSON.stringify({ type }));
    return run(process.execPath, ['main.js'], 30_000, alone);
  };

  return {
    name,
    checks: [
      {
        name: 'install',
        run: async () => {
          await cp(template, folder, { recursive: true });
          for (const file of SOURCES) {
            await cp(join(host, 'src', `${file}.ts`), join(folder, 'src', `${file}.ts`));
          }
          const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'];
          await run('npm', ['install', ...quiet], 300_000);
        },
      },
      ...BUILDERS[name].map((builder) => ({ name: builder.name, run: () => buildAndRun(builder) })),
    ],
  };
}
