import { cp, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { npmInstall, runBounded } from './run-bounded.mjs';

/** Of the host's sources, its main program and what that imports. */
const SOURCES = ['main', 'app.module', 'banking.controller', 'banking.service', 'lazy-parts', 'run'];

/** A host that `nest build` makes one bundle of, which runs where there is no node_modules. As checks to run in order. */
export async function bundleChecks({ template, host, folder }) {
  const run = (command, args, timeoutMs, cwd = folder) => runBounded(command, args, { cwd, timeoutMs });
  const nest = join(folder, 'node_modules', '@nestjs', 'cli', 'bin', 'nest.js');
  return {
    name: basename(template),
    checks: [
      {
        name: 'install',
        run: async () => {
          await cp(template, folder, { recursive: true });
          for (const file of SOURCES) {
            await cp(join(host, 'src', `${file}.ts`), join(folder, 'src', `${file}.ts`));
          }
          await npmInstall(folder);
        },
      },
      {
        name: 'rspack, all in one bundle',
        run: async () => {
          const args = ['build', '--builder', 'rspack', '--rspackPath', 'rspack.bundle.mjs'];
          await run(process.execPath, [nest, ...args], 120_000);
          const alone = `${folder}-alone`;
          await rename(join(folder, 'dist'), alone);
          await writeFile(join(alone, 'package.json'), '{ "type": "module" }');
          await run(process.execPath, ['main.js'], 30_000, alone);
        },
      },
    ],
  };
}
