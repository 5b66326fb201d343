import { cp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join, parse } from 'node:path';
import { bundledRight, optionalPeers, withoutOptionalPeers, withoutReflectMetadata } from './checks.mjs';
import { checkPackageContents } from './package-contents.mjs';
import { followExceptionFilter, followGettingStarted, followTesting, installArguments } from './readme.mjs';
import { npmInstall, runBounded } from './run-bounded.mjs';
import { typesChecks } from './types.mjs';

const ROOT = join(import.meta.dirname, '../..');
const OPTIONAL_PEERS = ['@peculiar/x509'];
/** Programs of the host besides its main one. */
const HOST_PROGRAMS = ['shutdown', 'standalone'];
/** Folder of the programs that do not depend on the version of Node: the oldest runs them. */
const ONCE = 'once';

/** A scaffold of NestJS 12, whose vitest runs the tests of docs/testing.md. */
export async function vitestChecks({ template, folder, nodes }) {
  await cp(template, folder, { recursive: true });
  const run = (command, args, timeoutMs) => runBounded(command, args, { cwd: folder, timeoutMs });
  const vitest = join(folder, 'node_modules', 'vitest', 'vitest.mjs');
  return {
    name: basename(template),
    checks: [
      {
        name: 'install',
        run: async () => {
          await npmInstall(folder, '--save-dev', ...OPTIONAL_PEERS);
          await followTesting(folder);
        },
      },
      ...nodes.map(({ version, path }) => ({
        name: 'npm run test',
        node: version,
        run: () => run(path, [vitest, 'run'], 90_000),
      })),
    ],
  };
}

/**
 * One consumer, copied to `folder` with the sources that all consumers share, as a list of checks to run in order:
 * `{ name, node, run }`. One with a test/jest-e2e.json is what `nest new` makes: it is changed as docs/getting-started.md says, gets the tests of docs/testing.md, and its
 * own `npm test` and `npm run test:e2e` are run.
 */
export async function consumerChecks({ template, host, folder, nodes }) {
  await cp(template, folder, { recursive: true });
  await cp(host, folder, { recursive: true });
  await cp(join(ROOT, 'docs'), join(folder, 'docs'), { recursive: true });
  const entries = await readdir(template);
  const { type, scripts } = JSON.parse(await readFile(join(template, 'package.json'), 'utf8'));
  const tsc = join(folder, 'node_modules', 'typescript', 'bin', 'tsc');
  const jest = join(folder, 'node_modules', 'jest', 'bin', 'jest.js');
  const isScaffold = entries.includes('test');
  const main = isScaffold ? 'tsconfig.build.json' : 'tsconfig.json';

  /** Of src/, by their names after compilation, and of programs/. */
  const once = [
    join('dist', 'closed-twice.js'),
    ...(await readdir(join(host, 'src', ONCE))).map((file) =>
      join('dist', ONCE, `${basename(file, '.ts')}.js`),
    ),
    ...(await readdir(join(folder, 'programs', ONCE))).map((file) => join('programs', ONCE, file)),
  ];
  const programs = [
    ...HOST_PROGRAMS.map((program) => join('dist', `${program}.js`)),
    ...(await readdir(join(folder, 'programs')))
      .filter((file) => file !== ONCE)
      .map((file) => join('programs', file)),
  ];

  const node = (path, args, timeoutMs) => runBounded(path, args, { cwd: folder, timeoutMs });
  const evaluate = (path, code, ...flags) =>
    node(path, [...flags, ...(type === 'module' ? ['--input-type=module'] : []), '-e', code], 20_000);

  /** Without a shell, as in a small container. */
  const doctor = async (path) => {
    await writeFile(
      join(folder, 'doctor.env'),
      'SERVICE_SANDBOX_URL="https://sandbox.bank"\nSERVICE_APP_TOKEN=a1 # a comment\n',
    );
    const command = join('node_modules', 'nestjs-service', 'dist', 'cli', 'main.js');
    await node(path, [command, 'doctor', '--offline', '--env-file', 'doctor.env'], 20_000);
  };

  const checks = [
    {
      name: 'install',
      run: async () => {
        const named = isScaffold ? await installArguments(11, '../nestjs-service.tgz') : [];
        await npmInstall(folder, ...named);
        await followExceptionFilter(folder);
        if (!isScaffold) return;
        await npmInstall(folder, '--save-dev', ...OPTIONAL_PEERS);
        await followGettingStarted(folder);
        await followTesting(folder);
      },
    },
    {
      name: 'package contents',
      run: () => checkPackageContents(join(folder, 'node_modules', 'nestjs-service')),
    },
    { name: 'types', run: () => node(process.execPath, [tsc, '-p', main], 120_000) },
    ...typesChecks({
      folder,
      isCommonJs: type !== 'module',
      run: (args) => node(process.execPath, args, 120_000),
    }),
  ];
  for (const [index, { version, path }] of nodes.entries()) {
    checks.push(
      { name: 'plain import', node: version, run: () => evaluate(path, withoutReflectMetadata(type)) },
      {
        name: 'bundle',
        node: version,
        run: () => evaluate(path, bundledRight(type), '--enable-source-maps'),
      },
      { name: 'doctor', node: version, run: () => doctor(path) },
      { name: 'run', node: version, run: () => node(path, [join('dist', 'main.js')], 30_000) },
      ...[...programs, ...(index === 0 ? once : [])].map((program) => ({
        name: parse(program).name,
        node: version,
        run: () => node(path, [program], 60_000),
      })),
    );
    if (isScaffold) {
      for (const [script, args] of Object.entries(scripts)) {
        const jestArguments = args.split(' ').slice(1);
        checks.push({
          name: `npm run ${script}`,
          node: version,
          run: () => node(path, [jest, '--ci', ...jestArguments], 90_000),
        });
      }
    }
  }
  checks.push({
    name: 'no optional peers',
    run: async () => {
      for (const peer of await optionalPeers(folder)) {
        await rm(join(folder, 'node_modules', peer), { recursive: true, force: true });
      }
      await evaluate(process.execPath, withoutOptionalPeers(type));
    },
  });
  return { name: basename(template), checks };
}
