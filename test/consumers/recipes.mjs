import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { containerChecks } from './container.mjs';
import { followRecipes, writeApplication } from './readme.mjs';
import { npmInstall, runBounded } from './run-bounded.mjs';

const PROGRAMS = ['sentry', 'breaker', 'request-ids', 'msw', 'global-agent', 'exact-amounts'];
const SPECS = ['nock'];

/** A host with the code of docs/recipes.md, and a program for each recipe. As checks to run in order. */
export async function recipesChecks({ template, folder, nodes, tarball }) {
  const run = (args, path = process.execPath) => runBounded(path, args, { cwd: folder, timeoutMs: 120_000 });
  const container = await containerChecks({ folder: `${folder}-container`, tarball });

  return {
    checks: [
      {
        name: 'install',
        run: async () => {
          await cp(template, folder, { recursive: true });
          await writeApplication(folder);
          await followRecipes(folder);
          await npmInstall(folder);
        },
      },
      { name: 'types', run: () => run([join('node_modules', 'typescript', 'bin', 'tsc')]) },
      ...PROGRAMS.map((name) => ({ name, run: () => run([join('programs', `${name}.mjs`)]) })),
      ...nodes.flatMap(({ version, path }) =>
        SPECS.map((name) => ({
          name,
          node: version,
          run: () => run(['--test', join('programs', `${name}.spec.mjs`)], path),
        })),
      ),
      {
        name: 'function',
        run: async () => {
          await run(['bundle.mjs']);
          console.log(await run([join('programs', 'function.mjs')]));
        },
      },
      ...container.checks,
    ],
    end: container.end,
  };
}
