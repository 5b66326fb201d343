import assert from 'node:assert/strict';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkPackageContents } from './package-contents.mjs';
import { runBounded } from './run-bounded.mjs';

/** What npm runs on the machine of everybody who installs the package. */
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare'];

/**
 * Makes the next release in a clone of the last commit, as a maintainer and the release workflow do, up to the moment
 * before it is published. Throws where what would be published is not right.
 */
export async function rehearseRelease({ repository, workspace }) {
  const folder = join(workspace, 'release');
  const gitConfig = join(workspace, 'gitconfig');
  await writeFile(gitConfig, '[user]\nname = nobody\nemail = nobody@example.com\n[safe]\ndirectory = *\n');
  const env = { GIT_CONFIG_GLOBAL: gitConfig };
  const run = (command, ...args) => runBounded(command, args, { cwd: folder, env, timeoutMs: 180_000 });
  await runBounded('git', ['clone', '--quiet', repository, folder], {
    cwd: workspace,
    env,
    timeoutMs: 60_000,
  });
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
  // .gitignore means a folder, not a link.
  await writeFile(join(folder, '.git', 'info', 'exclude'), 'node_modules\n');

  // Right after a release nothing is new yet.
  const changelog = await readFile(join(folder, 'CHANGELOG.md'), 'utf8');
  const news = changelog.replace('## [Unreleased]\n', '## [Unreleased]\n\n- Rehearsed.\n');
  await writeFile(join(folder, 'CHANGELOG.md'), news);
  await run('git', 'commit', '--quiet', '--all', '--message', 'News');
  const version = '999.0.0';
  await run('npm', 'version', version);
  assert.equal((await run('git', 'describe', '--exact-match')).trim(), `v${version}`);
  assert.equal(await run('git', 'status', '--porcelain'), '');
  assert.match(
    await readFile(join(folder, 'lib', 'version.ts'), 'utf8'),
    /'999\.0\.0'[^]*\/blob\/v999\.0\.0\/docs'/,
  );
  await run('npm', 'pack', '--silent');
  const tarball = `nestjs-service-${version}.tgz`;
  await run('tar', '-xzf', tarball);
  const packed = join(folder, 'package');
  await checkPackageContents(packed);

  const manifest = JSON.parse(await readFile(join(packed, 'package.json'), 'utf8'));
  const { name, publishConfig, repository: source, scripts } = manifest;
  assert.deepEqual([name, manifest.version], ['nestjs-service', version]);
  assert.deepEqual(publishConfig, { access: 'public', provenance: true });
  // npm refuses a provenance whose repository is another one.
  assert.equal(source.url, 'git+https://github.com/nestjs-service/nestjs-service.git');
  assert.deepEqual(
    INSTALL_SCRIPTS.filter((script) => script in scripts),
    [],
  );
  assert.match(
    await readFile(join(folder, 'CHANGELOG.md'), 'utf8'),
    new RegExp(`^## \\[Unreleased\\]\n\n## \\[${version}\\] - \\d{4}-\\d\\d-\\d\\d\n\n- Rehearsed`, 'm'),
  );
  const command = join('package', manifest.bin['nestjs-service']);
  assert.equal((await run('node', command, '--version')).trim(), version);
  await run('node', join('node_modules', '@arethetypeswrong', 'cli', 'dist', 'index.js'), tarball);
  // All that npm checks before it asks for credentials.
  await run('npm', 'publish', tarball, '--dry-run', '--provenance', '--access', 'public');
  // The changelog has nothing new now.
  await assert.rejects(run('npm', 'version', '999.0.1'), /has nothing below/);
}
